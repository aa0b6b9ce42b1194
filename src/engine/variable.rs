//! `$upstrand_NAME` and the variables of `dynamic_upstrand`.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nginx_sys::{ngx_http_request_t, ngx_int_t, ngx_str_t, ngx_variable_value_t, NGX_LOG_ERR};
use walk::{Try, Walk};

use super::walking::{Phase, Walking};
use super::{clones, shortcut, subrequest};
use crate::conf::{LocConf, MainConf, Source, Upstrand};
use crate::nginx::{self, bytes, callback, fault, Request, Text, Value, ERROR, OK};

/// How often a variable whose value follows the walk was evaluated: what was made from one must
/// not be cached. A worker has one thread.
static EVALUATIONS: AtomicU64 = AtomicU64::new(0);

/// Notes that a variable whose value follows the walk is evaluated.
pub fn note_evaluation() {
    EVALUATIONS.store(evaluations().wrapping_add(1), Relaxed);
}

/// How often such variables were evaluated.
pub fn evaluations() -> u64 {
    EVALUATIONS.load(Relaxed)
}

/// `$upstrand_NAME`; `data` is the upstrand.
///
/// # Safety
///
/// Called by nginx to evaluate the variable.
pub unsafe extern "C" fn upstrand_variable(
    r: *mut ngx_http_request_t,
    v: *mut ngx_variable_value_t,
    data: usize,
) -> ngx_int_t {
    note_evaluation();
    // SAFETY: as nginx calls it; `data` was set to a boxed upstrand of this configuration.
    unsafe {
        callback::variable(r, v, |request, value| {
            let upstrand = (data as *const Upstrand).as_ref();
            give(
                value,
                upstrand.and_then(|upstrand| host(request, upstrand, data)),
            )
        })
    }
}

/// A variable of `dynamic_upstrand`; `data` is its number.
///
/// # Safety
///
/// Called by nginx to evaluate the variable.
pub unsafe extern "C" fn dynamic_variable(
    r: *mut ngx_http_request_t,
    v: *mut ngx_variable_value_t,
    data: usize,
) -> ngx_int_t {
    note_evaluation();
    // SAFETY: as nginx calls it.
    unsafe {
        callback::variable(r, v, |request, value| {
            // A running walk keeps its upstrand, even if the sources say another name by now.
            if let Some(walking) = pending(request).filter(|walking| walking.asked_by == data) {
                return give(value, Some(ask(walking)));
            }
            match chosen(request, data) {
                Some(upstrand) => give(value, host(request, upstrand, data)),
                None => {
                    value.not_found();
                    OK
                }
            }
        })
    }
}

fn give(value: Value<'_>, host: Option<ngx_str_t>) -> ngx_int_t {
    match host {
        Some(host) => {
            value.set(host);
            OK
        }
        None => ERROR,
    }
}

/// The upstrand that the line in force names.
fn chosen(request: Request, variable: usize) -> Option<&'static Upstrand> {
    let main: &MainConf = request.main_conf(crate::module())?;
    let loc: &LocConf = request.loc_conf(crate::module())?;
    let (_, line) = loc.dynamic.iter().find(|(own, _)| *own == variable)?;
    for source in main.dynamic.sources(*line) {
        match source {
            // SAFETY: boxed in the main configuration, which outlives the request.
            Source::Upstrand(upstrand) => return unsafe { upstrand.as_ref() },
            Source::Literal(_) => return None,
            Source::Variable(index) => {
                let name = nginx::variable(request, *index);
                if name.len > 0 {
                    let upstrand = main.upstrand(bytes(&name))?;
                    // SAFETY: as above.
                    return unsafe { core::ptr::from_ref(upstrand).as_ref() };
                }
            }
        }
    }
    None
}

/// The walk whose pass is evaluating its URL.
fn pending<'a>(request: Request) -> Option<&'a mut Walking> {
    let asking = request.upstream().is_some_and(|u| u.is_asking());
    Walking::of(request).filter(|walking| asking && walking.phase == Phase::Pending)
}

/// The upstream's name that the variable is to show. Only a pass that evaluates its URL begins a
/// walk; anyone else reads without side effects.
fn host(request: Request, upstrand: &Upstrand, asked_by: usize) -> Option<ngx_str_t> {
    fault::point("variable");
    let walking = Walking::of(request);
    let is_over = walking.as_ref().is_none_or(|walking| walking.is_over());
    if is_over && request.upstream().is_some_and(|u| u.is_asking()) {
        return begin(request, upstrand, asked_by);
    }
    if let Some(walking) = walking {
        if walking.is_of(upstrand) {
            return Some(ask(walking));
        }
    }
    let state = upstrand.memory.state();
    let member = Walk::preview(&upstrand.plan, state, nginx::now(), nginx::random).unwrap_or(0);
    Some(upstrand.members.get(member)?.uscf.fields().host)
}

fn begin(request: Request, upstrand: &Upstrand, asked_by: usize) -> Option<ngx_str_t> {
    let origin = clones::origin(request, upstrand);
    let walking = Walking::begin(request, upstrand, asked_by)?;
    let first = match origin {
        Some(origin) => {
            walking.pinned = origin.pinned;
            walking.nobody = origin.nobody;
            let state = walking.state();
            let probe =
                !origin.pinned && state.claim_probe(&upstrand.plan, origin.member, nginx::now());
            let first = walking.walk.start_at(&upstrand.plan, origin.member);
            first.map(|first| Try { probe, ..first })
        }
        None => walking.next().or_else(|| all_drain(walking)),
    };
    walking.start_try(first?)?;
    walking.state().totals.count_walk();
    // No error_page for a failed answer, nor for the final one. What nginx finds fault with while it
    // reads a body is the client's request: there it acts.
    if !request.is_body_due() {
        request.set_error_page(true);
    }
    subrequest::hold_owner(walking);
    Some(ask(walking))
}

/// The try that stands for none: the request fails as nginx has it fail when no server is live.
#[cold]
fn all_drain(walking: &mut Walking) -> Option<Try> {
    ngx::ngx_log_error!(
        NGX_LOG_ERR,
        walking.request.log(),
        "all upstreams in upstrand \"{}\" are draining",
        Text(walking.upstrand().name_bytes())
    );
    walking.nobody = true;
    let plan = &walking.upstrand().plan;
    walking.walk.start_at(plan, 0)
}

/// The upstream of the try at hand; nginx is about to look for it if the try has yet to run.
fn ask(walking: &Walking) -> ngx_str_t {
    if let (Phase::Pending, Some(member)) = (walking.phase, walking.current()) {
        shortcut::bring_to_front(walking.request, member.uscf);
    }
    walking.host()
}
