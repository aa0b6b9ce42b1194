//! `intercept_statuses`: another location answers instead of the last upstream, as nginx's
//! `error_page` would have it.

use nginx_sys::{
    ngx_http_complex_value, ngx_http_core_get_method, ngx_http_finalize_request,
    ngx_http_internal_redirect, ngx_http_named_location, ngx_http_split_args, ngx_str_t,
    NGX_HTTP_GET, NGX_HTTP_HEAD, NGX_LOG_ERR,
};
use walk::Answer;

use super::walking::Walking;
use crate::nginx::{bytes, fault, Escaped, Text, DONE, OK};

/// The URI that takes the walk's final answer. Each request is intercepted once at most: a
/// location that points back at the upstrand does not loop.
#[inline]
pub fn uri(walking: &Walking, answer: Answer) -> Option<ngx_str_t> {
    if walking.upstrand().intercepts.is_empty() {
        return None;
    }
    uri_of(walking, answer)
}

#[inline(never)]
fn uri_of(walking: &Walking, answer: Answer) -> Option<ngx_str_t> {
    let request = walking.request;
    if walking.intercepted || walking.pinned || request.client_gone() {
        return None;
    }
    let intercept = walking
        .upstrand()
        .intercepts
        .iter()
        .find(|intercept| intercept.statuses.matches(answer))?;
    let mut uri = ngx_str_t::empty();
    // SAFETY: compiled with this configuration.
    let rc = unsafe { ngx_http_complex_value(request.as_ptr(), intercept.uri, &mut uri) };
    if rc != OK || !matches!(bytes(&uri), [b'/' | b'@', ..]) {
        ngx::ngx_log_error!(
            NGX_LOG_ERR,
            request.log(),
            "invalid URI \"{}\" in \"intercept_statuses\" of upstrand \"{}\"",
            Escaped(bytes(&uri)),
            Text(walking.upstrand().name_bytes())
        );
        return None;
    }
    Some(uri)
}

/// Goes to the location. The walk is over, and the dropped answer forgotten.
pub fn redirect(walking: &mut Walking, mut uri: ngx_str_t) {
    fault::point("intercept");
    let request = walking.request;
    walking.intercepted = true;
    walking.saved().restore_error_page(request);
    let fields = request.fields_mut();
    fields.err_status = 0;
    if fields.method != NGX_HTTP_HEAD as usize {
        fields.method = NGX_HTTP_GET as usize;
        // SAFETY: a constant of nginx.
        fields.method_name = unsafe { ngx_http_core_get_method };
    }
    if request.is_unbuffered() {
        forget_body(walking);
    }
    // SAFETY: the request is live, and waits for nobody.
    unsafe {
        if bytes(&uri).first() == Some(&b'@') {
            ngx_http_named_location(request.as_ptr(), &mut uri);
        } else {
            let mut args = ngx_str_t::empty();
            ngx_http_split_args(request.as_ptr(), &mut uri, &mut args);
            ngx_http_internal_redirect(request.as_ptr(), &mut uri, &mut args);
        }
        ngx_http_finalize_request(request.as_ptr(), DONE);
    }
}

/// An unbuffered body is gone, in part at least: the location must not wait for the rest.
fn forget_body(walking: &Walking) {
    let fields = walking.request.fields_mut();
    fields.headers_in.content_length_n = -1;
    fields.headers_in.set_chunked(0);
    // SAFETY: r->request_body is NULL or lives in the request's pool.
    if let Some(body) = unsafe { fields.request_body.as_mut() } {
        body.bufs = core::ptr::null_mut();
    }
}
