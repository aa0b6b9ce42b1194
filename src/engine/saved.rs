//! The request as it was before the first try, so that nothing of a failed answer shows.

use core::ptr;

use nginx_sys::{ngx_http_headers_out_t, ngx_list_part_t, ngx_list_t, ngx_table_elt_t, ngx_uint_t};

use crate::nginx::{Pool, Request, SavedFlags};

/// What is restored before each further try.
pub struct Saved {
    headers_out: ngx_http_headers_out_t,
    headers: SavedList,
    trailers: SavedList,
    flags: SavedFlags,
    err_status: ngx_uint_t,
    http_version: ngx_uint_t,
    limit_rate: usize,
    limit_rate_after: usize,
}

/// A list may have got elements of its own before the try, from the access phase say; a failed
/// answer appends to it, and may change what is there.
struct SavedList {
    last: *mut ngx_list_part_t,
    nelts: ngx_uint_t,
    /// A copy of the last part's elements; NULL if there are none.
    elts: *mut ngx_table_elt_t,
}

impl Saved {
    /// Saves a request to `place`. None: memory is short.
    ///
    /// # Safety
    ///
    /// `place` is memory for a Saved.
    pub unsafe fn save(request: Request, place: *mut Saved) -> Option<()> {
        let pool = request.pool()?;
        let fields = request.fields();
        // SAFETY: as the caller says; headers_out is plain data.
        unsafe {
            ptr::copy_nonoverlapping(
                &fields.headers_out,
                ptr::addr_of_mut!((*place).headers_out),
                1,
            );
            ptr::addr_of_mut!((*place).headers)
                .write(SavedList::of(&fields.headers_out.headers, pool)?);
            ptr::addr_of_mut!((*place).trailers)
                .write(SavedList::of(&fields.headers_out.trailers, pool)?);
            request.save_flags(ptr::addr_of_mut!((*place).flags));
            (*place).err_status = fields.err_status;
            (*place).http_version = fields.http_version;
            (*place).limit_rate = fields.limit_rate;
            (*place).limit_rate_after = fields.limit_rate_after;
        }
        Some(())
    }

    /// Restores the request.
    pub fn restore(&self, request: Request) {
        let fields = request.fields_mut();
        // SAFETY: plain data.
        fields.headers_out = unsafe { ptr::read(&self.headers_out) };
        self.headers.restore();
        self.trailers.restore();
        fields.err_status = self.err_status;
        fields.http_version = self.http_version;
        fields.limit_rate = self.limit_rate;
        fields.limit_rate_after = self.limit_rate_after;
        request.restore_flags(&self.flags);
    }

    /// Lets `error_page` act again, as it did before the walk.
    pub fn restore_error_page(&self, request: Request) {
        request.restore_error_page(&self.flags);
    }
}

impl SavedList {
    fn of(list: &ngx_list_t, pool: Pool) -> Option<SavedList> {
        // SAFETY: a request's lists are initialised.
        let part = unsafe { &*list.last };
        let mut elts = ptr::null_mut();
        if part.nelts > 0 {
            elts = pool.zeroed::<ngx_table_elt_t>(part.nelts)?.as_ptr();
            // SAFETY: a part holds `nelts` elements, and the copy has room for them.
            unsafe { ptr::copy_nonoverlapping(part.elts.cast(), elts, part.nelts) };
        }
        Some(SavedList {
            last: list.last,
            nelts: part.nelts,
            elts,
        })
    }

    fn restore(&self) {
        // SAFETY: the part lives in the request or its pool, and has kept its elements' memory.
        unsafe {
            let part = &mut *self.last;
            part.nelts = self.nelts;
            part.next = ptr::null_mut();
            if !self.elts.is_null() {
                ptr::copy_nonoverlapping(self.elts, part.elts.cast(), self.nelts);
            }
        }
    }
}
