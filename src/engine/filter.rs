//! The header filter: a try's answer comes, and the walk goes on or ends.

use core::ptr;

use nginx_sys::{
    ngx_http_output_header_filter_pt, ngx_http_request_t, ngx_http_top_header_filter, ngx_int_t,
    ngx_uint_t, NGX_HTTP_INTERNAL_SERVER_ERROR,
};
use walk::{Answer, Cause, Reason, State, Try};

use super::walking::{Phase, Then, Walking};
use super::{body, counts, deadline, intercept, peer, reentry};
use crate::nginx::{self, fault, guard_or, Request, Upstream, DONE, ERROR};

/// The filter below ours. nginx builds the chain anew for each configuration, in the same order.
static mut NEXT: ngx_http_output_header_filter_pt = None;

/// Puts the filter into nginx's chain; called once for each configuration.
pub fn install() {
    // SAFETY: the chain is built by the one thread that reads a configuration.
    unsafe {
        NEXT = ngx_http_top_header_filter;
        ngx_http_top_header_filter = Some(header_filter);
    }
}

fn next(request: Request) -> ngx_int_t {
    // SAFETY: set before any request is served.
    match unsafe { *ptr::addr_of!(NEXT) } {
        // SAFETY: as nginx would call it.
        Some(next) => unsafe { next(request.as_ptr()) },
        None => ERROR,
    }
}

unsafe extern "C" fn header_filter(r: *mut ngx_http_request_t) -> ngx_int_t {
    // SAFETY: as nginx calls it.
    let Some(request) = (unsafe { Request::from_ptr(r) }) else {
        return ERROR;
    };
    let Some(walking) = Walking::of(request) else {
        return next(request);
    };
    if core::mem::take(&mut walking.is_left) {
        return DONE;
    }
    match walking.phase {
        Phase::Pending | Phase::Running => {
            match guard_or(|| give_up(request), || arrived(walking)) {
                Next::Pass => next(request),
                Next::Left(rc) => rc,
            }
        }
        _ => next(request),
    }
}

/// Decides about an answer that nginx is about to make of `status`, before it does so. True: it is
/// the walk's final one.
#[cold]
pub fn is_final(walking: &mut Walking, status: ngx_uint_t) -> bool {
    let request = walking.request;
    let err_status = request.fields().err_status;
    request.fields_mut().err_status = status;
    let next = guard_or(|| give_up(request), || arrived(walking));
    request.fields_mut().err_status = err_status;
    walking.is_left = matches!(next, Next::Left(_));
    !walking.is_left
}

/// After a panic: the walk is over. The upstream's answer becomes a 500; one that nginx made is
/// being sent already.
fn give_up(request: Request) -> Next {
    if let Some(walking) = Walking::of(request) {
        walking.phase = Phase::Final;
    }
    if request.upstream().is_some_and(|u| u.is_alive()) {
        Next::Left(NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t)
    } else {
        Next::Pass
    }
}

enum Next {
    /// The answer is the client's.
    Pass,
    /// The answer is dropped.
    Left(ngx_int_t),
}

/// How an answer came about; the words are nginx's.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The upstream is not finalized yet.
    pub alive: bool,
    /// The answer came out of the cache.
    pub cached: bool,
    /// The try's upstream was chosen.
    running: bool,
    /// It failed, and the answer is what the cache has kept for that case.
    stale: bool,
}

#[inline(always)]
fn arrived(walking: &mut Walking) -> Next {
    fault::point("filter");
    let request = walking.request;
    let Some(upstream) = request.upstream() else {
        end(walking, Reason::Final);
        return Next::Pass;
    };
    let kind = Kind {
        alive: upstream.is_alive(),
        cached: request.is_cached(),
        running: walking.phase == Phase::Running,
        stale: false,
    };
    if kind.cached || walking.from_cache {
        return cached(walking, upstream, kind);
    }
    decide(walking, upstream, kind, |answer| answer)
}

/// The answer came out of the cache, whether or not the upstream was asked before, or was to come
/// from there.
#[cold]
fn cached(walking: &mut Walking, upstream: Upstream, mut kind: Kind) -> Next {
    const STALE: u8 = nginx_sys::NGX_HTTP_CACHE_STALE as u8;
    if walking.from_cache {
        walking.forget_running();
        kind.running = false;
    }
    let was_asked = kind.cached && kind.running;
    kind.stale = was_asked && upstream.cache_status() == STALE;
    decide(walking, upstream, kind, |answer| match was_asked {
        true => behind_cached(upstream).unwrap_or(answer),
        false => answer,
    })
}

/// `own` turns the answer at hand into what the upstream itself has said.
#[inline(always)]
fn decide(
    walking: &mut Walking,
    upstream: Upstream,
    kind: Kind,
    own: impl FnOnce(Answer) -> Answer,
) -> Next {
    let Some(answer) = answer(walking, upstream, kind) else {
        walking.end_unanswered(Reason::Final);
        return Next::Pass;
    };
    // The cache may have answered.
    walking.give_back_probe();

    let own = own(answer);
    // A stale answer is good enough only if no upstream has a better one.
    let judged = if kind.stale { own } else { answer };
    let failed = walking.upstrand().failures.matches(judged);
    let was_cut = walking.expired && judged == CUT;
    let was_asked = kind.running && !walking.nobody;
    if failed || was_cut {
        let was_asked = was_asked && (kind.stale || !kind.cached);
        return bad(walking, upstream, kind, judged, was_asked, failed);
    }
    if was_asked {
        let state = walking.state();
        remember(walking, state, None);
        counts::answered(walking, state, Reason::Final, own, None);
    }
    over(walking, upstream, kind, answer, Reason::Final)
}

/// What the upstream itself said where nginx gives a stale answer instead, or has revalidated one.
#[cold]
fn behind_cached(upstream: Upstream) -> Option<Answer> {
    // SAFETY: the state of a live upstream, or NULL.
    let status = unsafe { upstream.fields().state.as_ref() }?.status;
    let status = u16::try_from(status).ok()?;
    // nginx has freed the peer if it made the status itself.
    Some(match upstream.fields().peer.sockaddr.is_null() {
        false => Answer::Own(status),
        true if peer::has_unparsed_answer(upstream) => Answer::InvalidHeader,
        true => Answer::Made(status),
    })
}

/// The answer is listed as a failure, or the deadline cut the try.
#[inline(never)]
fn bad(
    walking: &mut Walking,
    upstream: Upstream,
    kind: Kind,
    answer: Answer,
    was_asked: bool,
    failed: bool,
) -> Next {
    let request = walking.request;
    let state = walking.state();
    let was_cut = walking.expired && answer == CUT;
    let cause = if was_cut {
        Reason::Deadline
    } else {
        answer.reason()
    };
    if was_asked {
        remember(walking, state, failed.then_some(cause));
    }
    if failed && kind.alive && !kind.cached {
        // A listed status is never stored, be the answer the final one.
        upstream.fields_mut().set_cacheable(0);
        upstream.fields_mut().set_store(0);
    }
    let verdict = verdict(walking, upstream, was_cut);
    let reason = match &verdict {
        Ok(_) => answer.reason(),
        Err(_) if kind.stale => Reason::Final,
        Err(reason) => *reason,
    };
    if was_asked {
        counts::answered(walking, state, reason, answer, Some(cause));
    }
    match verdict {
        Ok(next) => {
            state.totals.count_failover();
            walking.record(reason);
            if kind.stale {
                walking.stale.get_or_insert(walking.member);
            }
            walking.then = Some(Then::Try(next));
            walking.unbuffered = request.is_unbuffered();
            walking.resend = walking.unbuffered && body::was_sent(walking, upstream);
            Next::Left(reentry::leave(walking, upstream, kind))
        }
        Err(_) => {
            let mut last = answer;
            if kind.stale {
                last = Answer::Own(upstream.status());
            } else if let Some(stale) = stale_to_give(walking) {
                walking.record(reason);
                walking.from_cache = true;
                walking.then = Some(Then::Try(stale));
                walking.unbuffered = false;
                return Next::Left(reentry::leave(walking, upstream, kind));
            }
            over(walking, upstream, kind, last, reason)
        }
    }
}

/// The try that gives a stale answer which was dropped while a better one was to be had.
#[inline]
fn stale_to_give(walking: &mut Walking) -> Option<Try> {
    let member = walking.stale.take()?;
    let request = walking.request;
    if request.client_gone() || request.is_unbuffered() || request.is_background() {
        return None;
    }
    Some(Try {
        member,
        probe: false,
        last_resort: false,
    })
}

/// The walk ends with this answer, which the client gets if no other location is to answer.
#[inline(always)]
fn over(
    walking: &mut Walking,
    upstream: Upstream,
    kind: Kind,
    answer: Answer,
    reason: Reason,
) -> Next {
    let totals = walking.state().totals;
    totals.count_end(reason);
    end(walking, reason);
    match intercept::uri(walking, answer) {
        Some(uri) => {
            totals.count_interception();
            walking.then = Some(Then::Intercept(uri));
            Next::Left(reentry::leave(walking, upstream, kind))
        }
        None => Next::Pass,
    }
}

/// The upstream's answer; None if this is none: nginx found fault with the client's request, or
/// the pass asked someone else.
fn answer(walking: &Walking, upstream: Upstream, kind: Kind) -> Option<Answer> {
    if kind.cached || (kind.alive && kind.running) {
        return Some(Answer::Own(upstream.status()));
    }
    let made = u16::try_from(walking.request.fields().err_status).ok()?;
    if kind.alive {
        return None;
    }
    if kind.running {
        if walking.invalid_header {
            return Some(Answer::InvalidHeader);
        }
        return (made >= 500).then_some(Answer::Made(made));
    }
    remembered_by_cache(walking.request, upstream).then_some(Answer::Own(made))
}

/// Whether the cache remembers an error of an earlier request.
#[cfg(ngx_feature = "http_cache")]
fn remembered_by_cache(request: Request, upstream: Upstream) -> bool {
    const HIT: u8 = nginx_sys::NGX_HTTP_CACHE_HIT as u8;
    // SAFETY: r->cache is NULL or lives in the request's pool.
    let cache = unsafe { request.fields().cache.as_ref() };
    upstream.cache_status() == HIT && cache.is_some_and(|cache| cache.error != 0)
}

#[cfg(not(ngx_feature = "http_cache"))]
fn remembered_by_cache(_request: Request, _upstream: Upstream) -> bool {
    false
}

/// Ends the member's mark after a good answer, sets it after a failure.
#[inline]
fn remember(walking: &mut Walking, state: &State<'_>, failure: Option<Reason>) {
    let now = nginx::now();
    let took = now.saturating_sub(walking.asked);
    let plan = &walking.upstrand().plan;
    match failure {
        None => state.clear(walking.member, now, walking.asked),
        Some(cause) => {
            let interval = plan.interval(walking.member);
            let blamed = cause != Reason::Deadline || is_to_blame(walking, took);
            if interval > 0 && blamed {
                let until = now.saturating_add(interval);
                state.mark(plan, walking.member, Cause::Failure(cause), now, until);
            }
        }
    }
    walking.longest = walking.longest.max(took);
}

/// Whether a try that the deadline cut was silent: none before it took longer, and it did not wait
/// for the client or another request.
fn is_to_blame(walking: &Walking, took: u64) -> bool {
    took >= walking.longest && !walking.others_were_late
}

/// The answer of a try that the deadline cut.
const CUT: Answer = Answer::Made(504);

/// The next try after a failure, or why there is none.
fn verdict(walking: &mut Walking, upstream: Upstream, was_cut: bool) -> Result<Try, Reason> {
    let request = walking.request;
    let upstrand = walking.upstrand();
    if walking.from_cache {
        return Err(Reason::Exhausted);
    }
    if was_cut {
        return Err(Reason::Deadline);
    }
    if request.client_gone() {
        return Err(Reason::Aborted);
    }
    if deadline::has_passed(walking) {
        return Err(Reason::Deadline);
    }
    let sent = walking.phase == Phase::Running && body::was_sent(walking, upstream);
    if sent && request.is_non_idempotent() && !upstrand.failures.non_idempotent() {
        return Err(Reason::NonIdempotent);
    }
    if sent && body::is_lost(walking, upstream) {
        return Err(Reason::Unbuffered);
    }
    let limit = upstrand.plan.tries;
    if limit > 0 && walking.walk.visited() >= limit {
        return Err(Reason::Tries);
    }
    if walking.pinned {
        return Err(Reason::Exhausted);
    }
    walking.next().ok_or(Reason::Exhausted)
}

/// The walk is over.
fn end(walking: &mut Walking, reason: Reason) {
    walking.record(reason);
    walking.end();
}
