//! `upstrand_api;`: upstrands and what becomes of them, by URI.

use core::ffi::CStr;

use nginx_sys::{
    ngx_http_core_loc_conf_t, ngx_http_core_module, ngx_http_request_t, ngx_int_t, NGX_HTTP_PATCH,
};

use super::change;
use super::response::{self, Refused, FAILED};
use super::view::{Explanation, Source, UpstrandView, Upstrands};
use crate::conf::{MainConf, Upstrand};
use crate::nginx::{bytes, fault, guard, Request, Text};

const READ: &CStr = c"GET, HEAD";
const READ_AND_CHANGE: &CStr = c"GET, HEAD, PATCH";

/// What a URI names.
pub enum Resource<'a> {
    /// `/upstrands`
    All,
    /// `/upstrands/NAME`
    Upstrand(&'a Upstrand),
    /// `/upstrands/NAME/explain`
    Explanation(&'a Upstrand),
    /// `/upstrands/NAME/upstreams/MEMBER`
    Member(&'a Upstrand, usize),
}

/// The content handler.
///
/// # Safety
///
/// Called by nginx for a request.
pub unsafe extern "C" fn handler(r: *mut ngx_http_request_t) -> ngx_int_t {
    guard(FAILED, || {
        // SAFETY: as nginx calls it.
        let Some(request) = (unsafe { Request::from_ptr(r) }) else {
            return FAILED;
        };
        match answer(request) {
            Some(Ok(rc)) => rc,
            Some(Err(refused)) => response::refuse(request, &refused),
            None => FAILED,
        }
    })
}

fn answer(request: Request) -> Option<Result<ngx_int_t, Refused>> {
    fault::point("api");
    let main: &MainConf = request.main_conf(crate::module())?;
    let resource = match resource(request, main) {
        Ok(resource) => resource,
        Err(refused) => return Some(Err(refused)),
    };
    let is_patch = request.fields().method & NGX_HTTP_PATCH as usize != 0;
    match resource {
        Resource::Member(..) if is_patch => return Some(change::begin(request)),
        Resource::Member(..) if !super::is_reading(request) => {
            return Some(Err(Refused::method(request, READ_AND_CHANGE)))
        }
        _ if !super::is_reading(request) => return Some(Err(Refused::method(request, READ))),
        _ => (),
    }
    if let Err(rc) = request.discard_body() {
        return Some(Ok(rc));
    }
    Some(Ok(show(request, main, &resource)?))
}

/// Answers with what a resource is like. None: memory is short.
pub fn show(request: Request, main: &MainConf, resource: &Resource<'_>) -> Option<ngx_int_t> {
    let pool = request.pool()?;
    let one = |upstrand| Source::new(main, pool, core::iter::once(upstrand));
    Some(match resource {
        Resource::All => {
            let source = Source::new(main, pool, main.upstrands.iter().map(Box::as_ref))?;
            response::json(request, &Upstrands(&source))
        }
        Resource::Upstrand(upstrand) => {
            response::json(request, &UpstrandView(&one(upstrand)?, upstrand))
        }
        Resource::Explanation(upstrand) => {
            response::json(request, &Explanation(&one(upstrand)?, upstrand))
        }
        Resource::Member(upstrand, number) => {
            response::json(request, &one(upstrand)?.member(upstrand, *number)?)
        }
    })
}

/// What the request's URI names.
pub fn resource<'a>(request: Request, main: &'a MainConf) -> Result<Resource<'a>, Refused> {
    let nothing = || Refused::new(request, 404, format_args!("there is nothing of this name"));
    let uri = bytes(&request.fields().uri);
    // SAFETY: a static of nginx, whose index is set before any request is served.
    let core = unsafe { &*core::ptr::addr_of!(ngx_http_core_module) };
    let location = request
        .loc_conf::<ngx_http_core_loc_conf_t>(core)
        .map_or(&[][..], |core| bytes(&core.name));
    let below = below(uri, location).ok_or_else(nothing)?;
    let path = match below {
        [] => return Ok(Resource::All),
        below => below.strip_prefix(b"/").ok_or_else(nothing)?,
    };

    let names = main.upstrands.iter().map(|upstrand| upstrand.name_bytes());
    let Some((index, rest)) = longest(names, path) else {
        let name = path.split(|byte| *byte == b'/').next().unwrap_or(path);
        let text = format_args!("there is no upstrand \"{}\"", Text(name));
        return Err(Refused::new(request, 404, text));
    };
    let upstrand = main.upstrands.get(index).ok_or_else(nothing)?;
    match rest {
        b"" => Ok(Resource::Upstrand(upstrand)),
        b"/explain" => Ok(Resource::Explanation(upstrand)),
        _ => {
            let name = rest.strip_prefix(b"/upstreams/").ok_or_else(nothing)?;
            let mut names = upstrand.members.iter().map(|member| bytes(&member.name));
            match names.position(|own| own.eq_ignore_ascii_case(name)) {
                Some(number) => Ok(Resource::Member(upstrand, number)),
                None => {
                    let (name, upstrand) = (Text(name), Text(upstrand.name_bytes()));
                    let text =
                        format_args!("there is no upstream \"{name}\" in upstrand \"{upstrand}\"");
                    Err(Refused::new(request, 404, text))
                }
            }
        }
    }
}

const ROOT: &[u8] = b"/upstrands";

/// What follows `/upstrands` in a URI: where the location's own prefix has it, there, else directly
/// below the prefix, and at the first place if the location is a regex or a name.
fn below<'u>(uri: &'u [u8], location: &[u8]) -> Option<&'u [u8]> {
    let is_prefix = uri.starts_with(location);
    let prefix = location.strip_suffix(b"/").unwrap_or(location);
    if !is_prefix || after_root(prefix).is_some() {
        return after_root(uri);
    }
    let below = uri.get(prefix.len()..)?.strip_prefix(ROOT)?;
    matches!(below, [] | [b'/', ..]).then_some(below)
}

/// What follows the first `/upstrands` of a path.
fn after_root(path: &[u8]) -> Option<&[u8]> {
    let is_root = |at: &usize| {
        let rest = path.get(*at..).and_then(|path| path.strip_prefix(ROOT));
        matches!(rest, Some([] | [b'/', ..]))
    };
    let at = (0..path.len()).find(is_root)?;
    path.get(at..)?.strip_prefix(ROOT)
}

/// The longest of the names that a path begins with, up to its end or a slash, and what follows.
fn longest(names: impl Iterator<Item = impl AsRef<[u8]>>, path: &[u8]) -> Option<(usize, &[u8])> {
    names
        .enumerate()
        .filter_map(|(index, name)| {
            let (begin, rest) = path.split_at_checked(name.as_ref().len())?;
            let fits = begin.eq_ignore_ascii_case(name.as_ref()) && matches!(rest, [] | [b'/', ..]);
            fits.then_some((index, rest))
        })
        .min_by_key(|(_, rest)| rest.len())
}
