//! Answers of the module's own.

use core::ffi::CStr;
use core::{fmt, ptr};

use nginx_sys::{
    ngx_buf_t, ngx_chain_t, ngx_http_discard_request_body, ngx_http_output_filter,
    ngx_http_send_header, ngx_int_t, ngx_list_push, ngx_str_t, ngx_table_elt_t,
    NGX_HTTP_INTERNAL_SERVER_ERROR, NGX_HTTP_OK,
};
use serde::Serialize;

use super::out::Out;
use super::peers::Shown;
use super::view::{Refusal, RefusalText};
use crate::nginx::{bytes, string, Request, Writer, ERROR, OK};

/// What is wrong with a request.
#[derive(Clone, Copy)]
pub struct Refused {
    /// The status of the answer.
    pub status: u16,
    /// Why, in words. None: memory is short.
    text: Option<ngx_str_t>,
    /// The methods that are allowed, for a 405.
    pub allow: Option<&'static CStr>,
}

impl Refused {
    /// A refusal with this status and text.
    pub fn new(request: Request, status: u16, text: fmt::Arguments<'_>) -> Refused {
        let write = |writer: &mut Writer| {
            let _ = fmt::Write::write_fmt(writer, text);
        };
        Refused {
            status,
            text: request.pool().and_then(|pool| pool.write(write)),
            allow: None,
        }
    }

    /// Memory is short.
    pub fn out_of_memory() -> Refused {
        Refused {
            status: NGX_HTTP_INTERNAL_SERVER_ERROR as u16,
            text: None,
            allow: None,
        }
    }

    /// The method is none of these.
    pub fn method(request: Request, allow: &'static CStr) -> Refused {
        Refused {
            allow: Some(allow),
            ..Refused::new(request, 405, format_args!("the method is not allowed here"))
        }
    }
}

/// What goes with each answer: it is never cached, nor guessed at, nor shown in somebody's frame.
const HEADERS: [(&CStr, &CStr); 3] = [
    (c"Cache-Control", c"no-store"),
    (c"X-Content-Type-Options", c"nosniff"),
    (c"X-Frame-Options", c"DENY"),
];

/// What a handler returns if memory is short.
pub const FAILED: ngx_int_t = NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t;

/// Answers with a value as JSON.
pub fn json(request: Request, value: &impl Serialize) -> ngx_int_t {
    json_with(request, NGX_HTTP_OK as usize, value)
}

fn json_with(request: Request, status: usize, value: &impl Serialize) -> ngx_int_t {
    let Some(pool) = request.pool() else {
        return FAILED;
    };
    let mut out = Out::new(pool);
    // An error of serde_json takes memory, so that of the body is looked at instead.
    let _ = serde_json::to_writer(&mut out, value);
    out.text(b"\n");
    body(request, status, "application/json", out)
}

/// Refuses a request, as JSON. What comes of its body is dropped.
pub fn refuse(request: Request, refused: &Refused) -> ngx_int_t {
    if let Some(rc) = drop_body(request) {
        return rc;
    }
    if let Some(allow) = refused.allow {
        if add_header(request, c"Allow", allow).is_none() {
            return FAILED;
        }
    }
    let Some(text) = &refused.text else {
        return FAILED;
    };
    let refusal = Refusal {
        error: RefusalText {
            status: refused.status,
            text: Shown(bytes(text)),
        },
    };
    json_with(request, refused.status.into(), &refusal)
}

/// Drops a body that came with the request; what nginx answers if there is something wrong with it.
pub fn drop_body(request: Request) -> Option<ngx_int_t> {
    // SAFETY: the request is live.
    let rc = unsafe { ngx_http_discard_request_body(request.as_ptr()) };
    (rc != OK).then_some(rc)
}

/// Answers with what was written; `kind` is its media type, with parameters.
pub fn body(request: Request, status: usize, kind: &'static str, out: Out) -> ngx_int_t {
    let Some((chain, len)) = out.finish(request.is_main()) else {
        return FAILED;
    };
    send(request, status, kind, chain, len)
}

/// Answers with a page that the module holds.
pub fn page(request: Request, kind: &'static str, page: &'static str) -> ngx_int_t {
    let Some(pool) = request.pool() else {
        return FAILED;
    };
    let first = page.as_ptr().cast_mut();
    // SAFETY: zeros are an empty buffer.
    let mut buf: ngx_buf_t = unsafe { core::mem::zeroed() };
    buf.pos = first;
    buf.last = first.wrapping_add(page.len());
    buf.set_memory(1);
    buf.set_last_buf(request.is_main().into());
    buf.set_last_in_chain(1);
    let chain = pool.put(buf).and_then(|buf| {
        pool.put(ngx_chain_t {
            buf: buf.as_ptr(),
            next: ptr::null_mut(),
        })
    });
    match chain {
        Some(chain) => send(
            request,
            NGX_HTTP_OK as usize,
            kind,
            chain.as_ptr(),
            page.len() as u64,
        ),
        None => FAILED,
    }
}

fn send(
    request: Request,
    status: usize,
    kind: &'static str,
    chain: *mut ngx_chain_t,
    len: u64,
) -> ngx_int_t {
    for (name, value) in HEADERS {
        if add_header(request, name, value).is_none() {
            return FAILED;
        }
    }
    request.set_unconditional();
    let headers = &mut request.fields_mut().headers_out;
    headers.status = status;
    headers.content_length_n = i64::try_from(len).unwrap_or(-1);
    headers.content_type = string(kind.as_bytes());
    // What other modules compare ends where the parameters begin.
    headers.content_type_len = kind.find(';').unwrap_or(kind.len());
    headers.content_type_lowcase = ptr::null_mut();
    // SAFETY: the request is live, and nothing was sent.
    let rc = unsafe { ngx_http_send_header(request.as_ptr()) };
    if rc == ERROR || rc > OK || request.is_header_only() || chain.is_null() {
        return rc;
    }
    // SAFETY: the chain lives in the request's pool.
    unsafe { ngx_http_output_filter(request.as_ptr(), chain) }
}

fn add_header(request: Request, name: &'static CStr, value: &'static CStr) -> Option<()> {
    // SAFETY: the list of headers is live; the new element is all written.
    unsafe {
        let place = ngx_list_push(&mut request.fields_mut().headers_out.headers);
        let place = place.cast::<ngx_table_elt_t>().as_mut()?;
        // Zeros are an element; nginx 1.23 and later have one field more.
        *place = core::mem::zeroed();
        place.hash = 1;
        place.key = text(name);
        place.value = text(value);
    }
    Some(())
}

fn text(text: &'static CStr) -> ngx_str_t {
    string(text.to_bytes())
}
