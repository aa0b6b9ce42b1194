//! Faults on purpose, for tests of what happens after one. Without the feature `faults` nothing of
//! this is compiled.
//!
//! The environment variable COMBINED_UPSTREAMS_FAULT says which: the name of a point, which then
//! panics, `alloc:N`, which has the N-th allocation of each process fail, or `allocs:N`, which has all
//! from that one on fail. Those of Rust and those from nginx's pools are counted alike.

/// A point that panics if the environment says so.
#[inline(always)]
pub fn point(_name: &str) {
    #[cfg(feature = "faults")]
    assert!(wanted() != Some(_name), "a fault on purpose");
}

/// Whether an allocation fails.
#[inline(always)]
pub fn allocation_fails() -> bool {
    #[cfg(feature = "faults")]
    {
        use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let number = COUNT.fetch_add(1, Relaxed);
        let parse = |n: &str| n.parse::<usize>().ok();
        let one = wanted().and_then(|fault| parse(fault.strip_prefix("alloc:")?));
        let first = wanted().and_then(|fault| parse(fault.strip_prefix("allocs:")?));
        one == Some(number) || first.is_some_and(|first| number >= first)
    }
    #[cfg(not(feature = "faults"))]
    false
}

/// What the environment says, read without any allocation.
#[cfg(feature = "faults")]
fn wanted() -> Option<&'static str> {
    // SAFETY: nginx changes its environment when a process starts, and not while Rust runs.
    let value = unsafe { nginx_sys::getenv(c"COMBINED_UPSTREAMS_FAULT".as_ptr()) };
    // SAFETY: NULL, or a string of the environment.
    let value = (!value.is_null()).then(|| unsafe { core::ffi::CStr::from_ptr(value) })?;
    value.to_str().ok()
}
