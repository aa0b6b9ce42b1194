//! `PATCH` of a member: draining it, or blacklisting it by hand.

use std::borrow::Cow;

use nginx_sys::{
    ngx_chain_t, ngx_exiting, ngx_http_finalize_request, ngx_http_read_client_request_body,
    ngx_http_request_t, ngx_int_t, ngx_quit, ngx_read_file, ngx_terminate,
    NGX_HTTP_SPECIAL_RESPONSE, NGX_LOG_NOTICE,
};
use serde::{Deserialize, Deserializer};
use walk::Cause;

use super::api::{self, Resource};
use super::response::{self, Refused, FAILED};
use super::state::State;
use super::view::Source;
use crate::conf::{MainConf, Upstrand};
use crate::nginx::{bytes, fault, guard_or, parse_msec, Request, Text, DONE};
use crate::zone;

/// The longest body, in bytes.
const LONGEST: usize = 4096;

/// The longest time that a member is blacklisted for, in ms: a year.
const LONGEST_TIME: u64 = 366 * 24 * 3600 * 1000;

/// What is wanted of a member.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change<'a> {
    #[serde(default, deserialize_with = "given")]
    drain: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    force: Option<bool>,
    /// For how long; `null` takes it off the list.
    #[serde(default, borrow, deserialize_with = "given")]
    blacklist: Option<Option<Cow<'a, str>>>,
}

/// A key that is there must have a value of its type.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Reads the request's body; the answer follows when it is there.
pub fn begin(request: Request) -> Result<ngx_int_t, Refused> {
    let kind = request.header(b"content-type").map_or(&[][..], bytes);
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or(kind);
    if !kind.trim_ascii().eq_ignore_ascii_case(b"application/json") {
        let text = "the body's Content-Type has to be application/json";
        return Err(Refused::new(415, text));
    }
    if request.fields().headers_in.content_length_n > LONGEST as i64 {
        return Err(too_long());
    }
    // SAFETY: the request is live, and its body was not read.
    let rc = unsafe { ngx_http_read_client_request_body(request.as_ptr(), Some(have_body)) };
    if rc >= NGX_HTTP_SPECIAL_RESPONSE as ngx_int_t {
        return Ok(rc);
    }
    Ok(DONE)
}

fn too_long() -> Refused {
    Refused::new(413, format!("the body is longer than {LONGEST} bytes"))
}

/// The body is there.
unsafe extern "C" fn have_body(r: *mut ngx_http_request_t) {
    // SAFETY: as nginx calls it.
    let Some(request) = (unsafe { Request::from_ptr(r) }) else {
        return;
    };
    let rc = guard_or(
        || FAILED,
        || match answer(request) {
            Some(Ok(rc)) => rc,
            Some(Err(refused)) => response::refuse(request, &refused),
            None => FAILED,
        },
    );
    // SAFETY: pairs with the reference that ngx_http_read_client_request_body() took.
    unsafe { ngx_http_finalize_request(r, rc) };
}

fn answer(request: Request) -> Option<Result<ngx_int_t, Refused>> {
    fault::point("change");
    let main: &MainConf = request.main_conf(crate::module())?;
    let resource = match api::resource(request, main) {
        Ok(resource) => resource,
        Err(refused) => return Some(Err(refused)),
    };
    let Resource::Member(upstrand, member) = resource else {
        return None;
    };
    let mut room = [0; LONGEST + 1];
    let len = body(request, &mut room)?;
    let body = room.get(..len)?;
    let source = Source::new(main, request.pool()?, core::iter::once(upstrand))?;
    if let Err(refused) = change(request, &source, upstrand, member, body) {
        return Some(Err(refused));
    }
    Some(Ok(api::show(request, main, &resource)?))
}

/// Copies the body, up to the room that there is, and returns its length. None: a file can't be
/// read.
fn body(request: Request, room: &mut [u8]) -> Option<usize> {
    let mut len = 0usize;
    // SAFETY: nginx has read the body: NULL, or a chain of buffers in the request's pool.
    let mut link: *mut ngx_chain_t = unsafe {
        let body = request.fields().request_body.as_ref();
        body.map_or(core::ptr::null_mut(), |body| body.bufs)
    };
    // SAFETY: as above.
    while let Some(buf) = unsafe { link.as_ref().and_then(|link| link.buf.as_mut()) } {
        let place = room.get_mut(len..)?;
        let count = if buf.in_file() != 0 {
            let size = usize::try_from(buf.file_last.saturating_sub(buf.file_pos)).ok()?;
            let size = size.min(place.len());
            // SAFETY: the buffer's file is open, and there is room for as much.
            let read = unsafe { ngx_read_file(buf.file, place.as_mut_ptr(), size, buf.file_pos) };
            usize::try_from(read).ok()?
        } else {
            let size = (buf.last as usize).saturating_sub(buf.pos as usize);
            let size = size.min(place.len());
            // SAFETY: the buffer holds as much at its position, and there is room for it.
            unsafe { core::ptr::copy_nonoverlapping(buf.pos, place.as_mut_ptr(), size) };
            size
        };
        len = len.saturating_add(count);
        // SAFETY: as above.
        link = unsafe { (*link).next };
    }
    Some(len)
}

fn change(
    request: Request,
    source: &Source<'_>,
    upstrand: &Upstrand,
    member: usize,
    body: &[u8],
) -> Result<(), Refused> {
    if body.len() > LONGEST {
        return Err(too_long());
    }
    let change = parse(body).map_err(|text| Refused::new(400, text))?;
    let time = match &change.blacklist {
        Some(Some(time)) => Some(Some(blacklist_time(time)?)),
        Some(None) => Some(None),
        None => None,
    };
    if upstrand.zone.is_null() {
        let text = format!(
            "upstrand \"{}\" has no zone: a change would be known to one worker only",
            Text(upstrand.name_bytes())
        );
        return Err(Refused::new(409, text));
    }
    refuse_if_leaving(upstrand, source.clock.now)?;

    let now = source.clock.now;
    let state = upstrand.memory.state();
    if let Some(draining) = change.drain {
        let force = change.force == Some(true);
        drain(request, source, upstrand, member, draining, force)?;
    }
    match time {
        Some(Some(ms)) => {
            let until = now.saturating_add(ms);
            state.mark(&upstrand.plan, member, Cause::ByHand, now, until);
            log(
                request,
                upstrand,
                member,
                format_args!("is blacklisted for {ms} ms"),
            );
        }
        Some(None) if state.is_marked(member) => {
            state.unmark(member, now);
            log(
                request,
                upstrand,
                member,
                format_args!("is not blacklisted any more"),
            );
        }
        _ => (),
    }
    // What a reload copied before this is lost.
    refuse_if_leaving(upstrand, source.clock.now)
}

fn parse(body: &[u8]) -> Result<Change<'_>, String> {
    // serde takes an array for a structure, too.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err("the body has to be a JSON object".into());
    }
    let change: Change<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if change.drain.is_none() && change.blacklist.is_none() {
        return Err("there is nothing to change: \"drain\" or \"blacklist\" is missing".into());
    }
    if change.force.is_some() && change.drain.is_none() {
        return Err("\"force\" goes with \"drain\" only".into());
    }
    Ok(change)
}

fn blacklist_time(text: &str) -> Result<u64, Refused> {
    match parse_msec(text.as_bytes()) {
        Some(ms) if (1..=LONGEST_TIME).contains(&ms) => Ok(ms),
        _ => Err(Refused::new(
            400,
            format!("invalid time \"{text}\" in \"blacklist\""),
        )),
    }
}

/// Drains a member, or takes it back.
fn drain(
    request: Request,
    source: &Source<'_>,
    upstrand: &Upstrand,
    member: usize,
    draining: bool,
    force: bool,
) -> Result<(), Refused> {
    let state = upstrand.memory.state();
    // Another worker must not drain the other one of the last two at the same time.
    let changed = zone::exclusively(upstrand, || {
        let is_last = || !force && !other_is_usable(source, upstrand, member);
        if draining && !state.is_draining(member) && is_last() {
            return None;
        }
        Some(state.set_draining(&upstrand.plan, member, draining, source.clock.now))
    });
    let Some(changed) = changed else {
        let text = format!(
            "no other upstream of upstrand \"{}\" is usable: \"force\" drains \"{}\" all the same",
            Text(upstrand.name_bytes()),
            Text(name(upstrand, member))
        );
        return Err(Refused::new(409, text));
    };
    if changed {
        let what = if draining {
            "is draining"
        } else {
            "is taken back"
        };
        log(request, upstrand, member, format_args!("{what}"));
    }
    Ok(())
}

fn other_is_usable(source: &Source<'_>, upstrand: &Upstrand, member: usize) -> bool {
    (0..upstrand.members.len())
        .filter(|other| *other != member)
        .any(|other| matches!(source.state(upstrand, other).0, State::Up | State::Checking))
}

/// Refuses changes that a reload would not see.
fn refuse_if_leaving(upstrand: &Upstrand, now: u64) -> Result<(), Refused> {
    // SAFETY: plain integers that signal handlers of this process set.
    let leaving = unsafe { ngx_exiting != 0 || ngx_quit != 0 || ngx_terminate != 0 };
    if leaving || zone::is_left(upstrand, now) {
        let text = "a reload is under way, and may not see the change: ask again";
        return Err(Refused::new(503, text));
    }
    Ok(())
}

fn name(upstrand: &Upstrand, member: usize) -> &[u8] {
    upstrand
        .members
        .get(member)
        .map_or(&[], |member| bytes(&member.name))
}

fn log(request: Request, upstrand: &Upstrand, member: usize, what: core::fmt::Arguments<'_>) {
    ngx::ngx_log_error!(
        NGX_LOG_NOTICE,
        request.log(),
        "upstream \"{}\" in upstrand \"{}\" {what} by request",
        Text(name(upstrand, member)),
        Text(upstrand.name_bytes())
    );
}
