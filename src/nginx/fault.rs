//! Faults on purpose, for tests of what happens after one. Without the feature `faults` nothing of
//! this is compiled.
//!
//! The environment variable COMBINED_UPSTREAMS_FAULT says which: the name of a point, which then
//! panics, or `alloc:N`, which has the N-th allocation of each process fail.

/// A point that panics if the environment says so.
#[inline(always)]
pub fn point(_name: &str) {
    #[cfg(feature = "faults")]
    assert!(wanted().as_deref() != Some(_name), "a fault on purpose");
}

/// Whether an allocation fails.
#[inline(always)]
pub fn allocation_fails() -> bool {
    #[cfg(feature = "faults")]
    {
        use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let number = COUNT.fetch_add(1, Relaxed).to_string();
        wanted().is_some_and(|fault| fault.strip_prefix("alloc:") == Some(&number))
    }
    #[cfg(not(feature = "faults"))]
    false
}

#[cfg(feature = "faults")]
fn wanted() -> Option<String> {
    std::env::var("COMBINED_UPSTREAMS_FAULT").ok()
}
