//! What the module's callbacks have in common: nginx's pointers become wrappers, a panic ends here,
//! and results become what nginx expects.

use core::ffi::c_char;

use nginx_sys::{
    ngx_conf_t, ngx_http_request_t, ngx_http_upstream_srv_conf_t, ngx_int_t, ngx_variable_value_t,
};

use super::{guard, Conf, ConfResult, Refused, Request, SrvConf, Value, CONF_OK, ERROR};

/// The handler of a directive.
///
/// # Safety
///
/// `cf` is what nginx gave to the callback.
pub unsafe fn directive(cf: *mut ngx_conf_t, body: impl FnOnce(Conf) -> ConfResult) -> *mut c_char {
    guard(Refused::Logged.as_ptr(), || {
        // SAFETY: as the caller says.
        let Some(conf) = (unsafe { Conf::from_ptr(cf) }) else {
            return Refused::Logged.as_ptr();
        };
        body(conf).map_or_else(Refused::as_ptr, |()| CONF_OK)
    })
}

/// `peer.init_upstream` of an upstream.
///
/// # Safety
///
/// The arguments are what nginx gave to the callback.
pub unsafe fn init_upstream(
    cf: *mut ngx_conf_t,
    us: *mut ngx_http_upstream_srv_conf_t,
    body: impl FnOnce(Conf, SrvConf) -> ConfResult<ngx_int_t>,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as the caller says.
        match unsafe { (Conf::from_ptr(cf), SrvConf::from_ptr(us)) } {
            (Some(conf), Some(uscf)) => body(conf, uscf).unwrap_or(ERROR),
            _ => ERROR,
        }
    })
}

/// `peer.init` of an upstream.
///
/// # Safety
///
/// The arguments are what nginx gave to the callback.
pub unsafe fn init_peer(
    r: *mut ngx_http_request_t,
    us: *mut ngx_http_upstream_srv_conf_t,
    body: impl FnOnce(Request, SrvConf) -> ngx_int_t,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as the caller says.
        match unsafe { (Request::from_ptr(r), SrvConf::from_ptr(us)) } {
            (Some(request), Some(uscf)) => body(request, uscf),
            _ => ERROR,
        }
    })
}

/// The handler of a variable.
///
/// # Safety
///
/// The arguments are what nginx gave to the callback.
pub unsafe fn variable(
    r: *mut ngx_http_request_t,
    v: *mut ngx_variable_value_t,
    body: impl FnOnce(Request, Value<'_>) -> ngx_int_t,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as the caller says.
        match unsafe { (Request::from_ptr(r), Value::from_ptr(v)) } {
            (Some(request), Some(value)) => body(request, value),
            _ => ERROR,
        }
    })
}
