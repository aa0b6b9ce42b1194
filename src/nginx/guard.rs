//! The boundary that no panic crosses: every callback that nginx calls runs inside it.

use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

use nginx_sys::NGX_LOG_ALERT;

/// Runs a callback's body. A panic in it, always a bug of this module, ends with `failed`.
pub fn guard<T>(failed: T, body: impl FnOnce() -> T) -> T {
    guard_or(|| failed, body)
}

/// Runs a callback's body; a panic in it ends with what `recover` returns.
pub fn guard_or<T>(recover: impl FnOnce() -> T, body: impl FnOnce() -> T) -> T {
    // What the body was changing is the request's or the configuration's own, and both are given
    // up on.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| recover())
}

/// Has panics logged by one line of nginx's log.
pub fn log_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_hook(Box::new(|info| {
            let text = info.payload();
            let text = text
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| text.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("unknown");
            let (file, line) = info
                .location()
                .map_or(("unknown", 0), |place| (place.file(), place.line()));
            ngx::ngx_log_error!(
                NGX_LOG_ALERT,
                super::cycle_log(),
                "ngx_http_combined_upstreams_module panicked at {file}:{line}: {text}"
            );
        }));
    });
}
