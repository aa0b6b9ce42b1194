//! Memory of Rust's allocator, asked for in a way that can be refused. Where std asks by itself a
//! failure ends the process, which may be the master that reads a new configuration.

use std::collections::TryReserveError;

use nginx_sys::NGX_LOG_EMERG;

use super::{cycle_log, ConfResult, Refused};

impl From<TryReserveError> for Refused {
    fn from(_: TryReserveError) -> Refused {
        ngx::ngx_log_error!(NGX_LOG_EMERG, cycle_log(), "malloc() failed");
        Refused::Logged
    }
}

/// Adds an item.
pub fn push<T>(items: &mut Vec<T>, item: T) -> ConfResult {
    items.try_reserve(1)?;
    items.push(item);
    Ok(())
}

/// A vector of the items.
pub fn collect<T>(items: impl IntoIterator<Item = T>) -> ConfResult<Vec<T>> {
    let items = items.into_iter();
    let mut all = Vec::new();
    all.try_reserve(items.size_hint().0)?;
    for item in items {
        push(&mut all, item)?;
    }
    Ok(all)
}

/// A value in a place of its own.
pub fn boxed<T>(value: T) -> ConfResult<Box<T>> {
    let mut one = Vec::new();
    one.try_reserve_exact(1)?;
    one.push(value);
    // No more room than for the one, as a rule: else std asks for less.
    let one = Box::into_raw(one.into_boxed_slice());
    // SAFETY: a box of one item, whose layout is the item's.
    Ok(unsafe { Box::from_raw(one.cast::<T>()) })
}

/// A lower-case copy, the key under which upstreams and upstrands are found.
pub fn lowercase(bytes: &[u8]) -> ConfResult<Vec<u8>> {
    let mut copy = collect(bytes.iter().copied())?;
    copy.make_ascii_lowercase();
    Ok(copy)
}
