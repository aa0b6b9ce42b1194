//! The boundary that no panic crosses: every callback that nginx calls runs inside it.

use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs a callback's body. A panic in it, always a bug of this module, ends with `failed`; Rust's
/// panic hook has written what happened and where to stderr, which nginx sends to its error log.
pub fn guard<T>(failed: T, body: impl FnOnce() -> T) -> T {
    // What the body was changing is the request's or the configuration's own, and both are given
    // up on `failed`.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(failed)
}
