//! Small wrappers over nginx's structures. `unsafe` lives here, and where the rest of the module
//! calls nginx or is called by it.
//!
//! A wrapper is a pointer that nginx gave to a callback. Its methods are safe under the one
//! condition that its constructor states: it is not kept beyond the life of what it points to.
//! nginx changes the same structures whenever it is called, so their fields are borrowed for as
//! short as can be, and read again after a call into nginx.

mod allocator;
pub mod callback;
mod conf;
pub mod fault;
mod guard;
pub mod memory;
mod output;
mod pool;
mod probe;
mod request;
mod text;
mod upstream;
mod value;
mod writer;

pub use allocator::with_memory;
pub use conf::{cycle_main_conf, log_at, parse_msec, Conf, ConfResult, Place, Refused, CONF_OK};
pub use guard::{guard, guard_or, log_panics};
pub use output::Output;
pub use pool::Pool;
pub use probe::bindings_fit;
pub use request::{Request, SavedFlags};
pub use text::{bytes, string, Escaped, Text};
pub use upstream::{CacheStatus, SrvConf, Upstream};
pub use value::{variable, Value};
pub use writer::Writer;

use nginx_sys::{ngx_int_t, NGX_AGAIN, NGX_DONE, NGX_ERROR, NGX_OK};

/// `NGX_OK` as callbacks return it.
pub const OK: ngx_int_t = NGX_OK as ngx_int_t;
/// `NGX_ERROR` as callbacks return it.
pub const ERROR: ngx_int_t = NGX_ERROR as ngx_int_t;
/// `NGX_AGAIN` as callbacks return it.
pub const AGAIN: ngx_int_t = NGX_AGAIN as ngx_int_t;
/// `NGX_DONE` as callbacks return it.
pub const DONE: ngx_int_t = NGX_DONE as ngx_int_t;

/// Milliseconds of nginx's monotonic clock, the same in all workers; as old as the current turn of
/// the event loop.
pub fn now() -> u64 {
    // SAFETY: a plain integer that only the event loop of this process writes.
    unsafe { nginx_sys::ngx_current_msec as u64 }
}

/// A number from nginx's `ngx_random()`, which each worker seeds when it starts.
pub fn random() -> u64 {
    nginx_sys::ngx_random().unsigned_abs()
}

/// The log of the running cycle.
pub fn cycle_log() -> *mut nginx_sys::ngx_log_t {
    // SAFETY: nginx has a cycle before it calls any module.
    unsafe { (*nginx_sys::ngx_cycle).log }
}

/// nginx's own module of upstreams.
pub fn upstream_module() -> &'static nginx_sys::ngx_module_t {
    // SAFETY: a static of nginx, whose indices are set before any configuration is read.
    unsafe { &*core::ptr::addr_of!(nginx_sys::ngx_http_upstream_module) }
}
