//! Values of variables.

use core::ptr;

use nginx_sys::{ngx_str_t, ngx_variable_value_t};

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
        self.0.data = text.data;
        self.0.set_len(text.len as u32);
        self.0.set_valid(1);
        self.0.set_no_cacheable(0);
        self.0.set_not_found(0);
    }

    /// There is no value.
    pub fn not_found(self) {
        self.0.data = ptr::null_mut();
        self.0.set_len(0);
        self.0.set_valid(0);
        self.0.set_no_cacheable(0);
        self.0.set_not_found(1);
    }

    /// The value is to be made anew whenever it is asked for, as that of a `volatile` map.
    pub fn never_cache(self) {
        self.0.set_no_cacheable(1);
    }
}
