//! `PATCH` of a member: draining it, or blacklisting it by hand.

use std::borrow::Cow;

use nginx_sys::{
    ngx_exiting, ngx_http_finalize_request, ngx_http_read_client_request_body, ngx_http_request_t,
    ngx_int_t, ngx_quit, ngx_terminate, NGX_HTTP_SPECIAL_RESPONSE, NGX_LOG_NOTICE,
};
use serde::{Deserialize, Deserializer};
use walk::Cause;

use super::api::{self, Resource};
use super::response::{self, Refused, FAILED};
use super::state::State;
use super::view::Source;
use crate::conf::{MainConf, Upstrand};
use crate::nginx::{bytes, fault, guard_or, parse_msec, with_memory, Request, Text, DONE};
use crate::zone;

/// The longest body, in bytes.
const LONGEST: usize = 4096;

/// The longest time that a member is blacklisted for, in ms: a year.
const LONGEST_TIME: u64 = 366 * 24 * 3600 * 1000;

/// What is wanted of a member.
#[derive(Clone, Copy)]
struct Change {
    drain: Option<bool>,
    force: bool,
    /// For how long, in ms; `Some(None)` takes it off the list.
    blacklist: Option<Option<u64>>,
}

/// A body that says so.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body<'a> {
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
        let text = format_args!("the body's Content-Type has to be application/json");
        return Err(Refused::new(request, 415, text));
    }
    if request.fields().headers_in.content_length_n > LONGEST as i64 {
        return Err(too_long(request));
    }
    // SAFETY: the request is live, and its body was not read.
    let rc = unsafe { ngx_http_read_client_request_body(request.as_ptr(), Some(have_body)) };
    if rc >= NGX_HTTP_SPECIAL_RESPONSE as ngx_int_t {
        return Ok(rc);
    }
    Ok(DONE)
}

fn too_long(request: Request) -> Refused {
    let text = format_args!("the body is longer than {LONGEST} bytes");
    Refused::new(request, 413, text)
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
    let len = request.copy_body(&mut room)?;
    let body = room.get(..len)?;
    let source = Source::new(main, request.pool()?, core::iter::once(upstrand))?;
    if let Err(refused) = change(request, &source, upstrand, member, body) {
        return Some(Err(refused));
    }
    Some(Ok(api::show(request, main, &resource)?))
}

fn change(
    request: Request,
    source: &Source<'_>,
    upstrand: &Upstrand,
    member: usize,
    body: &[u8],
) -> Result<(), Refused> {
    if body.len() > LONGEST {
        return Err(too_long(request));
    }
    let change = read(request, body)?;
    if upstrand.zone.is_null() {
        let text = format_args!(
            "upstrand \"{}\" has no zone: a change would be known to one worker only",
            Text(upstrand.name_bytes())
        );
        return Err(Refused::new(request, 409, text));
    }
    refuse_if_leaving(request, upstrand, source.clock.now)?;

    let now = source.clock.now;
    let state = upstrand.memory.state();
    if let Some(draining) = change.drain {
        drain(request, source, upstrand, member, draining, change.force)?;
    }
    match change.blacklist {
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
    refuse_if_leaving(request, upstrand, source.clock.now)
}

/// What a body asks for. serde_json takes memory without asking whether there is some, so it gets
/// what the longest body needs at most.
fn read(request: Request, body: &[u8]) -> Result<Change, Refused> {
    const ENOUGH: usize = 16 * LONGEST;

    let room = request.pool().and_then(|pool| pool.items::<u8>(ENOUGH));
    let Some(room) = room else {
        return Err(Refused::out_of_memory());
    };
    let change = with_memory(room, || parse(request, body));
    if let Some(pool) = request.pool() {
        pool.free(room.as_mut_ptr().cast());
    }
    change.unwrap_or_else(|| Err(Refused::out_of_memory()))
}

fn parse(request: Request, body: &[u8]) -> Result<Change, Refused> {
    let refused = |text: core::fmt::Arguments<'_>| Err(Refused::new(request, 400, text));
    // serde takes an array for a structure, too.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return refused(format_args!("the body has to be a JSON object"));
    }
    let asked: Body<'_> = match serde_json::from_slice(body) {
        Ok(asked) => asked,
        Err(error) => return refused(format_args!("{error}")),
    };
    if asked.drain.is_none() && asked.blacklist.is_none() {
        return refused(format_args!(
            "there is nothing to change: \"drain\" or \"blacklist\" is missing"
        ));
    }
    if asked.force.is_some() && asked.drain.is_none() {
        return refused(format_args!("\"force\" goes with \"drain\" only"));
    }
    let blacklist = match &asked.blacklist {
        Some(Some(time)) => match parse_msec(time.as_bytes()) {
            Some(ms) if (1..=LONGEST_TIME).contains(&ms) => Some(Some(ms)),
            _ => return refused(format_args!("invalid time \"{time}\" in \"blacklist\"")),
        },
        Some(None) => Some(None),
        None => None,
    };
    Ok(Change {
        drain: asked.drain,
        force: asked.force == Some(true),
        blacklist,
    })
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
        let text = format_args!(
            "no other upstream of upstrand \"{}\" is usable: \"force\" drains \"{}\" all the same",
            Text(upstrand.name_bytes()),
            Text(name(upstrand, member))
        );
        return Err(Refused::new(request, 409, text));
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
fn refuse_if_leaving(request: Request, upstrand: &Upstrand, now: u64) -> Result<(), Refused> {
    // SAFETY: plain integers that signal handlers of this process set.
    let leaving = unsafe { ngx_exiting != 0 || ngx_quit != 0 || ngx_terminate != 0 };
    if leaving || zone::is_left(upstrand, now) {
        let text = format_args!("a reload is under way, and may not see the change: ask again");
        return Err(Refused::new(request, 503, text));
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
