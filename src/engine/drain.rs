//! The rest of a dropped answer, read while the next upstream is asked, so that its connection
//! can be used again: a small body often comes a moment after its header.
//!
//! Only for answers whose end is known without parsing them (HTTP/1 with a Content-Length) and
//! near, and not longer than the request lasts.

use core::ffi::c_void;
use core::ptr;

use nginx_sys::{
    ngx_close_connection, ngx_connection_t, ngx_del_timer, ngx_destroy_pool, ngx_event_t,
    ngx_handle_read_event, ngx_http_cleanup_add, sockaddr, NGX_AGAIN,
};

use super::body;
use crate::nginx::{guard, Request, Upstream, OK};

extern "C" {
    fn ngx_http_cu_quickack(c: *mut ngx_connection_t);
}

/// An answer that is being read to its end. It lives in the request's pool.
#[derive(Clone, Copy)]
struct Drain {
    upstream: Upstream,
    connection: *mut ngx_connection_t,
    sockaddr: *mut sockaddr,
    left: usize,
    request: Request,
    /// The server's place among the request's states.
    state: usize,
}

/// Takes the connection away from an upstream that nginx is about to finalize, if the rest of its
/// answer is worth reading. `u->length` is what the gateway module still waits for.
pub fn take_over(request: Request, upstream: Upstream) -> Option<()> {
    let left = usize::try_from(upstream.fields().length).ok()?;
    let connection = upstream.fields().peer.connection;
    if !is_near(upstream, left) {
        return None;
    }
    // SAFETY: the request is live.
    let cleanup = unsafe { ngx_http_cleanup_add(request.as_ptr(), 0).as_mut() }?;
    let drain = request
        .pool()?
        .put(Drain {
            upstream,
            connection,
            sockaddr: upstream.fields().peer.sockaddr,
            left,
            request,
            state: request.states().len().saturating_sub(1),
        })?
        .as_ptr();
    cleanup.handler = Some(give_up);
    cleanup.data = drain.cast();

    let fields = upstream.fields_mut();
    // SAFETY: the state and the connection of a live upstream; both of its events are live.
    unsafe {
        if let Some(state) = fields.state.as_mut() {
            state.bytes_sent = (*connection).sent;
        }
        (*connection).data = drain.cast();
        (*(*connection).read).handler = Some(readable);
        (*(*connection).write).handler = Some(writable);
    }
    // Without these nginx neither frees the peer nor closes the connection.
    fields.peer.connection = ptr::null_mut();
    fields.peer.sockaddr = ptr::null_mut();
    // SAFETY: a live connection; just made.
    unsafe {
        ngx_http_cu_quickack(connection);
        read(&mut *drain);
    }
    Some(())
}

/// Whether the answer ends `left` bytes from here, and soon.
fn is_near(upstream: Upstream, left: usize) -> bool {
    let fields = upstream.fields();
    // SAFETY: a live upstream's connection, or NULL.
    let Some(connection) = (unsafe { fields.peer.connection.as_ref() }) else {
        return false;
    };
    #[cfg(ngx_feature = "ssl")]
    if !connection.ssl.is_null() {
        return false;
    }
    let Some(conf) = upstream.conf() else {
        return false;
    };
    let unread = (fields.buffer.last as usize).saturating_sub(fields.buffer.pos as usize);
    let length = usize::try_from(fields.headers_in.content_length_n).unwrap_or(0);
    body::is_proxy(upstream)
        && body::has_plain_writer(upstream)
        && !connection.pool.is_null()
        && fields.peer.free.is_some()
        && left > 0
        && left <= conf.buffer_size
        && length == left.saturating_add(unread)
}

unsafe extern "C" fn readable(ev: *mut ngx_event_t) {
    guard((), || {
        // SAFETY: the data of a connection's event is the connection, and its data is ours.
        let drain = unsafe {
            ev.as_ref()
                .and_then(|ev| ev.data.cast::<ngx_connection_t>().as_ref())
                .and_then(|connection| connection.data.cast::<Drain>().as_mut())
        };
        if let Some(drain) = drain {
            read(drain);
        }
    });
}

/// Nothing is to be written any more.
unsafe extern "C" fn writable(_ev: *mut ngx_event_t) {}

fn read(drain: &mut Drain) {
    let connection = drain.connection;
    let mut room = [0u8; 4096];
    while drain.left > 0 {
        let size = drain.left.min(room.len());
        // SAFETY: a live connection, which this drain owns.
        let n = unsafe {
            if (*(*connection).read).timedout() != 0 {
                return finish(drain, false);
            }
            match (*connection).recv {
                Some(recv) => recv(connection, room.as_mut_ptr(), size),
                None => 0,
            }
        };
        if n == NGX_AGAIN as isize {
            // SAFETY: as above.
            if unsafe { ngx_handle_read_event((*connection).read, 0) } != OK {
                finish(drain, false);
            }
            return;
        }
        match usize::try_from(n) {
            Ok(n) if n > 0 => drain.count(n),
            _ => return finish(drain, false),
        }
    }
    finish(drain, true);
}

impl Drain {
    fn count(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n);
        let n = i64::try_from(n).unwrap_or(0);
        if let Some(state) = self.request.states_mut().get_mut(self.state) {
            state.bytes_received = state.bytes_received.saturating_add(n);
            state.response_length = state.response_length.saturating_add(n);
        }
    }
}

/// The request ends.
unsafe extern "C" fn give_up(data: *mut c_void) {
    guard((), || {
        // SAFETY: take_over() set it; the request's pool is still there.
        if let Some(drain) = unsafe { data.cast::<Drain>().as_mut() } {
            finish(drain, false);
        }
    });
}

/// Frees the peer, which may take the connection for reuse; otherwise closes it.
fn finish(drain: &mut Drain, is_whole: bool) {
    let connection = drain.connection;
    if connection.is_null() {
        return;
    }
    drain.connection = ptr::null_mut();
    let fields = drain.upstream.fields_mut();
    fields.peer.connection = connection;
    fields.peer.sockaddr = drain.sockaddr;
    fields.set_keepalive(u32::from(is_whole));
    // SAFETY: what ngx_http_upstream_finalize_request() does with an upstream's peer.
    unsafe {
        if (*(*connection).read).timer_set() != 0 {
            ngx_del_timer((*connection).read);
        }
        if let Some(free) = fields.peer.free {
            free(&mut fields.peer, fields.peer.data, 0);
        }
        fields.peer.sockaddr = ptr::null_mut();
        if !fields.peer.connection.is_null() {
            ngx_destroy_pool((*connection).pool);
            ngx_close_connection(connection);
            fields.peer.connection = ptr::null_mut();
        }
    }
}
