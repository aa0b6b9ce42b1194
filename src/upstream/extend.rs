//! `extend_single_peers;`
//!
//! nginx tries an upstream's only peer for ever. With a second one beside it that is always down,
//! the usual rules of `max_fails` and `fail_timeout` hold for the first.

use core::ffi::{c_char, c_void};

use nginx_sys::{
    ngx_command_t, ngx_conf_t, ngx_event_free_peer_pt, ngx_event_get_peer_pt, ngx_http_request_t,
    ngx_http_upstream_init_round_robin, ngx_http_upstream_server_t, ngx_http_upstream_srv_conf_t,
    ngx_int_t, ngx_peer_connection_t, ngx_uint_t, NGX_HTTP_UPSTREAM_FT_HTTP_429,
    NGX_HTTP_UPSTREAM_FT_HTTP_500, NGX_HTTP_UPSTREAM_FT_HTTP_502, NGX_HTTP_UPSTREAM_FT_HTTP_503,
    NGX_HTTP_UPSTREAM_FT_HTTP_504, NGX_HTTP_UPSTREAM_FT_NON_IDEMPOTENT, NGX_PEER_FAILED,
};

use super::{conf_of, fake, with_servers};
use crate::nginx::memory::{collect, push};
use crate::nginx::{
    callback, guard, Conf, ConfResult, Refused, Request, SrvConf, Upstream, ERROR, OK,
};

/// `extend_single_peers;`
///
/// # Safety
///
/// Called by nginx while it reads an `upstream{}` block.
pub unsafe extern "C" fn cmd_extend_single_peers(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: as nginx calls it.
    unsafe { callback::directive(cf, extend) }
}

fn extend(conf: Conf) -> ConfResult {
    let host = conf.upstream()?;
    let own = conf_of(host).ok_or(Refused::Logged)?;
    if own.extended {
        return Err(Refused::Directive(c"is duplicate"));
    }
    own.extended = true;
    own.extended_init_upstream = host
        .fields()
        .peer
        .init_upstream
        .or(Some(ngx_http_upstream_init_round_robin));
    host.fields_mut().peer.init_upstream = Some(init_upstream);
    Ok(())
}

/// The address by which an extended upstream's initialisation is known.
pub fn init_address() -> usize {
    init_upstream as *const () as usize
}

unsafe extern "C" fn init_upstream(
    cf: *mut ngx_conf_t,
    us: *mut ngx_http_upstream_srv_conf_t,
) -> ngx_int_t {
    // SAFETY: as nginx calls it.
    unsafe { callback::init_upstream(cf, us, init) }
}

fn init(conf: Conf, host: SrvConf) -> ConfResult<ngx_int_t> {
    let own = conf_of(host).ok_or(Refused::Logged)?;
    let original = own.extended_init_upstream.ok_or(Refused::Logged)?;
    let pool = conf.pool()?;
    let servers = host.servers();
    let mut extended = collect(servers.iter().copied())?;
    for backup in [0, 1] {
        if may_be_lone(servers, backup) {
            let mut server = fake::server(pool)?;
            server.set_backup(backup);
            push(&mut extended, server)?;
        }
    }
    let is_extended = extended.len() > servers.len();
    let rc = with_servers(host, extended, || {
        // SAFETY: as nginx calls it.
        unsafe { original(conf.as_ptr(), host.as_ptr()) }
    });

    if rc == OK && is_extended {
        own.extended_init = host.fields().peer.init;
        host.fields_mut().peer.init = Some(init_peer);
    }
    Ok(rc)
}

/// Whether nginx could see just one address in the main part (or in the backup part): names that
/// are resolved at run time may have any number.
fn may_be_lone(servers: &[ngx_http_upstream_server_t], backup: u32) -> bool {
    let part = servers.iter().filter(|server| server.backup() == backup);
    let (mut fixed, mut resolved) = (0usize, 0usize);
    for server in part {
        if is_resolved(server) {
            resolved = resolved.saturating_add(1);
        } else {
            fixed = fixed.saturating_add(server.naddrs);
        }
    }
    fixed == 1 || (fixed == 0 && resolved > 0)
}

/// Whether the server's name is resolved at run time.
#[cfg(upstream_resolve)]
pub fn is_resolved(server: &ngx_http_upstream_server_t) -> bool {
    server.host.len > 0
}

/// Whether the server's name is resolved at run time: this nginx can't.
#[cfg(not(upstream_resolve))]
pub fn is_resolved(_server: &ngx_http_upstream_server_t) -> bool {
    false
}

/// A request's view of an extended upstream: between nginx and the balancing method.
#[derive(Clone, Copy)]
struct ExtendedPeer {
    request: Request,
    upstream: Upstream,
    data: *mut c_void,
    get: ngx_event_get_peer_pt,
    free: ngx_event_free_peer_pt,
    #[cfg(ngx_feature = "http_ssl")]
    set_session: nginx_sys::ngx_event_set_peer_session_pt,
    #[cfg(ngx_feature = "http_ssl")]
    save_session: nginx_sys::ngx_event_save_peer_session_pt,
}

unsafe extern "C" fn init_peer(
    r: *mut ngx_http_request_t,
    us: *mut ngx_http_upstream_srv_conf_t,
) -> ngx_int_t {
    // SAFETY: as nginx calls it.
    unsafe {
        callback::init_peer(r, us, |request, host| {
            let Some(original) = conf_of(host).and_then(|own| own.extended_init) else {
                return ERROR;
            };
            let rc = original(r, us);
            if rc != OK {
                return rc;
            }
            wrap_peer(request).map_or(ERROR, |()| OK)
        })
    }
}

fn wrap_peer(request: Request) -> Option<()> {
    let upstream = request.upstream()?;
    let peer = &mut upstream.fields_mut().peer;
    let wrapped = request.pool()?.put(ExtendedPeer {
        request,
        upstream,
        data: peer.data,
        get: peer.get,
        free: peer.free,
        #[cfg(ngx_feature = "http_ssl")]
        set_session: peer.set_session,
        #[cfg(ngx_feature = "http_ssl")]
        save_session: peer.save_session,
    })?;
    peer.data = wrapped.as_ptr().cast();
    peer.get = Some(get_peer);
    peer.free = Some(free_peer);
    #[cfg(ngx_feature = "http_ssl")]
    {
        peer.set_session = Some(set_session);
        peer.save_session = Some(save_session);
    }
    Some(())
}

/// # Safety
///
/// `data` is what wrap_peer() made.
unsafe fn wrapped(data: *mut c_void) -> Option<ExtendedPeer> {
    // SAFETY: as the caller says; it lives in the request's pool.
    unsafe { data.cast::<ExtendedPeer>().as_ref() }.copied()
}

unsafe extern "C" fn get_peer(pc: *mut ngx_peer_connection_t, data: *mut c_void) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: nginx hands back the data that wrap_peer() set.
        let Some(peer) = (unsafe { wrapped(data) }) else {
            return ERROR;
        };
        // SAFETY: the call that nginx would have made.
        peer.get.map_or(ERROR, |get| unsafe { get(pc, peer.data) })
    })
}

unsafe extern "C" fn free_peer(
    pc: *mut ngx_peer_connection_t,
    data: *mut c_void,
    state: ngx_uint_t,
) {
    guard((), || {
        // SAFETY: as above.
        let Some(peer) = (unsafe { wrapped(data) }) else {
            return;
        };
        // nginx does not mark the last server of an upstream that it tries for a status: its
        // answer is the client's. For a lone one that would be never.
        let state = if state == 0 && failed_by_status(peer.request, peer.upstream) {
            NGX_PEER_FAILED as ngx_uint_t
        } else {
            state
        };
        if let Some(free) = peer.free {
            // SAFETY: the call that nginx would have made.
            unsafe { free(pc, peer.data, state) };
        }
    });
}

/// Whether `proxy_next_upstream` calls the answer a failure, by the rule of
/// `ngx_http_upstream_test_next()`.
fn failed_by_status(request: Request, upstream: Upstream) -> bool {
    let mut mask = match upstream.fields().headers_in.status_n {
        429 => NGX_HTTP_UPSTREAM_FT_HTTP_429,
        500 => NGX_HTTP_UPSTREAM_FT_HTTP_500,
        502 => NGX_HTTP_UPSTREAM_FT_HTTP_502,
        503 => NGX_HTTP_UPSTREAM_FT_HTTP_503,
        504 => NGX_HTTP_UPSTREAM_FT_HTTP_504,
        _ => return false,
    } as ngx_uint_t;
    if upstream.fields().request_sent() != 0 && request.is_non_idempotent() {
        mask |= NGX_HTTP_UPSTREAM_FT_NON_IDEMPOTENT as ngx_uint_t;
    }
    upstream
        .conf()
        .is_some_and(|conf| conf.next_upstream & mask == mask)
}

#[cfg(ngx_feature = "http_ssl")]
unsafe extern "C" fn set_session(pc: *mut ngx_peer_connection_t, data: *mut c_void) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as above.
        let Some(peer) = (unsafe { wrapped(data) }) else {
            return ERROR;
        };
        // SAFETY: the call that nginx would have made.
        peer.set_session
            .map_or(OK, |set| unsafe { set(pc, peer.data) })
    })
}

#[cfg(ngx_feature = "http_ssl")]
unsafe extern "C" fn save_session(pc: *mut ngx_peer_connection_t, data: *mut c_void) {
    guard((), || {
        // SAFETY: as above.
        if let Some(peer) = unsafe { wrapped(data) } {
            if let Some(save) = peer.save_session {
                // SAFETY: the call that nginx would have made.
                unsafe { save(pc, peer.data) };
            }
        }
    });
}
