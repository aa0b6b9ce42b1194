//! A try runs once nginx has chosen its upstream: `peer.init` of the members of upstrands.

use core::ffi::c_void;
use core::ptr;

use nginx_sys::{
    ngx_event_t, ngx_http_request_t, ngx_http_upstream_conf_t, ngx_http_upstream_srv_conf_t,
    ngx_http_upstream_t, ngx_int_t, ngx_list_t, ngx_peer_connection_t, ngx_table_elt_t, NGX_BUSY,
    NGX_DECLINED, NGX_HTTP_BAD_GATEWAY,
};
use walk::Answer;

use super::shortcut::Places;
use super::walking::{Phase, Spare, Walking};
use super::{body, deadline};
use crate::conf::{LocConf, MainConf};
use crate::nginx::{
    self, callback, fault, guard, Conf, ConfResult, Pool, Request, SrvConf, Upstream, ERROR, OK,
};
use crate::upstream::conf_of;

/// Puts ours in the place of `peer.init` of each member, once all upstreams are initialised.
pub fn wrap_members(conf: Conf, main: &mut MainConf) -> ConfResult {
    main.places = Places::new(conf)?;
    for (number, uscf) in conf.upstreams().enumerate() {
        if let Some(own) = conf_of(uscf) {
            own.number = number;
        }
    }
    for member in main.upstrands.iter().flat_map(|upstrand| &upstrand.members) {
        let Some(own) = conf_of(member.uscf) else {
            continue;
        };
        if own.member_init.is_none() {
            own.member_init = member.uscf.fields().peer.init;
            member.uscf.fields_mut().peer.init = Some(init_peer);
        }
    }
    Ok(())
}

unsafe extern "C" fn init_peer(
    r: *mut ngx_http_request_t,
    us: *mut ngx_http_upstream_srv_conf_t,
) -> ngx_int_t {
    // SAFETY: as nginx calls it.
    unsafe {
        callback::init_peer(r, us, |request, uscf| {
            let Some(original) = conf_of(uscf).and_then(|own| own.member_init) else {
                return ERROR;
            };
            let rc = original(r, us);
            if rc != OK {
                return rc;
            }
            match Walking::of(request).filter(|walking| waits_for(walking, uscf)) {
                Some(walking) => run(walking).map_or(ERROR, |()| OK),
                None => OK,
            }
        })
    }
}

fn waits_for(walking: &Walking, uscf: SrvConf) -> bool {
    walking.phase == Phase::Pending && walking.current().is_some_and(|m| m.uscf == uscf)
}

fn run(walking: &mut Walking) -> Option<()> {
    fault::point("peer");
    let request = walking.request;
    let upstream = request.upstream()?;
    // A body that is passed on while it comes in may not be there yet.
    request.set_error_page(true);
    walking.phase = Phase::Running;
    walking.asked = nginx::now();
    let states = walking.states_len();
    if let Some(record) = walking.last_try() {
        record.first = states;
        record.end = states;
    }
    if walking.upstrand().tells_invalid_header || upstream.fields().cacheable() != 0 {
        walking.finalize_request = upstream.fields().finalize_request;
        upstream.fields_mut().finalize_request = Some(finalize_request);
    }
    keep_own_error_body(request, upstream)?;
    body::resume_unbuffered(walking, upstream)?;
    // The client may have sent its body for a while, and an operator taken the upstream back.
    walking.nobody = walking.nobody && walking.state().is_draining(walking.member);
    if walking.nobody {
        upstream.fields_mut().peer.get = Some(no_live_server);
    }
    if walking.from_cache {
        request.want_stale();
        upstream.fields_mut().peer.get = Some(nobody_to_ask);
        return Some(());
    }
    deadline::arm(walking)
}

/// `peer.get` of a try that is to fail: nginx then logs that there are no live upstreams.
unsafe extern "C" fn no_live_server(
    _pc: *mut ngx_peer_connection_t,
    _data: *mut c_void,
) -> ngx_int_t {
    NGX_BUSY as ngx_int_t
}

/// `peer.get` of a try that is to give a stale answer: nginx gives one in place of an error.
unsafe extern "C" fn nobody_to_ask(
    pc: *mut ngx_peer_connection_t,
    _data: *mut c_void,
) -> ngx_int_t {
    // SAFETY: as nginx calls it.
    if let Some(pc) = unsafe { pc.as_mut() } {
        pc.tries = 0;
    }
    NGX_DECLINED as ngx_int_t
}

/// Has the answer read to the lists of the one before, and to a buffer that is made when the answer
/// comes: until then the request holds none.
pub fn await_answer(walking: &mut Walking) {
    let Some(upstream) = walking.request.upstream().filter(|u| u.is_alive()) else {
        return;
    };
    let fields = upstream.fields_mut();
    if walking.phase == Phase::Running && walking.spare.is_some() && fields.buffer.start.is_null() {
        if let Some(reader) = fields.read_event_handler {
            walking.reader = Some(reader);
            fields.read_event_handler = Some(answer_comes);
        }
    }
}

/// `u->read_event_handler` until the answer begins to come. Whoever changes the handler meanwhile, as
/// nginx does for the next server of the upstream, has nginx make all that it needs by itself.
unsafe extern "C" fn answer_comes(r: *mut ngx_http_request_t, u: *mut ngx_http_upstream_t) {
    // SAFETY: as nginx calls it.
    let (Some(request), Some(upstream)) =
        (unsafe { (Request::from_ptr(r), Upstream::from_ptr(u)) })
    else {
        return;
    };
    let Some(walking) = Walking::find(request) else {
        return;
    };
    let Some(reader) = walking.reader.take() else {
        return;
    };
    upstream.fields_mut().read_event_handler = Some(reader);
    guard((), || {
        // Where memory is short nginx finds out by itself.
        let _ = give_buffer(walking, upstream);
    });
    // SAFETY: nginx's own, as nginx would have called it.
    unsafe { reader(r, u) };
}

/// Gives the try a header buffer and lists, prepared as `ngx_http_upstream_reinit()` does it for the
/// next server of an upstream. None: memory is short.
fn give_buffer(walking: &mut Walking, upstream: Upstream) -> Option<()> {
    let fields = upstream.fields_mut();
    let spare = walking.spare.filter(|_| fields.buffer.start.is_null());
    let Some(Spare {
        lists: [headers, trailers],
        bufs,
    }) = spare
    else {
        return Some(());
    };
    let pool = walking.request.pool()?;
    let size = upstream.conf()?.buffer_size;
    let start = walking.buffer.take(walking.request, size)?;
    walking.spare = None;
    reuse_list(&mut fields.headers_in.headers, pool, headers, HEADERS);
    reuse_list(&mut fields.headers_in.trailers, pool, trailers, TRAILERS);
    if fields.free_bufs.is_null() {
        fields.free_bufs = bufs;
    }
    let skipped = header_start(walking.request);
    fields.buffer.start = start;
    fields.buffer.pos = start.wrapping_add(skipped);
    fields.buffer.last = fields.buffer.pos;
    fields.buffer.end = start.wrapping_add(size);
    fields.buffer.set_temporary(1);
    fields.buffer.tag = fields.output.tag;
    Some(())
}

/// Places in the lists of headers and trailers: those that nginx makes.
pub const HEADERS: usize = 8;
pub const TRAILERS: usize = 2;

/// An empty list that has room already.
fn reuse_list(list: &mut ngx_list_t, pool: Pool, elts: *mut c_void, nalloc: usize) {
    list.part.elts = elts;
    list.part.nelts = 0;
    list.part.next = ptr::null_mut();
    list.last = &mut list.part;
    list.size = size_of::<ngx_table_elt_t>();
    list.nalloc = nalloc;
    list.pool = pool.as_ptr();
}

/// The room that a cache entry's own header takes at the front of the buffer.
#[cfg(ngx_feature = "http_cache")]
fn header_start(request: Request) -> usize {
    // SAFETY: r->cache is NULL or lives in the request's pool.
    unsafe { request.fields().cache.as_ref() }.map_or(0, |cache| cache.header_start)
}

#[cfg(not(ngx_feature = "http_cache"))]
fn header_start(_request: Request) -> usize {
    0
}

/// Without this `*_intercept_errors` would replace the upstream's body by nginx's page. The copy
/// of the pass's configuration belongs to the location and is made once: nginx may tell idle
/// connections apart by its address.
#[inline]
fn keep_own_error_body(request: Request, upstream: Upstream) -> Option<()> {
    let conf = upstream.conf()?;
    if conf.intercept_errors == 0 {
        return Some(());
    }
    replace_conf(request, upstream, conf)
}

#[inline(never)]
fn replace_conf(
    request: Request,
    upstream: Upstream,
    conf: &ngx_http_upstream_conf_t,
) -> Option<()> {
    let original = upstream.fields().conf;
    let loc: &LocConf = request.loc_conf(crate::module())?;
    let copy = match loc.without_intercept.get() {
        Some((of, copy)) if of == original => copy,
        _ => {
            // SAFETY: the cycle's pool lives as long as the configuration.
            let pool = unsafe { Pool::from_ptr((*nginx_sys::ngx_cycle).pool) }?;
            // SAFETY: plain data.
            let mut copy: ngx_http_upstream_conf_t = unsafe { core::ptr::read(conf) };
            copy.intercept_errors = 0;
            let copy = pool.put(copy)?.as_ptr();
            loc.without_intercept.set(Some((original, copy)));
            copy
        }
    };
    upstream.fields_mut().conf = copy;
    Some(())
}

/// `u->finalize_request` of a running try: what can be seen of the try before nginx ends it.
unsafe extern "C" fn finalize_request(r: *mut ngx_http_request_t, rc: ngx_int_t) {
    guard((), || {
        // SAFETY: as nginx calls it.
        let Some(request) = (unsafe { Request::from_ptr(r) }) else {
            return;
        };
        let Some(walking) = Walking::of(request) else {
            return;
        };
        if walking.phase == Phase::Running {
            if let Some(upstream) = request.upstream() {
                look(walking, upstream, rc);
            }
        }
        if let Some(original) = walking.finalize_request {
            // SAFETY: the gateway module's own, as nginx would have called it.
            unsafe { original(r, rc) };
        }
    });
}

fn look(walking: &mut Walking, upstream: Upstream, rc: ngx_int_t) {
    walking.invalid_header =
        rc == NGX_HTTP_BAD_GATEWAY as ngx_int_t && has_unparsed_answer(upstream);
    // nginx remembers a 502 or 504 in the cache before the header filter runs.
    let answer = if walking.invalid_header {
        Answer::InvalidHeader
    } else {
        Answer::Made(u16::try_from(rc).unwrap_or(0))
    };
    if walking.upstrand().failures.matches(answer) {
        upstream.fields_mut().set_cacheable(0);
    }
}

/// Whether the peer sent something and did nothing else wrong: it was not closed, reset or timed
/// out, so its header could not be parsed.
pub fn has_unparsed_answer(upstream: Upstream) -> bool {
    // SAFETY: the state and the connection of the last server are NULL or live.
    unsafe {
        let received = upstream
            .fields()
            .state
            .as_ref()
            .is_some_and(|state| state.bytes_received > 0);
        let read: Option<&ngx_event_t> = upstream
            .fields()
            .peer
            .connection
            .as_ref()
            .and_then(|connection| connection.read.as_ref());
        received && read.is_some_and(|ev| ev.eof() == 0 && ev.error() == 0 && ev.timedout() == 0)
    }
}
