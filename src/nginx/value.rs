//! Values of variables.

use nginx_sys::{ngx_http_get_flushed_variable, ngx_str_t, ngx_uint_t, ngx_variable_value_t};

use super::Request;

extern "C" {
    fn ngx_http_cu_set_value(v: *mut ngx_variable_value_t, data: *mut u8, len: usize);
    fn ngx_http_cu_value(v: *mut ngx_variable_value_t) -> ngx_str_t;
}

/// The place that a variable's value goes to.
pub struct Value<'a>(&'a mut ngx_variable_value_t);

/// A value's length is a bit field of this width.
const LONGEST: usize = (1 << 28) - 1;

impl<'a> Value<'a> {
    /// # Safety
    ///
    /// `v` is what nginx gave to a variable's handler.
    pub unsafe fn from_ptr(v: *mut ngx_variable_value_t) -> Option<Value<'a>> {
        // SAFETY: as the caller says.
        unsafe { v.as_mut() }.map(Value)
    }

    /// The value is this string, which the request outlives.
    pub fn set(self, text: ngx_str_t) {
        if text.len > LONGEST {
            return self.not_found();
        }
        // SAFETY: nginx's own value.
        unsafe { ngx_http_cu_set_value(self.0, text.data, text.len) };
    }

    /// There is no value.
    pub fn not_found(self) {
        // SAFETY: as above.
        unsafe { ngx_http_cu_set_value(self.0, core::ptr::null_mut(), 0) };
        self.0.set_not_found(1);
    }

    /// The value is to be made anew whenever it is asked for, as that of a `volatile` map.
    pub fn never_cache(self) {
        self.0.set_no_cacheable(1);
    }
}

/// The value of a variable for a request, by the variable's index: made anew if the variable is
/// not to be cached. Empty if there is none.
pub fn variable(request: Request, index: ngx_uint_t) -> ngx_str_t {
    // SAFETY: the index is one of the configuration that serves the request.
    unsafe {
        let value = ngx_http_get_flushed_variable(request.as_ptr(), index);
        if value.is_null() {
            return ngx_str_t::empty();
        }
        ngx_http_cu_value(value)
    }
}
