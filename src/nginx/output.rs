//! Answers of the module's own, and the requests' bodies that they are to.

use core::ffi::CStr;
use core::{fmt, ptr};
use std::io;

use nginx_sys::{
    ngx_alloc_chain_link, ngx_buf_t, ngx_chain_t, ngx_create_temp_buf,
    ngx_http_discard_request_body, ngx_http_output_filter, ngx_http_send_header, ngx_int_t,
    ngx_list_push, ngx_read_file, ngx_table_elt_t,
};

use super::{fault, string, Pool, Request, ERROR, OK};

/// The size of a buffer, in bytes.
const SIZE: usize = 32 * 1024;

/// A body in the making: a chain of buffers in the request's pool. What is written goes to its end. It never fails, as an error would take memory with
/// some writers; if memory was short, there is no body at the end.
pub struct Output {
    pool: Pool,
    first: *mut ngx_chain_t,
    last: *mut ngx_chain_t,
    len: u64,
    failed: bool,
}

impl Output {
    /// An empty body.
    pub fn new(pool: Pool) -> Output {
        Output {
            pool,
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
            failed: false,
        }
    }

    /// A body that the module holds.
    pub fn of(pool: Pool, text: &'static str) -> Output {
        let mut output = Output::new(pool);
        output.failed = output.add_static(text).is_none();
        output
    }

    fn add_static(&mut self, text: &'static str) -> Option<()> {
        // SAFETY: zeros are an empty buffer.
        let mut buf: ngx_buf_t = unsafe { core::mem::zeroed() };
        buf.pos = text.as_ptr().cast_mut();
        buf.last = buf.pos.wrapping_add(text.len());
        buf.set_memory(1);
        self.len = text.len() as u64;
        let buf = self.pool.put(buf)?;
        self.add_link(buf.as_ptr())
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
        let buf = unsafe { ngx_create_temp_buf(self.pool.as_ptr(), SIZE) };
        self.add_link(buf)
    }

    fn add_link(&mut self, buf: *mut ngx_buf_t) -> Option<()> {
        if buf.is_null() {
            return None;
        }
        // SAFETY: the pool is live.
        let link = unsafe { ngx_alloc_chain_link(self.pool.as_ptr()) };
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

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text.as_bytes());
        Ok(())
    }
}

impl Request {
    /// Adds a header to the answer. None: memory is short.
    pub fn add_header(self, name: &'static CStr, value: &'static CStr) -> Option<()> {
        // SAFETY: the list of headers is live; the new element is all written.
        unsafe {
            let place = ngx_list_push(&mut self.fields_mut().headers_out.headers);
            let place = place.cast::<ngx_table_elt_t>().as_mut()?;
            // Zeros are an element; nginx 1.23 and later have one field more.
            *place = core::mem::zeroed();
            place.hash = 1;
            place.key = string(name.to_bytes());
            place.value = string(value.to_bytes());
        }
        Some(())
    }

    /// Answers; `kind` is the body's media type, with parameters. None: memory is short.
    pub fn send(self, status: usize, kind: &'static str, mut body: Output) -> Option<ngx_int_t> {
        if body.failed {
            return None;
        }
        if let Some(buf) = body.last_buf() {
            buf.set_last_buf(self.is_main().into());
            buf.set_last_in_chain(1);
        }
        self.set_unconditional();
        let headers = &mut self.fields_mut().headers_out;
        headers.status = status;
        headers.content_length_n = i64::try_from(body.len).unwrap_or(-1);
        headers.content_type = string(kind.as_bytes());
        // What other modules compare ends where the parameters begin.
        headers.content_type_len = kind.find(';').unwrap_or(kind.len());
        headers.content_type_lowcase = ptr::null_mut();
        // SAFETY: the request is live, and nothing was sent.
        let rc = unsafe { ngx_http_send_header(self.as_ptr()) };
        if rc == ERROR || rc > OK || self.is_header_only() || body.first.is_null() {
            return Some(rc);
        }
        // SAFETY: the chain lives in the request's pool.
        Some(unsafe { ngx_http_output_filter(self.as_ptr(), body.first) })
    }

    /// Drops the request's body, read or not. An error: what nginx answers, as there is something wrong
    /// with it.
    pub fn discard_body(self) -> Result<(), ngx_int_t> {
        // SAFETY: the request is live.
        match unsafe { ngx_http_discard_request_body(self.as_ptr()) } {
            OK => Ok(()),
            rc => Err(rc),
        }
    }

    /// Copies the body that nginx has read, up to the room that there is, and returns its length. None:
    /// a file can't be read.
    pub fn copy_body(self, room: &mut [u8]) -> Option<usize> {
        let mut len = 0usize;
        // SAFETY: nginx has read the body: NULL, or a chain of buffers in the request's pool.
        let mut link: *mut ngx_chain_t = unsafe {
            let body = self.fields().request_body.as_ref();
            body.map_or(ptr::null_mut(), |body| body.bufs)
        };
        // SAFETY: as above.
        while let Some(buf) = unsafe { link.as_ref().and_then(|link| link.buf.as_mut()) } {
            let place = room.get_mut(len..)?;
            let count = if buf.in_file() != 0 {
                let size = usize::try_from(buf.file_last.saturating_sub(buf.file_pos)).ok()?;
                let size = size.min(place.len());
                // SAFETY: the buffer's file is open, and there is room for as much.
                let read =
                    unsafe { ngx_read_file(buf.file, place.as_mut_ptr(), size, buf.file_pos) };
                usize::try_from(read).ok()?
            } else {
                let size = (buf.last as usize).saturating_sub(buf.pos as usize);
                let size = size.min(place.len());
                // SAFETY: the buffer holds as much at its position, and there is room for it.
                unsafe { ptr::copy_nonoverlapping(buf.pos, place.as_mut_ptr(), size) };
                size
            };
            len = len.saturating_add(count);
            // SAFETY: as above.
            link = unsafe { (*link).next };
        }
        Some(len)
    }
}
