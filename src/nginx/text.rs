//! nginx's strings.

use core::fmt;

use nginx_sys::ngx_str_t;

/// The bytes of a string, for as long as the string is borrowed.
pub fn bytes(s: &ngx_str_t) -> &[u8] {
    if s.len == 0 || s.data.is_null() {
        return &[];
    }
    // SAFETY: nginx keeps `len` bytes at `data`.
    unsafe { core::slice::from_raw_parts(s.data, s.len) }
}

/// A string over bytes that outlive it: nginx's own, or static ones.
pub fn string(bytes: &[u8]) -> ngx_str_t {
    ngx_str_t {
        len: bytes.len(),
        data: bytes.as_ptr().cast_mut(),
    }
}

/// Bytes in a message: as they are, or as `\xFF` where they are no UTF-8.
pub struct Text<'a>(pub &'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02X}")?;
            }
        }
        Ok(())
    }
}

/// Bytes in a message that a client may have chosen, escaped as nginx does it in an access log: none
/// of them ends the line or the quotes.
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                b'"' | b'\\' | ..0x20 | 0x7f.. => write!(f, "\\x{byte:02X}")?,
                _ => fmt::Write::write_char(f, char::from(*byte))?,
            }
        }
        Ok(())
    }
}
