//! The layout of a zone: words and bytes only, no pointers, so that the next configuration, or a
//! later version of the module, can read it.
//!
//! A header; then for each upstrand its head, its state, and the names by which the next
//! configuration finds it. Everything is a multiple of 8 bytes.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::collections::HashMap;

use walk::{member_words, MemberCounts, MemberState, TierState, UpstrandCounts};

use super::Parts;
use crate::conf::Upstrand;
use crate::nginx::{bytes, ConfResult};

const MAGIC: u64 = u64::from_be_bytes(*b"upstrand");
/// To be raised whenever the layout changes.
const VERSION: u64 = 2;

const WORD: usize = 8;
const HEADER: usize = 5 * WORD;
/// Where in the header it says when the next configuration took the state over, in ms.
const LEFT_AT: usize = 4;
const HEAD: usize = 4 * WORD;

fn block_size(upstrand: &Upstrand) -> usize {
    let members = &upstrand.members;
    let names = members.iter().map(|member| name_size(member.name.len));
    HEAD.saturating_add(state_size(upstrand.plan.tiers.len(), members.len()))
        .saturating_add(name_size(upstrand.name.len))
        .saturating_add(names.sum())
}

fn state_size(tiers: usize, members: usize) -> usize {
    const MEMBER: usize = size_of::<MemberState>() + size_of::<MemberCounts>();
    // A bit for the mark, one for draining.
    const BITS: usize = 2 * WORD;
    size_of::<UpstrandCounts>()
        .saturating_add(tiers.saturating_mul(size_of::<TierState>()))
        .saturating_add(members.saturating_mul(MEMBER))
        .saturating_add(member_words(members).saturating_mul(BITS))
}

fn name_size(len: usize) -> usize {
    len.next_multiple_of(WORD).saturating_add(WORD)
}

/// The size of the data of a zone with these upstrands, in bytes.
pub fn size<'a>(upstrands: impl Iterator<Item = &'a Upstrand>) -> usize {
    HEADER.saturating_add(upstrands.map(block_size).sum())
}

/// Writes head and names of each upstrand, and tells `each` where its state is.
///
/// # Safety
///
/// `memory` is zeroed, aligned to 8 bytes and of at least the size that `size()` says.
pub unsafe fn write<'a>(
    memory: NonNull<u8>,
    upstrands: impl Iterator<Item = &'a Upstrand> + Clone,
    mut each: impl FnMut(&'a Upstrand, Parts),
) {
    let (size, count) = (size(upstrands.clone()), upstrands.clone().count());
    let mut writer = Writer(memory);
    // SAFETY: the caller's memory has room for all that size() counts, which is what is written.
    unsafe {
        for word in [MAGIC, VERSION, size as u64, count as u64, 0] {
            writer.word(word);
        }
        for upstrand in upstrands {
            let (tiers, members) = (upstrand.plan.tiers.len(), upstrand.members.len());
            writer.word(block_size(upstrand) as u64);
            writer.word(tiers as u64);
            writer.word(members as u64);
            writer.word(0);
            let parts = writer.state(tiers, members);
            writer.name(upstrand.name_bytes());
            for member in &upstrand.members {
                writer.name(bytes(&member.name));
            }
            each(upstrand, parts);
        }
    }
}

struct Writer(NonNull<u8>);

impl Writer {
    /// # Safety
    ///
    /// There is room for a word.
    unsafe fn word(&mut self, word: u64) {
        // SAFETY: as the caller says; everything is a multiple of 8 bytes.
        unsafe {
            self.0.cast::<u64>().write(word);
            self.0 = self.0.add(WORD);
        }
    }

    /// # Safety
    ///
    /// There is room for the name.
    unsafe fn name(&mut self, name: &[u8]) {
        // SAFETY: as the caller says.
        unsafe {
            self.word(name.len() as u64);
            core::ptr::copy_nonoverlapping(name.as_ptr(), self.0.as_ptr(), name.len());
            self.0 = self.0.add(name.len().next_multiple_of(WORD));
        }
    }

    /// # Safety
    ///
    /// There is room for the state.
    unsafe fn state(&mut self, tier_count: usize, member_count: usize) -> Parts {
        // SAFETY: as the caller says.
        unsafe {
            let totals = self.0.cast::<UpstrandCounts>();
            let tiers = totals.add(1).cast::<TierState>();
            let members = tiers.add(tier_count).cast::<MemberState>();
            let counts = members.add(member_count).cast::<MemberCounts>();
            let marked = counts.add(member_count).cast::<AtomicU64>();
            let draining = marked.add(member_words(member_count));
            self.0 = self.0.add(state_size(tier_count, member_count));
            Parts {
                tiers,
                tier_count,
                members,
                member_count,
                counts,
                totals,
                marked,
                draining,
            }
        }
    }
}

/// When the next configuration took over the state of a zone.
///
/// # Safety
///
/// `memory` is what `write()` wrote, and outlives the result.
pub unsafe fn left_at<'a>(memory: NonNull<u8>) -> &'a AtomicU64 {
    // SAFETY: as the caller says: a word of the header, changed through atomics only.
    unsafe { memory.cast::<AtomicU64>().add(LEFT_AT).as_ref() }
}

/// Whether bytes are a zone of this version.
pub fn is_zone(old: (NonNull<u8>, usize)) -> bool {
    Reader::new(old).is_some()
}

/// Takes over what an older zone knows of the same upstrand. False if that is nothing.
pub fn take_over(old: (NonNull<u8>, usize), upstrand: &Upstrand) -> ConfResult<bool> {
    let Some(mut reader) = Reader::new(old) else {
        return Ok(false);
    };
    let Some(parts) = reader.find(upstrand.name_bytes()) else {
        return Ok(false);
    };
    let Some(members) = reader.names(parts.member_count)? else {
        return Ok(false);
    };
    let state = upstrand.memory.state();
    // SAFETY: the reader checked that the state lies within the zone, which the running
    // configuration keeps mapped.
    let old: walk::State<'_> = unsafe { parts.state() };
    for (tier, old) in state.tiers.iter().zip(old.tiers) {
        tier.set_turn(old.turn());
    }
    state.totals.take_over(old.totals);
    for (n, member) in upstrand.members.iter().enumerate() {
        if let Some(old_n) = members.get(bytes(&member.name)) {
            state.take_over(&upstrand.plan, n, &old, *old_n);
        }
    }
    Ok(true)
}

/// Reads a zone that other processes may still write to: only atomics are read of what they
/// change, and each length is checked against what is left.
struct Reader {
    at: NonNull<u8>,
    left: usize,
    upstrands: u64,
}

impl Reader {
    fn new((at, left): (NonNull<u8>, usize)) -> Option<Reader> {
        if !at.cast::<u64>().is_aligned() {
            return None;
        }
        let mut reader = Reader {
            at,
            left,
            upstrands: 0,
        };
        if reader.word()? != MAGIC || reader.word()? != VERSION {
            return None;
        }
        let size = usize::try_from(reader.word()?).ok()?;
        if size > left {
            return None;
        }
        reader.upstrands = reader.word()?;
        reader.word()?;
        Some(reader)
    }

    fn word(&mut self) -> Option<u64> {
        let at = self.skip(WORD)?;
        // SAFETY: a word lies there, aligned, within the zone.
        Some(unsafe { at.cast::<u64>().read() })
    }

    fn skip(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.left = self.left.checked_sub(size)?;
        let at = self.at;
        // SAFETY: the zone goes on for that long.
        self.at = unsafe { at.add(size) };
        Some(at)
    }

    /// A name; whoever wrote it does so no more.
    fn name(&mut self) -> Option<&'static [u8]> {
        let len = usize::try_from(self.word()?).ok()?;
        let at = self.skip(len.checked_next_multiple_of(WORD)?)?;
        // SAFETY: skip() checked that the bytes are there; the caller keeps them no longer than the
        // zone.
        Some(unsafe { core::slice::from_raw_parts(at.as_ptr(), len) })
    }

    /// The names of `count` members, and their numbers. None: the zone ends before.
    fn names(&mut self, count: usize) -> ConfResult<Option<HashMap<&'static [u8], usize>>> {
        let mut names = HashMap::new();
        names.try_reserve(count)?;
        for n in 0..count {
            let Some(name) = self.name() else {
                return Ok(None);
            };
            names.insert(name, n);
        }
        Ok(Some(names))
    }

    /// The state of an upstrand; the names of its members follow.
    fn find(&mut self, wanted: &[u8]) -> Option<Parts> {
        for _ in 0..self.upstrands {
            let _size = self.word()?;
            let tier_count = usize::try_from(self.word()?).ok()?;
            let member_count = usize::try_from(self.word()?).ok()?;
            self.word()?;
            let at = self.skip(state_size(tier_count, member_count))?;
            // SAFETY: skip() checked that the state is there.
            let parts = unsafe { Writer(at).state(tier_count, member_count) };
            if self.name()?.eq_ignore_ascii_case(wanted) {
                return Some(parts);
            }
            for _ in 0..member_count {
                self.name()?;
            }
        }
        None
    }
}
