//! `next_upstream_timeout`: the deadline of the whole walk.

use nginx_sys::{ngx_add_timer, ngx_del_timer, ngx_event_t, ngx_http_run_posted_requests};

use super::walking::{Phase, Walking};
use crate::nginx::{self, fault, guard, Upstream};

/// The timer of a walk.
#[repr(C)]
pub struct Timer {
    /// First, so that the event that nginx hands back is the timer.
    event: ngx_event_t,
    walking: *mut Walking,
}

/// Starts the clock when the first upstream is chosen: reading the request's body is the client's
/// time. None: memory is short.
#[inline]
pub fn arm(walking: &mut Walking) -> Option<()> {
    let timeout = walking.upstrand().timeout;
    if walking.started.is_none() {
        walking.started = Some(nginx::now());
        if timeout > 0 {
            return set(walking, timeout);
        }
    } else if walking.expired {
        // It passed while nothing could be cut: at the next turn of the event loop there is.
        start(walking, 1);
    }
    Some(())
}

#[cold]
#[inline(never)]
fn set(walking: &mut Walking, timeout: u64) -> Option<()> {
    let timer = walking.request.pool()?.zeroed::<Timer>(1)?.as_ptr();
    // SAFETY: fresh memory of the request's pool; zeros are an empty event.
    unsafe {
        (*timer).walking = walking;
        (*timer).event.handler = Some(passed);
        // In debug logs nginx reads a connection there.
        (*timer).event.data = walking.request.connection().cast();
        (*timer).event.log = walking.request.log();
    }
    walking.timer = timer;
    start(walking, timeout);
    Some(())
}

#[inline(never)]
fn start(walking: &mut Walking, ms: u64) {
    // SAFETY: the timer is NULL or lives in the request's pool; disarm() ends it before the pool
    // does.
    if let Some(timer) = unsafe { walking.timer.as_mut() } {
        let ms = usize::try_from(ms).unwrap_or(usize::MAX >> 1);
        // SAFETY: as above.
        unsafe { ngx_add_timer(&mut timer.event, ms) };
    }
}

/// Stops the clock.
pub fn disarm(walking: &mut Walking) {
    // SAFETY: as above.
    if let Some(timer) = unsafe { walking.timer.as_mut() } {
        if timer.event.timer_set() != 0 {
            // SAFETY: the timer is set.
            unsafe { ngx_del_timer(&mut timer.event) };
        }
    }
}

/// Whether the deadline has passed.
pub fn has_passed(walking: &Walking) -> bool {
    let timeout = walking.upstrand().timeout;
    walking.expired
        || (timeout > 0
            && walking
                .started
                .is_some_and(|started| nginx::now().saturating_sub(started) >= timeout))
}

unsafe extern "C" fn passed(ev: *mut ngx_event_t) {
    guard((), || {
        // SAFETY: the event is the first field of a walk's timer.
        let walking = unsafe { ev.cast::<Timer>().as_ref().and_then(|t| t.walking.as_mut()) };
        let Some(walking) = walking else {
            return;
        };
        let request = walking.request;
        let connection = request.connection();
        request.set_log_request();
        walking.expired = true;
        let client_was_late = request.is_unbuffered() && request.is_reading_body();
        walking.others_were_late |= client_was_late || walking.phase == Phase::Pending;
        match (walking.phase, request.upstream()) {
            (Phase::Running, Some(upstream)) => cut(walking, upstream),
            (Phase::Pending, _) => request.stop_waiting(),
            _ => (),
        }
        // SAFETY: the connection outlives the event; it may be closed, which the function sees.
        unsafe { ngx_http_run_posted_requests(connection) };
    });
}

/// Ends the running try as nginx ends one that timed out.
fn cut(walking: &mut Walking, upstream: Upstream) {
    fault::point("deadline");
    let request = walking.request;
    if !upstream.is_alive() || upstream.fields().header_sent() != 0 {
        return;
    }
    // SAFETY: the connection is NULL or live while the upstream is, and so is its read event.
    let read = unsafe {
        let connection = upstream.fields().peer.connection.as_ref();
        connection.and_then(|connection| connection.read.as_mut())
    };
    let handler = upstream.fields().read_event_handler;
    if let (Some(read), Some(handler)) = (read, handler) {
        upstream.fields_mut().peer.tries = 0;
        read.set_timedout(1);
        // SAFETY: before an answer this is nginx's reader of the header, which sees the timeout
        // first.
        unsafe { handler(request.as_ptr(), upstream.as_ptr()) };
    }
}
