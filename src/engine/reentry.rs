//! From a dropped answer to the next try.

use core::ptr;

use nginx_sys::{
    ngx_chain_t, ngx_http_block_reading, ngx_http_finalize_request, ngx_http_request_empty_handler,
    ngx_http_request_t, ngx_int_t, NGX_HTTP_CLIENT_CLOSED_REQUEST, NGX_HTTP_INTERNAL_SERVER_ERROR,
};

use super::filter::Kind;
use super::peer::{self, HEADERS, TRAILERS};
use super::walking::{Phase, Spare, Then, Walking};
use super::{body, drain, intercept};
use crate::nginx::{fault, guard_or, Request, Upstream, AGAIN, DONE, ERROR, OK};

const PARTIAL_CONTENT: u16 = 206;

/// Drops the answer at hand without sending anything, from inside the header filter, and has
/// `then` follow once nginx has unwound. Returns what the filter is to return.
pub fn leave(walking: &mut Walking, upstream: Upstream, kind: Kind) -> ngx_int_t {
    let request = walking.request;
    if !kind.cached {
        let fields = upstream.fields_mut();
        fields.set_cacheable(0);
        fields.set_store(0);
        fields.set_upgrade(0);
        if kind.alive {
            keep_connection(request, upstream);
        }
        // Whoever called the filter gives one reference back on NGX_DONE; after a cached answer
        // nobody does.
        request.hold();
    }
    if !walking.is_over() {
        walking.phase = Phase::Leaving;
    }
    request.set_header_only();
    request.fields_mut().write_event_handler = Some(enter_again);
    // SAFETY: the walk is in the pool of the main request, and leaves a try only after the handler
    // of the last one has run.
    unsafe { request.post(&mut walking.posted) };
    DONE
}

/// Leaves the connection open for reuse if the whole answer is in the buffer, or its end near: the
/// gateway module's own reading of the body says what is there.
fn keep_connection(request: Request, upstream: Upstream) {
    let fields = upstream.fields();
    let Some(init) = fields.input_filter_init else {
        return;
    };
    let ctx = fields.input_filter_ctx;
    let (pos, last) = (fields.buffer.pos, fields.buffer.last);
    let there = (last as usize).saturating_sub(pos as usize);
    // SAFETY: the calls that nginx makes before it passes a body on unbuffered, in this order and
    // on the same data; `there` bytes of the body lie at `pos`. The first one may choose the second.
    let rc = unsafe {
        match (init(ctx), upstream.fields().input_filter) {
            (OK, Some(filter)) if there > 0 => {
                upstream.fields_mut().buffer.last = pos;
                filter(ctx, isize::try_from(there).unwrap_or(0))
            }
            (rc, _) => rc,
        }
    };
    let rc = match rc {
        OK | AGAIN if is_http2(request, upstream) && upstream.fields().keepalive() == 0 => {
            acknowledge(upstream)
        }
        rc => rc,
    };
    let fields = upstream.fields();
    // SAFETY: the state of a live upstream, or NULL.
    if let Some(state) = unsafe { fields.state.as_mut() } {
        state.response_length = body_length(upstream);
    }
    let whole = rc == OK && fields.length == 0;
    if !whole || fields.headers_in.connection_close() != 0 {
        upstream.fields_mut().set_keepalive(0);
    }
    if rc == OK && !whole && fields.headers_in.connection_close() == 0 {
        drain::take_over(request, upstream);
    }
}

/// Whether the upstream is asked by HTTP/2, for gRPC or by `proxy_http_version 2`. By HTTP/1 proxy_pass
/// has a writer of its own only where a body is sent in chunks as it comes in.
fn is_http2(request: Request, upstream: Upstream) -> bool {
    let in_chunks = request.is_unbuffered() && request.fields().headers_in.chunked() != 0;
    body::is_grpc(upstream)
        || (body::is_proxy(upstream) && !body::has_plain_writer(upstream) && !in_chunks)
}

/// A new HTTP/2 connection begins with settings that are to be acknowledged; nginx takes it for
/// usable, and the answer for ended, when that was sent.
fn acknowledge(upstream: Upstream) -> ngx_int_t {
    let fields = upstream.fields();
    match fields.output.output_filter {
        // SAFETY: the gateway module's own writer on its own data, as nginx calls it when the
        // connection is writable and there is nothing new to send.
        Some(send) => unsafe { send(fields.output.filter_ctx, ptr::null_mut()) },
        None => OK,
    }
}

/// The bytes of the body that the gateway module found in the buffer.
fn body_length(upstream: Upstream) -> i64 {
    let mut length = 0i64;
    let mut link = upstream.fields().out_bufs;
    // SAFETY: a chain of buffers in memory.
    while let Some(buf) = unsafe { link.as_ref().and_then(|link| link.buf.as_ref()) } {
        let size = (buf.last as usize).saturating_sub(buf.pos as usize);
        length = length.saturating_add(i64::try_from(size).unwrap_or(0));
        // SAFETY: as above.
        link = unsafe { (*link).next };
    }
    length
}

/// Runs when the event handler that called the filter is done: nothing of the old upstream is on
/// the stack, and hundreds of failures in a row do not nest.
unsafe extern "C" fn enter_again(r: *mut ngx_http_request_t) {
    // SAFETY: as nginx calls it.
    let Some(request) = (unsafe { Request::from_ptr(r) }) else {
        return;
    };
    guard_or(
        || give_up(request),
        || {
            let fields = request.fields_mut();
            fields.write_event_handler = Some(ngx_http_request_empty_handler);
            fields.read_event_handler = Some(ngx_http_block_reading);
            match Walking::of(request) {
                Some(walking) => go_on(walking),
                None => give_up(request),
            }
        },
    );
}

/// After a panic: the request gets a 500 instead of waiting for ever.
fn give_up(request: Request) {
    if let Some(walking) = Walking::of(request) {
        walking.phase = Phase::Final;
        walking.saved().restore(request);
    }
    finalize(request, NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t);
}

fn go_on(walking: &mut Walking) {
    fault::point("reentry");
    let request = walking.request;
    let Some(upstream) = request.upstream() else {
        return;
    };
    // SAFETY: the cleanup of a live upstream.
    let cleanup = unsafe { upstream.fields().cleanup.as_ref() }
        .copied()
        .flatten();
    if let Some(cleanup) = cleanup {
        request.hold();
        // SAFETY: as nginx calls it; it gives the reference back.
        unsafe { cleanup(request.as_ptr().cast()) };
    }
    if request.client_gone() {
        return finalize(request, NGX_HTTP_CLIENT_CLOSED_REQUEST as ngx_int_t);
    }
    if upstream.status() == PARTIAL_CONTENT && request.is_main() {
        request.forget_slice();
    }
    free_old(walking, upstream);
    walking.saved().restore(request);

    match walking.then.take() {
        Some(Then::Try(next)) => {
            walking.nobody = false;
            let Some(()) = walking.make_room().and_then(|()| walking.start_try(next)) else {
                return finalize(request, NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t);
            };
            let Some(handler) = request.fields().content_handler else {
                return finalize(request, NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t);
            };
            // SAFETY: the location's own handler, as nginx's content phase calls it.
            let rc = unsafe { handler(request.as_ptr()) };
            peer::await_answer(walking);
            finalize(request, rc);
        }
        Some(Then::Intercept(uri)) => intercept::redirect(walking, uri),
        None => finalize(request, ERROR),
    }
}

fn finalize(request: Request, rc: ngx_int_t) {
    // SAFETY: the request is live.
    unsafe { ngx_http_finalize_request(request.as_ptr(), rc) };
}

/// Gives back what a dropped answer holds until the request ends: its buffer, what the next try can
/// use, and a cache entry's open file.
fn free_old(walking: &mut Walking, upstream: Upstream) {
    let request = walking.request;
    #[cfg(ngx_feature = "http_cache")]
    free_cache(request);
    let fields = upstream.fields_mut();
    let buffer = core::mem::replace(&mut fields.buffer.start, ptr::null_mut());
    walking.buffer.give_back();
    if let (false, Some(pool)) = (buffer.is_null(), request.pool()) {
        // If it is nginx's.
        pool.free(buffer.cast());
    }
    let headers = &fields.headers_in;
    let is_made = headers.headers.nalloc == HEADERS && headers.trailers.nalloc == TRAILERS;
    if !buffer.is_null() && is_made {
        walking.spare = Some(Spare {
            lists: [headers.headers.part.elts, headers.trailers.part.elts],
            bufs: free_bufs(upstream),
        });
    }
}

/// The first of the buffers that the gateway module has made for the body, to be used again as
/// `ngx_chain_update_chains()` does it: if it is the module's own.
fn free_bufs(upstream: Upstream) -> *mut ngx_chain_t {
    let fields = upstream.fields_mut();
    let tag = fields.output.tag;
    // SAFETY: a chain of buffers in the request's pool, which no filter has seen.
    let link = unsafe { fields.out_bufs.as_mut() }
        .filter(|link| unsafe { link.buf.as_ref() }.is_some_and(|buf| buf.tag == tag));
    fields.out_bufs = ptr::null_mut();
    link.map_or(ptr::null_mut(), |link| {
        link.next = ptr::null_mut();
        link
    })
}

#[cfg(ngx_feature = "http_cache")]
fn free_cache(request: Request) {
    use nginx_sys::{ngx_http_file_cache_free, ngx_pool_run_cleanup_file};

    let cache = request.fields().cache;
    if cache.is_null() {
        return;
    }
    // SAFETY: r->cache lives in the request's pool.
    unsafe {
        if (*cache).file.fd >= 0 {
            ngx_pool_run_cleanup_file(request.fields().pool, (*cache).file.fd);
            (*cache).file.fd = -1;
        }
        ngx_http_file_cache_free(cache, ptr::null_mut());
    }
    request.fields_mut().cache = ptr::null_mut();
}
