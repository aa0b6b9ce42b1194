//! The header buffers of further tries. nginx takes one from the request's pool for each; these are
//! made when an answer comes and given back when it is dropped, so that a request that waits holds
//! none, and the worker keeps the last one given back for whoever asks next.

use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use std::alloc::{alloc, dealloc};

use nginx_sys::{ngx_pool_cleanup_add, NGX_ALIGNMENT};

use crate::nginx::Request;

/// What a worker keeps; it has one thread.
static KEPT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static KEPT_SIZE: AtomicUsize = AtomicUsize::new(0);

/// The buffer of a walk; it lives in the request's pool.
pub struct Buffer {
    start: *mut u8,
    size: usize,
    has_cleanup: bool,
}

impl Buffer {
    /// None yet.
    pub const NONE: Buffer = Buffer {
        start: ptr::null_mut(),
        size: 0,
        has_cleanup: false,
    };

    /// A buffer of `size` bytes, with anything in it; it lives until it is given back, at the latest
    /// when the request's pool is destroyed. None: memory is short.
    pub fn take(&mut self, request: Request, size: usize) -> Option<*mut u8> {
        if !self.has_cleanup {
            let pool = request.pool()?;
            // SAFETY: the pool is live; the entry's data lives in it.
            let cleanup = unsafe { ngx_pool_cleanup_add(pool.as_ptr(), 0).as_mut() }?;
            cleanup.handler = Some(release);
            cleanup.data = ptr::from_mut(self).cast();
            self.has_cleanup = true;
        }
        self.give_back();
        if KEPT_SIZE.load(Relaxed) == size {
            self.start = KEPT.swap(ptr::null_mut(), Relaxed);
        }
        if self.start.is_null() && size > 0 {
            // SAFETY: the size is not 0.
            self.start = unsafe { alloc(layout(size)?) };
        }
        self.size = size;
        (!self.start.is_null()).then_some(self.start)
    }

    /// Gives the buffer back, if there is one: nobody uses it any more.
    pub fn give_back(&mut self) {
        let start = core::mem::replace(&mut self.start, ptr::null_mut());
        if start.is_null() {
            return;
        }
        let old = KEPT.swap(start, Relaxed);
        let old_size = KEPT_SIZE.swap(self.size, Relaxed);
        if let (false, Some(layout)) = (old.is_null(), layout(old_size)) {
            // SAFETY: take() made it with this layout, and it was given back.
            unsafe { dealloc(old, layout) };
        }
    }
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size, NGX_ALIGNMENT).ok()
}

/// The request's pool is destroyed.
unsafe extern "C" fn release(data: *mut c_void) {
    // SAFETY: take() set it; the pool's memory is still there.
    if let Some(buffer) = unsafe { data.cast::<Buffer>().as_mut() } {
        buffer.give_back();
    }
}
