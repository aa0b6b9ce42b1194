//! `X-Accel-Redirect` of an upstrand's upstream is not followed.

use core::ptr;

use nginx_sys::{
    ngx_hash_elt_t, ngx_hash_key_lc, ngx_http_header_handler_pt, ngx_http_request_t,
    ngx_http_upstream_header_t, ngx_http_upstream_main_conf_t, ngx_int_t, ngx_table_elt_t,
    ngx_uint_t,
};

use super::walking::{Phase, Walking};
use crate::conf::MainConf;
use crate::nginx::{guard, upstream_module, Conf, ConfResult, Refused, Request, ERROR, OK};

const NAME: &[u8] = b"x-accel-redirect";

/// Puts ours in the place of the header's handler, for this configuration: it holds for all
/// gateway modules, and for answers out of a cache.
pub fn wrap_accel_redirect(conf: Conf, main: &mut MainConf) -> ConfResult {
    let umcf: &mut ngx_http_upstream_main_conf_t = conf.main_conf(upstream_module())?;
    let Some(element) = find(umcf) else {
        return Ok(());
    };
    // SAFETY: the values of this hash are ngx_http_upstream_header_t.
    let mut header: ngx_http_upstream_header_t =
        unsafe { (*element).value.cast::<ngx_http_upstream_header_t>().read() };
    main.accel_redirect = header.handler;
    header.handler = Some(process);
    let header = conf.pool()?.put(header).ok_or(Refused::Logged)?;
    // SAFETY: the hash is in this configuration's pool.
    unsafe { (*element).value = header.as_ptr().cast() };
    Ok(())
}

fn find(umcf: &ngx_http_upstream_main_conf_t) -> Option<*mut ngx_hash_elt_t> {
    let hash = &umcf.headers_in_hash;
    // SAFETY: a bucket is a run of elements that ends with one without a value; an element's name
    // follows its head, and elements are aligned to a pointer.
    unsafe {
        let key = ngx_hash_key_lc(NAME.as_ptr().cast_mut(), NAME.len());
        let mut element = *hash.buckets.add(key.checked_rem(hash.size)?);
        while let Some(head) = element.as_ref() {
            if head.value.is_null() {
                return None;
            }
            let name = ptr::addr_of!((*element).name).cast::<u8>();
            if core::slice::from_raw_parts(name, usize::from(head.len)) == NAME {
                return Some(element);
            }
            let end = name.add(usize::from(head.len));
            element = end
                .add(end.align_offset(size_of::<*const u8>()))
                .cast_mut()
                .cast();
        }
    }
    None
}

unsafe extern "C" fn process(
    r: *mut ngx_http_request_t,
    h: *mut ngx_table_elt_t,
    offset: ngx_uint_t,
) -> ngx_int_t {
    guard(ERROR, || {
        // SAFETY: as nginx calls it.
        let Some(request) = (unsafe { Request::from_ptr(r) }) else {
            return ERROR;
        };
        if Walking::of(request).is_some_and(|walking| walking.phase != Phase::Final) {
            return OK;
        }
        let main: Option<&MainConf> = request.main_conf(crate::module());
        let original: ngx_http_header_handler_pt = main.and_then(|main| main.accel_redirect);
        // SAFETY: nginx's own, as it would have called it.
        original.map_or(OK, |original| unsafe { original(r, h, offset) })
    })
}
