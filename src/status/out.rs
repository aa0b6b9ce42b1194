//! A body in the making: a chain of buffers in the request's pool.

use core::{fmt, ptr};
use std::io;

use nginx_sys::{ngx_alloc_chain_link, ngx_buf_t, ngx_chain_t, ngx_create_temp_buf};

use crate::nginx::{fault, Pool};

/// The size of a buffer, in bytes.
const SIZE: usize = 32 * 1024;

/// What is written goes to the end of the body. It never fails, as an error would take memory with
/// some writers; if memory was short, there is no body at the end.
pub struct Out {
    pool: Pool,
    first: *mut ngx_chain_t,
    last: *mut ngx_chain_t,
    len: u64,
    failed: bool,
}

impl Out {
    /// An empty body.
    pub fn new(pool: Pool) -> Out {
        Out {
            pool,
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
            failed: false,
        }
    }

    /// The chain of buffers, NULL for an empty body, and its length in bytes. None: memory is short.
    pub fn finish(mut self, is_last: bool) -> Option<(*mut ngx_chain_t, u64)> {
        if self.failed {
            return None;
        }
        if let Some(buf) = self.last_buf() {
            buf.set_last_buf(is_last.into());
            buf.set_last_in_chain(1);
        }
        Some((self.first, self.len))
    }

    fn last_buf(&mut self) -> Option<&mut ngx_buf_t> {
        // SAFETY: add_buffer() made the link and its buffer, in the request's pool.
        unsafe { self.last.as_ref().and_then(|link| link.buf.as_mut()) }
    }

    fn add_buffer(&mut self) -> Option<()> {
        if fault::allocation_fails() {
            return None;
        }
        // SAFETY: the pool is live.
        let link = unsafe { ngx_alloc_chain_link(self.pool.as_ptr()) };
        // SAFETY: as above.
        let buf = unsafe { ngx_create_temp_buf(self.pool.as_ptr(), SIZE) };
        if buf.is_null() {
            return None;
        }
        // SAFETY: a fresh link, or NULL.
        let fields = unsafe { link.as_mut() }?;
        fields.buf = buf;
        fields.next = ptr::null_mut();
        // SAFETY: the link made before, or NULL.
        match unsafe { self.last.as_mut() } {
            Some(last) => last.next = link,
            None => self.first = link,
        }
        self.last = link;
        Some(())
    }

    /// Bytes as they are.
    pub fn text(&mut self, bytes: &[u8]) {
        if !self.failed {
            self.failed = self.add(bytes).is_none();
        }
    }

    fn add(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let room = self.last_buf().map_or(0, |buf| {
                (buf.end as usize).saturating_sub(buf.last as usize)
            });
            if room == 0 {
                self.add_buffer()?;
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            let buf = self.last_buf()?;
            // SAFETY: the buffer has room for as much.
            unsafe {
                ptr::copy_nonoverlapping(now.as_ptr(), buf.last, now.len());
                buf.last = buf.last.add(now.len());
            }
            self.len = self.len.saturating_add(now.len() as u64);
            bytes = later;
        }
        Some(())
    }
}

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text.as_bytes());
        Ok(())
    }
}
