//! Whoever made a subrequest hears of it once, when its walk is over.
//!
//! `ngx_http_finalize_request()` calls `r->post_subrequest` with a 502 that nginx made before the
//! header filter can drop it; auth_request would take that for the answer. So the walk decides about
//! it here: if it is final, the owner still comes before nginx's page, as SSI needs for its stubs.

use core::ffi::c_void;

use nginx_sys::{
    ngx_http_request_t, ngx_int_t, ngx_uint_t, NGX_HTTP_CLIENT_CLOSED_REQUEST,
    NGX_HTTP_REQUEST_TIME_OUT, NGX_HTTP_SPECIAL_RESPONSE,
};

use super::filter;
use super::walking::{Phase, Walking};
use crate::nginx::{guard, Request, ERROR};

/// Puts ours in the owner's place while the walk goes on.
pub fn hold_owner(walking: &mut Walking) {
    let request = walking.request;
    let owner = request.fields().post_subrequest;
    if request.is_main() || owner.is_null() {
        return;
    }
    walking.owner = owner;
    walking.post.handler = Some(finished);
    walking.post.data = core::ptr::from_mut(walking).cast();
    request.fields_mut().post_subrequest = &mut walking.post;
}

/// Puts the owner back.
pub fn give_back_owner(walking: &mut Walking) {
    if !walking.owner.is_null() {
        walking.request.fields_mut().post_subrequest = walking.owner;
        walking.owner = core::ptr::null_mut();
    }
}

unsafe extern "C" fn finished(
    r: *mut ngx_http_request_t,
    data: *mut c_void,
    rc: ngx_int_t,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: nginx hands back what hold_owner() set; both live in the request's pool.
        let (request, walking) = unsafe { (Request::from_ptr(r), data.cast::<Walking>().as_mut()) };
        let (Some(request), Some(walking)) = (request, walking) else {
            return ERROR;
        };
        let given_up = rc == ERROR
            || rc == NGX_HTTP_REQUEST_TIME_OUT as ngx_int_t
            || rc == NGX_HTTP_CLIENT_CLOSED_REQUEST as ngx_int_t
            || request.client_gone();
        if walking.phase != Phase::Final && !given_up {
            let made = ngx_uint_t::try_from(rc).unwrap_or(0);
            if made < NGX_HTTP_SPECIAL_RESPONSE as ngx_uint_t
                || walking.phase == Phase::Leaving
                || !filter::is_final(walking, made)
            {
                return rc;
            }
        }
        give_back_owner(walking);
        let owner = request.fields().post_subrequest;
        // SAFETY: the owner's, as nginx would have called it.
        unsafe {
            match owner.as_ref().and_then(|o| o.handler.map(|f| (f, o.data))) {
                Some((handler, data)) => handler(r, data, rc),
                None => rc,
            }
        }
    })
}
