//! Variables made from ones that follow the walk, by `map` say, must follow it too: nginx would
//! keep their first value for the whole request. nginx's `$proxy_host` and `$proxy_port` follow it,
//! since a pass sets them anew for each try.

use nginx_sys::{
    ngx_hash_key_t, ngx_http_core_main_conf_t, ngx_http_core_module, ngx_http_get_variable_pt,
    ngx_http_request_t, ngx_http_variable_t, ngx_int_t, ngx_variable_value_t,
    NGX_HTTP_VAR_CHANGEABLE, NGX_HTTP_VAR_NOCACHEABLE,
};

use super::variable::{evaluations, note_evaluation};
use super::walking::Walking;
use crate::nginx::{bytes, guard, Conf, ConfResult, Refused, Request, Value, ERROR};

#[derive(Clone, Copy)]
struct Wrapped {
    handler: ngx_http_get_variable_pt,
    data: usize,
}

/// Wraps the variables that the configuration defines and nginx caches: `map`, `geo`,
/// `split_clients`, scripts.
pub fn wrap_cached_variables(conf: Conf) -> ConfResult {
    // SAFETY: a static of nginx, of which only the index is read.
    let module = unsafe { &*core::ptr::addr_of!(ngx_http_core_module) };
    let cmcf: &mut ngx_http_core_main_conf_t = conf.main_conf(module)?;
    // SAFETY: while http{} is read variables_keys holds all variables by name.
    let keys: &mut [ngx_hash_key_t] = unsafe {
        match cmcf.variables_keys.as_mut() {
            Some(keys) => keys.keys.as_slice_mut(),
            None => return Ok(()),
        }
    };
    for key in keys {
        let follows = matches!(bytes(&key.key), b"proxy_host" | b"proxy_port");
        // SAFETY: the values are variables.
        let Some(variable) = (unsafe { key.value.cast::<ngx_http_variable_t>().as_mut() }) else {
            continue;
        };
        let kinds = (NGX_HTTP_VAR_CHANGEABLE | NGX_HTTP_VAR_NOCACHEABLE) as usize;
        let is_cached = variable.flags & kinds == NGX_HTTP_VAR_CHANGEABLE as usize;
        if (is_cached || follows) && variable.get_handler.is_some() {
            let wrapped = conf
                .pool()?
                .put(Wrapped {
                    handler: variable.get_handler,
                    data: variable.data,
                })
                .ok_or(Refused::Logged)?;
            variable.get_handler = Some(if follows { follow } else { evaluate });
            variable.data = wrapped.as_ptr() as usize;
        }
    }
    Ok(())
}

unsafe extern "C" fn follow(
    r: *mut ngx_http_request_t,
    v: *mut ngx_variable_value_t,
    data: usize,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as nginx calls it.
        if unsafe { Request::from_ptr(r) }.is_some_and(|request| Walking::of(request).is_some()) {
            note_evaluation();
        }
        // SAFETY: wrap_cached_variables() set it, in this configuration's pool; the variable's own,
        // as nginx would have called it.
        unsafe {
            match (data as *const Wrapped).as_ref() {
                Some(Wrapped {
                    handler: Some(handler),
                    data,
                }) => handler(r, v, *data),
                _ => ERROR,
            }
        }
    })
}

unsafe extern "C" fn evaluate(
    r: *mut ngx_http_request_t,
    v: *mut ngx_variable_value_t,
    data: usize,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: wrap_cached_variables() set it, in this configuration's pool.
        let Some(wrapped) = (unsafe { (data as *const Wrapped).as_ref() }) else {
            return ERROR;
        };
        let Some(handler) = wrapped.handler else {
            return ERROR;
        };
        let before = evaluations();
        // SAFETY: the variable's own, as nginx would have called it.
        let rc = unsafe { handler(r, v, wrapped.data) };
        if evaluations() != before {
            // SAFETY: as nginx calls it.
            if let Some(value) = unsafe { Value::from_ptr(v) } {
                value.never_cache();
            }
        }
        rc
    })
}
