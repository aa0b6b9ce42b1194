//! Do the bindings' bit fields sit where the C compiler puts them?

use core::mem::MaybeUninit;

use nginx_sys::{
    ngx_buf_t, ngx_connection_t, ngx_event_t, ngx_http_core_loc_conf_t, ngx_http_headers_in_t,
    ngx_http_upstream_headers_in_t, ngx_http_upstream_server_t, ngx_http_upstream_t, ngx_uint_t,
    ngx_url_t, ngx_variable_value_t,
};

extern "C" {
    fn ngx_http_cu_probe(n: ngx_uint_t, p: *mut core::ffi::c_void) -> usize;
    fn ngx_http_cu_saves() -> ngx_uint_t;
}

union AnyStruct {
    upstream: ngx_http_upstream_t,
    headers_in: ngx_http_upstream_headers_in_t,
    event: ngx_event_t,
    connection: ngx_connection_t,
    value: ngx_variable_value_t,
    server: ngx_http_upstream_server_t,
    buf: ngx_buf_t,
    url: ngx_url_t,
    request_headers: ngx_http_headers_in_t,
    location: ngx_http_core_loc_conf_t,
    room: [u8; 4096],
}

/// The bindings' view of probe `n`: the size of the structure, the bit field's value, and whether
/// nothing is left when the bindings clear it.
macro_rules! views {
    ($n:expr, $any:expr, $($i:literal => $field:ident . $get:ident / $set:ident as $ty:ty),+ $(,)?) => {
        match $n {
            $($i => {
                // SAFETY: the shim filled the structure with zeros and one bit field.
                let seen = u64::from(unsafe { $any.$field.$get() } as u32);
                // SAFETY: as above.
                unsafe { $any.$field.$set(0) };
                Some((size_of::<$ty>(), seen))
            })+
            _ => None,
        }
    };
}

/// Whether each bit field that this module touches through the bindings is where the C compiler
/// put it when it compiled the shim with the same headers, and those that the shim saves lie where it
/// looks for them.
pub fn bindings_fit() -> bool {
    // SAFETY: it works on a request of its own.
    let mut fits = unsafe { ngx_http_cu_saves() } != 0;
    for n in 0.. {
        let mut any = MaybeUninit::<AnyStruct>::zeroed();
        // SAFETY: AnyStruct has room for each structure that the shim knows.
        let size = unsafe { ngx_http_cu_probe(n, any.as_mut_ptr().cast()) };
        if size == 0 {
            return fits && n > 0;
        }
        // SAFETY: all of it was zeroed or written.
        let mut any = unsafe { any.assume_init() };
        let view = views!(n, any,
            0 => upstream.store / set_store as ngx_http_upstream_t,
            1 => upstream.cacheable / set_cacheable as ngx_http_upstream_t,
            2 => request_headers.chunked / set_chunked as ngx_http_headers_in_t,
            3 => upstream.keepalive / set_keepalive as ngx_http_upstream_t,
            4 => upstream.upgrade / set_upgrade as ngx_http_upstream_t,
            5 => upstream.request_sent / set_request_sent as ngx_http_upstream_t,
            6 => upstream.header_sent / set_header_sent as ngx_http_upstream_t,
            7 => headers_in.connection_close / set_connection_close as ngx_http_upstream_headers_in_t,
            8 => event.timedout / set_timedout as ngx_event_t,
            9 => event.timer_set / set_timer_set as ngx_event_t,
            10 => event.eof / set_eof as ngx_event_t,
            11 => event.error / set_error as ngx_event_t,
            12 => connection.error / set_error as ngx_connection_t,
            13 => value.no_cacheable / set_no_cacheable as ngx_variable_value_t,
            14 => value.not_found / set_not_found as ngx_variable_value_t,
            15 => server.backup / set_backup as ngx_http_upstream_server_t,
            16 => buf.memory / set_memory as ngx_buf_t,
            17 => buf.last_buf / set_last_buf as ngx_buf_t,
            18 => buf.temporary / set_temporary as ngx_buf_t,
            19 => url.no_resolve / set_no_resolve as ngx_url_t,
            20 => url.no_port / set_no_port as ngx_url_t,
            21 => location.noname / set_noname as ngx_http_core_loc_conf_t,
        );
        // SAFETY: any bytes are a room.
        let left = unsafe { any.room }.iter().any(|byte| *byte != 0);
        fits &= view == Some((size, 1)) && !left;
    }
    fits
}
