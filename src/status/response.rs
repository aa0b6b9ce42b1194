//! Answers of the module's own.

use core::ffi::CStr;
use core::fmt;

use nginx_sys::{ngx_int_t, ngx_str_t, NGX_HTTP_INTERNAL_SERVER_ERROR, NGX_HTTP_OK};
use serde::Serialize;

use super::peers::Shown;
use super::view::{Refusal, RefusalText};
use crate::nginx::{bytes, Output, Request, Writer};

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
    let mut out = Output::new(pool);
    // An error of serde_json takes memory, so that of the body is looked at instead.
    let _ = serde_json::to_writer(&mut out, value);
    out.text(b"\n");
    body(request, status, "application/json", out)
}

/// Refuses a request, as JSON. What comes of its body is dropped.
pub fn refuse(request: Request, refused: &Refused) -> ngx_int_t {
    if let Err(rc) = request.discard_body() {
        return rc;
    }
    if let Some(allow) = refused.allow {
        if request.add_header(c"Allow", allow).is_none() {
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

/// Answers with what was written; `kind` is its media type, with parameters.
pub fn body(request: Request, status: usize, kind: &'static str, out: Output) -> ngx_int_t {
    for (name, value) in HEADERS {
        if request.add_header(name, value).is_none() {
            return FAILED;
        }
    }
    request.send(status, kind, out).unwrap_or(FAILED)
}
