//! The walk of a request.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use nginx_sys::{
    ngx_array_push, ngx_array_t, ngx_chain_t, ngx_http_cleanup_t, ngx_http_post_subrequest_t,
    ngx_http_posted_request_t, ngx_http_request_t, ngx_http_upstream_handler_pt,
    ngx_http_upstream_state_t, ngx_int_t, ngx_str_t, NGX_LOG_ERR,
};
use walk::{Reason, State, Try, Walk};

use super::body::Kept;
use super::buffer::Buffer;
use super::deadline::Timer;
use super::saved::Saved;
use super::{counts, deadline, subrequest};
use crate::conf::{Member, Upstrand};
use crate::nginx::{self, guard, CacheStatus, Request, Text};

/// Tries for which a walk needs no memory of their own.
const INLINE: usize = 2;

/// Tries for which there is room at once when those are used up. Arrays that nginx doubles leave as
/// much again behind in the pool, where no later try can use it.
const ROOM: usize = 16;

/// How far the try at hand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The pass has been given the upstream's name.
    Pending,
    /// nginx has chosen the upstream, and asks its servers.
    Running,
    /// The answer is dropped; `Then` comes next, once nginx has unwound.
    Leaving,
    /// The walk is over: the request is an ordinary one.
    Final,
}

/// What follows a dropped answer.
#[derive(Clone, Copy)]
pub enum Then {
    /// A try with another upstream.
    Try(Try),
    /// The location of `intercept_statuses`.
    Intercept(ngx_str_t),
}

/// What a dropped answer was read to and the next one can be read to, but for the buffer itself.
#[derive(Clone, Copy)]
pub struct Spare {
    /// The elements of the lists of headers and of trailers.
    pub lists: [*mut c_void; 2],
    /// A buffer for the body.
    pub bufs: *mut ngx_chain_t,
}

/// What is kept of a try: numbers only, variables are made from them when they are read.
#[derive(Clone, Copy)]
pub struct TryRecord {
    /// Index of the member.
    pub member: u32,
    /// Its servers are the states `first..end` of the request.
    pub first: u32,
    /// See `first`.
    pub end: u32,
    /// Why the walk went on or ended.
    pub reason: Reason,
    /// What the cache was to the answer.
    pub cache_status: CacheStatus,
}

/// The walk of a request; it lives in the request's pool.
// In this order, so that what is large and set later is not zeroed first.
#[repr(C)]
pub struct Walking {
    /// The request.
    pub request: Request,
    /// The upstrand; it lives as long as the configuration that serves the request.
    upstrand: *const Upstrand,
    /// The variable by which the pass asked.
    pub asked_by: usize,
    /// See `Phase`.
    pub phase: Phase,
    /// Where the walk stands.
    pub walk: Walk,
    /// The member of the try at hand.
    pub member: usize,
    /// The try at hand is the member's probe.
    pub probe: bool,
    /// What the probe has set the member's mark to last until, in ms.
    probe_until: u64,
    /// The request is a slice: it stays with its parent's upstream.
    pub pinned: bool,
    /// All upstreams are draining: the try fails as if its upstream had no live server.
    pub nobody: bool,
    tries: ngx_array_t,
    /// Where the first tries are kept.
    first_tries: [MaybeUninit<TryRecord>; INLINE],
    /// When the first upstream was chosen, in ms; None: none was yet.
    pub started: Option<u64>,
    /// When the upstream of the try at hand was chosen, in ms.
    pub asked: u64,
    /// The longest of the tries before, in ms.
    pub longest: u64,
    /// The deadline has passed.
    pub expired: bool,
    /// When it passed, the client had yet to send the rest of its body, or another request to fill
    /// a cache entry.
    pub others_were_late: bool,
    /// nginx's 502 of the try at hand comes from an answer that could not be parsed.
    pub invalid_header: bool,
    /// The body was unbuffered in the last try: the next one must read it so, too.
    pub unbuffered: bool,
    /// Something of that body was sent: what was kept of it is to be sent again.
    pub resend: bool,
    /// The answer of the walk, or of an earlier one of the request, was intercepted.
    pub intercepted: bool,
    /// What a dropped answer leaves for the next try.
    pub spare: Option<Spare>,
    /// The header buffer of the try at hand, if it is not nginx's.
    pub buffer: Buffer,
    /// The reader of the answer to come, while ours is in its place.
    pub reader: ngx_http_upstream_handler_pt,
    /// The member whose stale answer was dropped, as a better one might be had.
    pub stale: Option<usize>,
    /// The try at hand asks nobody: it is to give that answer.
    pub from_cache: bool,
    /// What comes after a dropped answer.
    pub then: Option<Then>,
    /// The answer that nginx is about to make is dropped already.
    pub is_left: bool,
    /// `u->finalize_request` of the try at hand.
    pub finalize_request: Option<unsafe extern "C" fn(*mut ngx_http_request_t, ngx_int_t)>,
    /// Whoever made the subrequest waits here while the walk goes on.
    pub owner: *mut ngx_http_post_subrequest_t,
    /// What stands in the owner's place.
    pub post: ngx_http_post_subrequest_t,
    /// What the request is posted with when a try is left.
    pub posted: ngx_http_posted_request_t,
    /// The timer of `next_upstream_timeout`; NULL: there is none.
    pub timer: *mut Timer,
    /// An earlier walk of the request, which was intercepted.
    pub previous: *mut Walking,
    /// Runs when the request ends; by its handler `find()` knows the walk.
    cleanup: ngx_http_cleanup_t,
    /// What was kept of an unbuffered body.
    pub kept: Kept,
    /// The request as it was before the first try.
    saved: MaybeUninit<Saved>,
}

impl Walking {
    /// Makes the walk of a request, without a try yet. None: memory is short.
    pub fn begin<'a>(
        request: Request,
        upstrand: &Upstrand,
        asked_by: usize,
    ) -> Option<&'a mut Walking> {
        let pool = request.pool()?;
        let previous = match Walking::find(request) {
            Some(walking) if walking.tries.nelts == 0 => walking.previous,
            Some(walking) => ptr::from_mut(walking),
            None => ptr::null_mut(),
        };
        let walking = pool.put(Walking {
            request,
            upstrand,
            asked_by,
            phase: Phase::Pending,
            walk: Walk::default(),
            member: 0,
            probe: false,
            probe_until: 0,
            pinned: false,
            nobody: false,
            tries: ngx_array_t {
                elts: ptr::null_mut(),
                nelts: 0,
                size: size_of::<TryRecord>(),
                nalloc: INLINE,
                pool: pool.as_ptr(),
            },
            first_tries: [const { MaybeUninit::uninit() }; INLINE],
            started: None,
            asked: 0,
            longest: 0,
            expired: false,
            others_were_late: false,
            invalid_header: false,
            unbuffered: false,
            resend: false,
            kept: Kept::default(),
            intercepted: false,
            spare: None,
            buffer: Buffer::NONE,
            reader: None,
            stale: None,
            from_cache: false,
            then: None,
            is_left: false,
            finalize_request: None,
            owner: ptr::null_mut(),
            post: ngx_http_post_subrequest_t {
                handler: None,
                data: ptr::null_mut(),
            },
            posted: ngx_http_posted_request_t {
                request: ptr::null_mut(),
                next: ptr::null_mut(),
            },
            timer: ptr::null_mut(),
            previous,
            cleanup: ngx_http_cleanup_t {
                handler: Some(request_ends),
                data: ptr::null_mut(),
                next: ptr::null_mut(),
            },
            saved: MaybeUninit::uninit(),
        })?;
        // SAFETY: just made, in the request's pool.
        let walking = unsafe { &mut *walking.as_ptr() };
        // It is large: saved in place.
        // SAFETY: memory for a Saved.
        unsafe { Saved::save(request, walking.saved.as_mut_ptr())? };
        walking.tries.elts = walking.first_tries.as_mut_ptr().cast();
        // SAFETY: an earlier walk of the same request, in its pool, or NULL.
        walking.intercepted = unsafe { previous.as_ref() }.is_some_and(|walk| walk.intercepted);

        // As ngx_http_cleanup_add() does it, with the entry in the walk itself.
        walking.cleanup.data = ptr::from_mut(walking).cast();
        // SAFETY: a request's main request is live.
        unsafe {
            let main = request.fields().main;
            walking.cleanup.next = (*main).cleanup;
            (*main).cleanup = &mut walking.cleanup;
        }
        request.set_ctx(crate::module(), ptr::from_mut(walking).cast());
        Some(walking)
    }

    /// The walk of a request, while nginx has not cleared the request's contexts.
    pub fn of<'a>(request: Request) -> Option<&'a mut Walking> {
        let ctx = request.ctx(crate::module());
        // SAFETY: begin() put it there, and a worker has one thread. A callback that holds the walk may
        // call nginx, which may call another that looks at it (a variable in proxy_set_header): that one
        // only reads, and what the outer one has written by then.
        unsafe { ctx.cast::<Walking>().as_mut() }
    }

    /// The last walk of a request, also after an internal redirect has cleared its contexts.
    pub fn find<'a>(request: Request) -> Option<&'a mut Walking> {
        if let Some(walking) = Walking::of(request) {
            return Some(walking);
        }
        // SAFETY: the cleanups of a client's request and its subrequests; begin() added each with
        // this handler.
        unsafe {
            let mut cleanup = (*request.fields().main).cleanup;
            while let Some(entry) = cleanup.as_ref() {
                if entry
                    .handler
                    .is_some_and(|f| ptr::eq(f as *const (), request_ends as *const ()))
                {
                    let walking = entry.data.cast::<Walking>().as_mut()?;
                    if walking.request == request {
                        if walking.phase == Phase::Pending {
                            // An error_page has left it before anyone was asked.
                            walking.end_unanswered(Reason::Final);
                        }
                        return Some(walking);
                    }
                }
                cleanup = entry.next;
            }
        }
        None
    }

    /// The upstrand.
    pub fn upstrand<'a>(&self) -> &'a Upstrand {
        // SAFETY: it lives as long as the configuration, which outlives the request.
        unsafe { &*self.upstrand }
    }

    /// Whether the walk is one of this upstrand.
    pub fn is_of(&self, upstrand: &Upstrand) -> bool {
        ptr::eq(self.upstrand, upstrand)
    }

    /// Whether no try is at hand any more.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Final
    }

    /// The request as it was before the first try.
    pub fn saved(&self) -> &Saved {
        // SAFETY: begin() saved it.
        unsafe { self.saved.assume_init_ref() }
    }

    /// Marks and turns.
    pub fn state<'a>(&self) -> &'a State<'a> {
        self.upstrand().memory.state()
    }

    /// The upstream of the try at hand.
    pub fn current<'a>(&self) -> Option<&'a Member> {
        self.upstrand().members.get(self.member)
    }

    /// The name by which nginx finds the upstream of the try at hand.
    pub fn host(&self) -> ngx_str_t {
        self.current()
            .map_or(ngx_str_t::empty(), |member| member.uscf.fields().host)
    }

    /// The next try, if an upstream is left.
    pub fn next(&mut self) -> Option<Try> {
        let upstrand = self.upstrand();
        self.walk
            .next(&upstrand.plan, self.state(), nginx::now(), nginx::random)
    }

    /// Makes room for further tries, and for what nginx records of their servers. None: memory is
    /// short.
    pub fn make_room(&mut self) -> Option<()> {
        if self.tries.nelts != INLINE {
            return Some(());
        }
        let plan = &self.upstrand().plan;
        let limit = match plan.tries {
            0 => ROOM,
            tries => ROOM.min(tries as usize),
        };
        let tries = limit.min(plan.intervals.len());
        let pool = self.request.pool()?;
        pool.reserve::<TryRecord>(&mut self.tries, tries)?;
        // Each of those to come has a server at least.
        let further = tries.saturating_sub(INLINE);
        let servers = (self.states_len() as usize).saturating_add(further);
        // SAFETY: NULL, or an array in the request's pool; no upstream is at work that keeps a state.
        match unsafe { self.request.fields().upstream_states.as_mut() } {
            Some(states) => pool.reserve::<ngx_http_upstream_state_t>(states, servers),
            None => Some(()),
        }
    }

    /// Begins a try. None: memory is short.
    #[inline]
    pub fn start_try(&mut self, next: Try) -> Option<()> {
        if next.last_resort {
            self.log_last_resort();
        }
        self.member = next.member;
        self.probe = next.probe;
        if next.probe {
            self.probe_until = self.state().until(next.member);
        }
        self.phase = Phase::Pending;
        self.then = None;
        self.invalid_header = false;
        self.finalize_request = None;
        let states = self.states_len();
        let record = TryRecord {
            member: u32::try_from(next.member).ok()?,
            first: states,
            end: states,
            reason: Reason::Running,
            cache_status: 0,
        };
        if let Some(place) = self.first_tries.get_mut(self.tries.nelts) {
            place.write(record);
            self.tries.nelts = self.tries.nelts.saturating_add(1);
            return Some(());
        }
        // SAFETY: the array is live; a new element of it.
        unsafe {
            let place = NonNull::new(ngx_array_push(&mut self.tries))?;
            place.cast::<TryRecord>().write(record);
        }
        Some(())
    }

    #[cold]
    #[inline(never)]
    fn log_last_resort(&self) {
        ngx::ngx_log_error!(
            NGX_LOG_ERR,
            self.request.log(),
            "all upstreams in upstrand \"{}\" are blacklisted, whitelisting them",
            Text(self.upstrand().name_bytes())
        );
    }

    /// The tries so far.
    pub fn tries(&self) -> &[TryRecord] {
        // SAFETY: an array of tries.
        unsafe { self.tries.as_slice() }
    }

    /// The try at hand.
    pub fn last_try(&mut self) -> Option<&mut TryRecord> {
        // SAFETY: an array of tries.
        unsafe { self.tries.as_slice_mut::<TryRecord>() }.last_mut()
    }

    /// The number of servers tried so far.
    pub fn states_len(&self) -> u32 {
        u32::try_from(self.request.states().len()).unwrap_or(u32::MAX)
    }

    /// The walk is over.
    pub fn end(&mut self) {
        self.phase = Phase::Final;
        deadline::disarm(self);
        subrequest::give_back_owner(self);
    }

    /// The walk is over without an answer of the try at hand. A try whose upstream was not even
    /// chosen is none: nginx found fault with the request, or the client left, before that.
    pub fn end_unanswered(&mut self, reason: Reason) {
        if self.phase == Phase::Pending {
            self.give_back_probe();
            self.tries.nelts = self.tries.nelts.saturating_sub(1);
            if let Some(last) = self.last_try() {
                self.member = last.member as usize;
            }
        } else {
            if !self.nobody {
                counts::unanswered(self, reason);
            }
            self.record(reason);
        }
        self.end();
    }

    /// If the try at hand is a probe that asked nobody, the next request may.
    pub fn give_back_probe(&mut self) {
        if self.probe && self.phase == Phase::Pending {
            self.probe = false;
            let (plan, until) = (&self.upstrand().plan, self.probe_until);
            self.state()
                .give_back_probe(plan, self.member, until, nginx::now());
        }
    }

    /// nginx gives what its cache has, for which it had a try run that asks nobody: takes back what
    /// it has recorded of that.
    pub fn forget_running(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Pending;
        let first = self.last_try().map_or(0, |record| record.first as usize);
        // SAFETY: an array in the request's pool. nginx still writes to its last element, which
        // keeps its memory; before the first one of the try stands nginx's separator.
        if let Some(states) = unsafe { self.request.fields().upstream_states.as_mut() } {
            states.nelts = states.nelts.min(first.saturating_sub(1));
        }
    }

    /// Ends the record of the try at hand.
    pub fn record(&mut self, reason: Reason) {
        let states = self.states_len();
        let cache_status = self.request.upstream().map_or(0, |u| u.cache_status());
        let running = self.phase == Phase::Running;
        if let Some(record) = self.last_try() {
            record.end = states;
            if !running {
                // No server was asked: what stands there is nginx's separator.
                record.first = states;
            }
            record.reason = reason;
            record.cache_status = cache_status;
        }
    }
}

/// The request ends, be it freed or terminated; its line in the log comes after this.
unsafe extern "C" fn request_ends(data: *mut c_void) {
    guard((), || {
        // SAFETY: begin() set it; the request's pool is still there.
        let Some(walking) = (unsafe { data.cast::<Walking>().as_mut() }) else {
            return;
        };
        match walking.phase {
            Phase::Pending | Phase::Running => {
                // `post_action` has its answer, which no filter sees.
                let reason = if walking.request.client_gone() {
                    Reason::Aborted
                } else {
                    Reason::Final
                };
                walking.end_unanswered(reason);
            }
            Phase::Leaving | Phase::Final => deadline::disarm(walking),
        }
        // By now nginx has dropped its list of cleanups, and may have cleared the contexts. The
        // last walk comes first.
        if walking.request.ctx(crate::module()).is_null() {
            let walk = ptr::from_mut(walking).cast();
            walking.request.set_ctx(crate::module(), walk);
        }
    });
}
