//! Text for a pool whose length is not known before.

use core::{fmt, ptr};

use nginx_sys::{ngx_msec_t, ngx_pnalloc, ngx_pool_t, ngx_str_t};

use super::{fault, Pool};

/// A block with less room than this is not begun in.
const LEAST: usize = 64;

/// A text in the making: at the free end of one of the pool's blocks, which is taken when the text is
/// whole, or in memory of its own if that end is too short.
pub struct Writer {
    pool: Pool,
    /// The block at whose end the text is; NULL: it is in memory of its own.
    block: *mut ngx_pool_t,
    start: *mut u8,
    /// Where the text goes on.
    at: *mut u8,
    /// A byte before the end of the room: a NUL goes behind the text.
    end: *mut u8,
    failed: bool,
}

impl Pool {
    /// The text that `body` writes, with a NUL behind it. None: memory is short.
    ///
    /// While it runs `body` takes no memory of the pool, nor has nginx do so.
    #[inline]
    pub fn write(self, body: impl FnOnce(&mut Writer)) -> Option<ngx_str_t> {
        if fault::allocation_fails() {
            return None;
        }
        let mut writer = Writer::new(self);
        body(&mut writer);
        writer.finish()
    }
}

impl Writer {
    #[inline]
    fn new(pool: Pool) -> Writer {
        // SAFETY: a live pool is a chain of blocks, of which `last..end` is free.
        unsafe {
            let mut block = (*pool.as_ptr()).current;
            while let Some(found) = block.as_ref() {
                if room(found.d.last, found.d.end) >= LEAST {
                    return Writer {
                        pool,
                        block,
                        start: found.d.last,
                        at: found.d.last,
                        end: found.d.end.sub(1),
                        failed: false,
                    };
                }
                block = found.d.next;
            }
        }
        Writer {
            pool,
            block: ptr::null_mut(),
            start: ptr::null_mut(),
            at: ptr::null_mut(),
            end: ptr::null_mut(),
            failed: false,
        }
    }

    #[inline]
    fn finish(self) -> Option<ngx_str_t> {
        if self.failed {
            return None;
        }
        if self.at == self.start {
            return Some(ngx_str_t::empty());
        }
        // SAFETY: the text ends before `end`, and a byte is free there; the block is the pool's.
        unsafe {
            self.at.write(0);
            if !self.block.is_null() {
                (*self.block).d.last = self.at.add(1);
            }
        }
        Some(ngx_str_t {
            len: room(self.start, self.at),
            data: self.start,
        })
    }

    /// Bytes as they are.
    #[inline]
    pub fn text(&mut self, text: &[u8]) {
        if room(self.at, self.end) < text.len() && !self.grow(text.len()) {
            return;
        }
        // SAFETY: there is room for it.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), self.at, text.len());
            self.at = self.at.add(text.len());
        }
    }

    /// Moves the text to where `more` bytes can follow.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) -> bool {
        let len = room(self.start, self.at);
        let size = len.saturating_add(more).saturating_mul(2).max(LEAST);
        // SAFETY: the pool and its block are live. A large allocation takes a piece of a block, too:
        // until it is copied, what was written is taken.
        unsafe {
            if let Some(block) = self.block.as_mut() {
                block.d.last = self.at;
            }
            let place: *mut u8 = match size.checked_add(1) {
                Some(size) if !self.failed => ngx_pnalloc(self.pool.as_ptr(), size).cast(),
                _ => ptr::null_mut(),
            };
            if place.is_null() {
                self.failed = true;
                return false;
            }
            if let Some(block) = self.block.as_mut() {
                ptr::copy_nonoverlapping(self.start, place, len);
                if block.d.last == self.at {
                    block.d.last = self.start;
                }
            } else if len > 0 {
                ptr::copy_nonoverlapping(self.start, place, len);
            }
            self.start = place;
            self.at = place.add(len);
            self.end = place.add(size);
            self.block = ptr::null_mut();
        }
        true
    }

    /// A name in round brackets, and a blank.
    #[inline]
    pub fn bracketed(&mut self, name: &[u8]) {
        let size = name.len().saturating_add(3);
        if room(self.at, self.end) < size && !self.grow(size) {
            return;
        }
        // SAFETY: there is room for it.
        unsafe {
            self.at.write(b'(');
            let end = self.at.add(1).add(name.len());
            ptr::copy_nonoverlapping(name.as_ptr(), self.at.add(1), name.len());
            end.cast::<[u8; 2]>().write(*b") ");
            self.at = end.add(2);
        }
    }

    /// A decimal number.
    #[inline]
    pub fn number(&mut self, number: u64) {
        if number < 10 {
            return self.text(&[last_digit(number)]);
        }
        self.long_number(number);
    }

    fn long_number(&mut self, mut number: u64) {
        let mut digits = [b'0'; 20];
        let mut first = digits.len();
        for (n, digit) in digits.iter_mut().enumerate().rev() {
            if number == 0 {
                break;
            }
            *digit = last_digit(number);
            number /= 10;
            first = n;
        }
        self.text(digits.get(first..).unwrap_or_default());
    }

    /// A decimal number with zeros before it, up to `width` digits.
    pub fn padded(&mut self, number: u64, width: usize) {
        let digits = number
            .checked_ilog10()
            .map_or(1, |log| log.saturating_add(1));
        for _ in (digits as usize)..width {
            self.text(b"0");
        }
        self.number(number);
    }

    /// A number of three digits at least.
    #[inline]
    pub fn three_digits(&mut self, number: u64) {
        if number >= 1000 {
            return self.long_number(number);
        }
        self.text(&[
            last_digit(number / 100),
            last_digit(number / 10),
            last_digit(number),
        ]);
    }

    /// Milliseconds as seconds with three decimals; `-` for none.
    #[inline]
    pub fn seconds(&mut self, ms: ngx_msec_t) {
        if ms == ngx_msec_t::MAX {
            return self.text(b"-");
        }
        let (whole, rest) = ((ms / 1000) as u64, (ms % 1000) as u64);
        if whole >= 10 {
            self.long_number(whole);
            self.text(b".");
            return self.three_digits(rest);
        }
        self.text(&[
            last_digit(whole),
            b'.',
            last_digit(rest / 100),
            last_digit(rest / 10),
            last_digit(rest),
        ]);
    }
}

impl fmt::Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text.as_bytes());
        Ok(())
    }
}

#[inline]
fn last_digit(number: u64) -> u8 {
    b'0'.wrapping_add((number % 10) as u8)
}

/// The bytes between two places in the same memory.
#[inline]
fn room(from: *const u8, to: *const u8) -> usize {
    (to as usize).wrapping_sub(from as usize)
}
