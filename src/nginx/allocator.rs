//! Rust's allocator: the system's, and for a while memory that was taken before. Libraries that take
//! memory without asking whether there is some are run with that.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::alloc::System;
use std::panic::{catch_unwind, AssertUnwindSafe};

use super::fault;

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The memory that is lent, by its addresses, and where its free part begins. A process of nginx has
/// one thread that runs Rust.
static BEGIN: AtomicUsize = AtomicUsize::new(0);
static FREE: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Runs `body`, all of whose allocations come from `memory`, or from the system once that is used up.
/// None: it panicked. Its result owns no memory, since it outlives what is lent.
pub fn with_memory<T: Copy>(memory: &mut [u8], body: impl FnOnce() -> T) -> Option<T> {
    struct Lent;

    impl Drop for Lent {
        fn drop(&mut self) {
            for at in [&BEGIN, &FREE, &END] {
                at.store(0, Relaxed);
            }
        }
    }

    let range = memory.as_mut_ptr_range();
    BEGIN.store(range.start.expose_provenance(), Relaxed);
    FREE.store(range.start.addr(), Relaxed);
    END.store(range.end.addr(), Relaxed);
    let _lent = Lent;
    // What a panic carries is dropped here, while the memory that it may lie in is known.
    catch_unwind(AssertUnwindSafe(body)).ok()
}

/// A piece of what is lent.
fn lent(layout: Layout) -> Option<*mut u8> {
    let start = FREE
        .load(Relaxed)
        .checked_next_multiple_of(layout.align())?;
    let end = start.checked_add(layout.size())?;
    if start == 0 || end > END.load(Relaxed) {
        return None;
    }
    FREE.store(end, Relaxed);
    Some(ptr::with_exposed_provenance_mut(start))
}

fn is_lent(place: *mut u8) -> bool {
    (BEGIN.load(Relaxed)..END.load(Relaxed)).contains(&place.addr())
}

// SAFETY: pieces of what is lent do not overlap and are not given out again; all else is the
// system's. Nothing here unwinds.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(place) = lent(layout) {
            return place;
        }
        if fault::allocation_fails() {
            return ptr::null_mut();
        }
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if !is_lent(place) {
            // SAFETY: as the caller says; the system gave it out.
            unsafe { System.dealloc(place, layout) };
        }
    }
}
