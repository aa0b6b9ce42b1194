//! nginx's memory pools.

use core::ffi::c_void;
use core::mem::align_of;
use core::ptr::{self, NonNull};

use nginx_sys::{
    ngx_array_t, ngx_palloc, ngx_pcalloc, ngx_pfree, ngx_pnalloc, ngx_pool_cleanup_add, ngx_pool_t,
    ngx_str_t, NGX_ALIGNMENT,
};

use super::fault;

/// A pool.
#[derive(Clone, Copy)]
pub struct Pool(NonNull<ngx_pool_t>);

impl Pool {
    /// # Safety
    ///
    /// `pool` is a live pool, and outlives the wrapper.
    pub unsafe fn from_ptr(pool: *mut ngx_pool_t) -> Option<Pool> {
        NonNull::new(pool).map(Pool)
    }

    /// The pool itself.
    pub fn as_ptr(self) -> *mut ngx_pool_t {
        self.0.as_ptr()
    }

    /// Puts a value into the pool, where it lives as long as the pool; it needs no dropping.
    pub fn put<T>(self, value: T) -> Option<NonNull<T>> {
        const { assert!(!core::mem::needs_drop::<T>()) };
        self.place(value)
    }

    /// Puts a value into the pool; it is dropped when the pool is destroyed.
    pub fn keep<T>(self, value: T) -> Option<NonNull<T>> {
        unsafe extern "C" fn drop_value<T>(data: *mut c_void) {
            // SAFETY: the cleanup of this one value, run once, when the pool is destroyed.
            unsafe { ptr::drop_in_place(data.cast::<T>()) }
        }
        // SAFETY: the pool is live.
        let cleanup = unsafe { ngx_pool_cleanup_add(self.as_ptr(), 0).as_mut()? };
        let place = self.place(value)?;
        cleanup.handler = Some(drop_value::<T>);
        cleanup.data = place.as_ptr().cast();
        Some(place)
    }

    fn place<T>(self, value: T) -> Option<NonNull<T>> {
        if fault::allocation_fails() {
            return None;
        }
        const { assert!(align_of::<T>() <= NGX_ALIGNMENT) };
        // SAFETY: the pool is live.
        let place = NonNull::new(unsafe { ngx_palloc(self.as_ptr(), size_of::<T>()) })?.cast::<T>();
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { place.as_ptr().write(value) };
        Some(place)
    }

    /// `count` zeroed items; for types to which zeros are a value.
    pub fn zeroed<T>(self, count: usize) -> Option<NonNull<T>> {
        if fault::allocation_fails() {
            return None;
        }
        const { assert!(align_of::<T>() <= NGX_ALIGNMENT) };
        let size = count.checked_mul(size_of::<T>())?;
        // SAFETY: the pool is live.
        NonNull::new(unsafe { ngx_pcalloc(self.as_ptr(), size) }).map(NonNull::cast)
    }

    /// `count` zeroed items, which live as long as the pool: the caller keeps them no longer. For
    /// types to which zeros are a value.
    pub fn items<T: Copy>(self, count: usize) -> Option<&'static mut [T]> {
        let memory = self.zeroed::<T>(count)?;
        // SAFETY: fresh memory for as many.
        Some(unsafe { core::slice::from_raw_parts_mut(memory.as_ptr(), count) })
    }

    /// A copy of bytes as a string, with a NUL behind it as words of a configuration have: nginx
    /// looks at the byte behind a last `$`.
    pub fn copy(self, bytes: &[u8]) -> Option<ngx_str_t> {
        if fault::allocation_fails() {
            return None;
        }
        // SAFETY: the pool is live.
        let data = unsafe { ngx_pnalloc(self.as_ptr(), bytes.len().checked_add(1)?) }.cast::<u8>();
        if data.is_null() {
            return None;
        }
        // SAFETY: fresh memory of this length, and a byte more.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
            data.add(bytes.len()).write(0);
        }
        Some(ngx_str_t {
            len: bytes.len(),
            data,
        })
    }

    /// Has an array take `count` items without growing. Those that it has move.
    pub fn reserve<T: Copy>(self, array: &mut ngx_array_t, count: usize) -> Option<()> {
        if array.nalloc >= count || array.size != size_of::<T>() {
            return Some(());
        }
        let room = self.zeroed::<T>(count)?;
        // SAFETY: the array has `nelts` items of this type, and there is room for more.
        unsafe { ptr::copy_nonoverlapping(array.elts.cast(), room.as_ptr(), array.nelts) };
        array.elts = room.as_ptr().cast();
        array.nalloc = count;
        Some(())
    }

    /// Gives large memory back early, as `ngx_pfree()` does.
    pub fn free(self, memory: *mut c_void) {
        // SAFETY: ngx_pfree() only compares the pointer with those that it handed out.
        unsafe { ngx_pfree(self.as_ptr(), memory) };
    }
}
