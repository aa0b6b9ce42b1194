//! Request bodies that are passed on while they come in.
//!
//! Such a body can't be sent twice, but a gRPC request is always read so. Its first bytes are
//! therefore kept: a unary call fits, and can go on to the next upstream after an answer, too.

use core::ptr;

use nginx_sys::{
    ngx_alloc_chain_link, ngx_buf_t, ngx_chain_t, ngx_chain_writer, ngx_http_core_loc_conf_t,
    ngx_http_core_module, ngx_http_request_body_filter_pt, ngx_http_request_body_t,
    ngx_http_request_t, ngx_http_top_request_body_filter, ngx_int_t, ngx_str_t,
};

use super::walking::Walking;
use crate::nginx::{bytes, guard, Request, Upstream, ERROR, OK};

/// The filter below ours; see `filter::install()`.
static mut NEXT: ngx_http_request_body_filter_pt = None;

/// What was seen of a body. It lives in the request's pool.
pub struct Kept {
    first: *mut Piece,
    last: *mut Piece,
    size: usize,
    /// The body was longer than what may be kept, or is none to keep.
    is_lost: bool,
    /// The end of the body was seen.
    has_end: bool,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            size: 0,
            is_lost: false,
            has_end: false,
        }
    }
}

struct Piece {
    text: ngx_str_t,
    next: *mut Piece,
}

/// Puts the filter into nginx's chain; called once for each configuration.
pub fn install() {
    // SAFETY: the chain is built by the one thread that reads a configuration.
    unsafe {
        NEXT = ngx_http_top_request_body_filter;
        ngx_http_top_request_body_filter = Some(request_body_filter);
    }
}

unsafe extern "C" fn request_body_filter(
    r: *mut ngx_http_request_t,
    input: *mut ngx_chain_t,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as nginx calls it.
        let Some(request) = (unsafe { Request::from_ptr(r) }) else {
            return ERROR;
        };
        if let Some(walking) = Walking::of(request).filter(|walking| !walking.is_over()) {
            // SAFETY: as nginx calls it.
            unsafe { keep(walking, input) };
        }
        // SAFETY: as nginx calls it.
        let is_whole = unsafe { has_end(input) };
        // SAFETY: set before any request is served; as nginx would call it.
        let rc = unsafe { (*ptr::addr_of!(NEXT)).map_or(ERROR, |next| next(r, input)) };
        if rc == OK && is_whole && Walking::of(request).is_some_and(|walking| !walking.is_over()) {
            request.set_error_page(true);
        }
        rc
    })
}

/// Whether the end of a body is there.
///
/// # Safety
///
/// `link` is a chain of buffers, or NULL.
unsafe fn has_end(mut link: *mut ngx_chain_t) -> bool {
    // SAFETY: as the caller says.
    while let Some((buf, next)) = unsafe { link.as_ref().map(|link| (&*link.buf, link.next)) } {
        if buf.last_buf() != 0 {
            return true;
        }
        link = next;
    }
    false
}

/// # Safety
///
/// `input` is a chain of buffers in memory, or NULL.
unsafe fn keep(walking: &mut Walking, input: *mut ngx_chain_t) {
    let request = walking.request;
    if walking.kept.is_lost || input.is_null() {
        return;
    }
    if !request.is_unbuffered() || !request.upstream().is_some_and(is_grpc) {
        walking.kept.is_lost = true;
        return;
    }
    let limit = buffer_size(request);
    let mut link = input;
    // SAFETY: as the caller says.
    while let Some(buf) = unsafe { link.as_ref().and_then(|link| link.buf.as_ref()) } {
        let size = (buf.last as usize).saturating_sub(buf.pos as usize);
        walking.kept.size = walking.kept.size.saturating_add(size);
        walking.kept.has_end |= buf.last_buf() != 0;
        // The end of a body may come as a buffer without memory, of which there is no slice.
        let piece = match size {
            0 => &[],
            // SAFETY: a buffer in memory.
            _ => unsafe { core::slice::from_raw_parts(buf.pos, size) },
        };
        if walking.kept.size > limit || add(request, &mut walking.kept, piece).is_none() {
            walking.kept.is_lost = true;
            return;
        }
        // SAFETY: as above.
        link = unsafe { (*link).next };
    }
}

fn add(request: Request, kept: &mut Kept, piece: &[u8]) -> Option<()> {
    if piece.is_empty() {
        return Some(());
    }
    let pool = request.pool()?;
    let text = pool.copy(piece)?;
    let next = ptr::null_mut();
    let piece = pool.put(Piece { text, next })?.as_ptr();
    // SAFETY: the last piece is in the request's pool, or NULL.
    match unsafe { kept.last.as_mut() } {
        Some(last) => last.next = piece,
        None => kept.first = piece,
    }
    kept.last = piece;
    Some(())
}

/// `client_body_buffer_size`
fn buffer_size(request: Request) -> usize {
    // SAFETY: a static of nginx, of which only the index is read.
    let module = unsafe { &*ptr::addr_of!(ngx_http_core_module) };
    request
        .loc_conf::<ngx_http_core_loc_conf_t>(module)
        .map_or(0, |clcf| clcf.client_body_buffer_size)
}

/// Whether anything of the request was sent to a server of the try at hand. `request_sent` alone
/// does not tell: nginx resets it for each server.
pub fn was_sent(walking: &Walking, upstream: Upstream) -> bool {
    let first = walking
        .tries()
        .last()
        .map_or(0, |record| record.first as usize);
    upstream.fields().request_sent() != 0
        || walking
            .request
            .states()
            .iter()
            .skip(first)
            .any(|state| state.bytes_sent > 0)
}

/// Whether a body of which something was sent is lost for a further try.
pub fn is_lost(walking: &Walking, upstream: Upstream) -> bool {
    walking.request.is_unbuffered() && (walking.kept.is_lost || !is_grpc(upstream))
}

/// Whether the gateway module is grpc.
pub fn is_grpc(upstream: Upstream) -> bool {
    is_module(upstream, b"grpc")
}

/// Whether the gateway module is proxy.
pub fn is_proxy(upstream: Upstream) -> bool {
    is_module(upstream, b"proxy")
}

fn is_module(upstream: Upstream, name: &[u8]) -> bool {
    upstream
        .conf()
        .is_some_and(|conf| bytes(&conf.module) == name)
}

/// Whether the request is written as it is. HTTP/2 to the upstream, and a request that is sent in
/// chunks, have writers of their own.
pub fn has_plain_writer(upstream: Upstream) -> bool {
    let writer = upstream.fields().output.output_filter;
    writer.is_some_and(|f| ptr::eq(f as *const (), ngx_chain_writer as *const ()))
}

/// Has this try read the body as the first one did: nginx takes a body that was begun for one
/// that is complete, and would send what is there. None: memory is short.
#[inline]
pub fn resume_unbuffered(walking: &mut Walking, upstream: Upstream) -> Option<()> {
    if !walking.unbuffered {
        return Some(());
    }
    resume(walking, upstream)
}

#[inline(never)]
fn resume(walking: &mut Walking, upstream: Upstream) -> Option<()> {
    let request = walking.request;
    request.set_unbuffered();
    // SAFETY: r->request_body is NULL or lives in the request's pool.
    if let Some(body) = unsafe { request.fields().request_body.as_mut() } {
        if walking.resend {
            replace_by_kept(walking, body)?;
        }
        upstream.fields_mut().request_bufs = body.bufs;
    }
    let create = upstream.fields().create_request?;
    // SAFETY: the gateway module's own, as nginx called it a moment ago.
    (unsafe { create(request.as_ptr()) } == OK).then_some(())
}

/// Puts a copy of all that was seen of the body in the place of what is left of it.
fn replace_by_kept(walking: &Walking, body: &mut ngx_http_request_body_t) -> Option<()> {
    let pool = walking.request.pool()?;
    // nginx reads on only when all buffers that it gave out are used up.
    let mut busy = body.busy;
    // SAFETY: chains and buffers in the request's pool.
    unsafe {
        while let Some(link) = busy.as_ref() {
            (*link.buf).pos = (*link.buf).last;
            busy = link.next;
        }
    }
    let mut chain = ptr::null_mut();
    let mut end: *mut *mut ngx_chain_t = &mut chain;
    let mut piece = walking.kept.first;
    loop {
        // SAFETY: pieces, links and buffers are in the request's pool.
        unsafe {
            let text = piece
                .as_ref()
                .map_or(ngx_str_t::empty(), |piece| piece.text);
            let next = piece.as_ref().map_or(ptr::null_mut(), |piece| piece.next);
            if text.len == 0 && !walking.kept.has_end {
                break;
            }
            let buf: &mut ngx_buf_t = pool.zeroed::<ngx_buf_t>(1)?.as_mut();
            buf.start = text.data;
            buf.pos = text.data;
            buf.last = text.data.wrapping_add(text.len);
            buf.end = buf.last;
            buf.set_memory(u32::from(text.len > 0));
            buf.set_last_buf(u32::from(next.is_null() && walking.kept.has_end));
            let link = ngx_alloc_chain_link(pool.as_ptr()).as_mut()?;
            link.buf = buf;
            link.next = ptr::null_mut();
            *end = link;
            end = &mut link.next;
            piece = next;
        }
        if piece.is_null() {
            break;
        }
    }
    body.bufs = chain;
    Some(())
}
