//! State from inside: `upstrand_status` shows it, `upstrand_api` shows it and changes it.

mod accept;
mod api;
mod change;
mod clock;
mod peers;
mod prometheus;
mod response;
mod state;
mod view;

use core::ffi::{c_char, c_void};

use nginx_sys::{
    ngx_command_t, ngx_conf_t, ngx_http_handler_pt, ngx_http_request_t, ngx_int_t, NGX_HTTP_GET,
    NGX_HTTP_HEAD, NGX_HTTP_OK,
};

use crate::conf::{LocConf, MainConf};
use crate::nginx::{callback, fault, guard, Conf, ConfResult, Output, Refused, Request, Text};
use response::FAILED;
use view::{Document, Source};

pub use accept::Format;

/// The page for people.
const PAGE: &str = include_str!("page.html");

const ALLOWED: &core::ffi::CStr = c"GET, HEAD";

/// `upstrand_status [json | prometheus | html];`
///
/// # Safety
///
/// Called by nginx while it reads a configuration; `conf` is the location's LocConf.
pub unsafe extern "C" fn cmd_upstrand_status(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: as nginx calls it.
    unsafe {
        callback::directive(cf, |cf| {
            let loc = conf.cast::<LocConf>().as_mut().ok_or(Refused::Logged)?;
            if cf.args().len() > 1 {
                loc.status = Format::from_word(cf.arg(1));
                if loc.status.is_none() {
                    return cf.refuse(format_args!("invalid parameter \"{}\"", Text(cf.arg(1))));
                }
            }
            answer_by(cf, loc, Some(status))
        })
    }
}

/// `upstrand_api;`
///
/// # Safety
///
/// Called by nginx while it reads a configuration; `conf` is the location's LocConf.
pub unsafe extern "C" fn cmd_upstrand_api(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: as nginx calls it.
    unsafe {
        callback::directive(cf, |cf| {
            let loc = conf.cast::<LocConf>().as_mut().ok_or(Refused::Logged)?;
            answer_by(cf, loc, Some(api::handler))
        })
    }
}

/// Has a handler answer in the location at hand.
fn answer_by(conf: Conf, loc: &mut LocConf, handler: ngx_http_handler_pt) -> ConfResult {
    let core = conf.core_location()?;
    let address = |handler: ngx_http_handler_pt| handler.map_or(0, |f| f as usize);
    let own = [Some(status as _), Some(api::handler as _)].map(address);
    if own.contains(&address(core.handler)) {
        return if address(core.handler) == address(handler) {
            Err(Refused::Directive(c"is duplicate"))
        } else {
            Err(Refused::Directive(
                c"can't stand beside the other one of \"upstrand_status\" and \"upstrand_api\"",
            ))
        };
    }
    core.handler = handler;
    loc.handler = handler;
    Ok(())
}

/// `if` and `limit_except` make locations of their own within one: there nginx forgets who answers.
pub fn inherit(conf: Conf, above: &LocConf, own: &mut LocConf) -> ConfResult {
    let core = conf.core_location()?;
    if above.handler.is_some() && core.noname() != 0 && core.handler.is_none() {
        core.handler = above.handler;
        own.handler = above.handler;
        own.status = above.status;
    }
    Ok(())
}

unsafe extern "C" fn status(r: *mut ngx_http_request_t) -> ngx_int_t {
    guard(FAILED, || {
        // SAFETY: as nginx calls it.
        unsafe { Request::from_ptr(r) }
            .and_then(answer)
            .unwrap_or(FAILED)
    })
}

fn answer(request: Request) -> Option<ngx_int_t> {
    fault::point("status");
    let main: &MainConf = request.main_conf(crate::module())?;
    let loc: &LocConf = request.loc_conf(crate::module())?;
    if !is_reading(request) {
        let refused = response::Refused::method(request, ALLOWED);
        return Some(response::refuse(request, &refused));
    }
    if let Err(rc) = request.discard_body() {
        return Some(rc);
    }
    // The page asks its own address for the data.
    let fixed = loc
        .status
        .filter(|format| *format != Format::Html || !accept::is_asked(request));
    let format = match fixed.map_or_else(|| accept::format(request), Ok) {
        Ok(format) => format,
        Err(refused) => return Some(response::refuse(request, &refused)),
    };
    let pool = request.pool()?;
    if format == Format::Html {
        let (kind, page) = ("text/html; charset=utf-8", Output::of(pool, PAGE));
        return Some(response::body(request, NGX_HTTP_OK as usize, kind, page));
    }
    let source = Source::new(main, pool, main.upstrands.iter().map(Box::as_ref))?;
    if format == Format::Json {
        return Some(response::json(request, &Document(&source)));
    }
    let mut out = Output::new(pool);
    prometheus::write(&mut out, &source).ok()?;
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Some(response::body(request, NGX_HTTP_OK as usize, kind, out))
}

fn is_reading(request: Request) -> bool {
    request.fields().method & (NGX_HTTP_GET | NGX_HTTP_HEAD) as usize != 0
}
