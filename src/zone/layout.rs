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
use crate::nginx::bytes;

const MAGIC: u64 = u64::from_be_bytes(*b"upstrand");
/// To be raised whenever the layout changes.
const VERSION: u64 = 2;

const WORD: usize = 8;
const HEADER: usize = 5 * WORD;
/// Where in the header it says when the next configuration took the state over, in ms.
const LEFT_AT: usize = 4;
const HEAD: usize = 4 * WORD;

/// What the layout needs to know of an upstrand.
pub struct Block<'a> {
    name: &'a [u8],
    tiers: usize,
    members: Vec<&'a [u8]>,
}

impl Block<'_> {
    /// The block of an upstrand.
    pub fn of(upstrand: &Upstrand) -> Block<'_> {
        Block {
            name: upstrand.name_bytes(),
            tiers: upstrand.plan.tiers.len(),
            members: upstrand.members.iter().map(|m| bytes(&m.name)).collect(),
        }
    }

    fn state_size(&self) -> usize {
        state_size(self.tiers, self.members.len())
    }

    fn size(&self) -> usize {
        let names = self.members.iter().map(|name| name_size(name.len()));
        HEAD.saturating_add(self.state_size())
            .saturating_add(name_size(self.name.len()))
            .saturating_add(names.sum())
    }
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

/// The size of a zone's data, in bytes.
pub fn size(blocks: &[Block<'_>]) -> usize {
    HEADER.saturating_add(blocks.iter().map(Block::size).sum())
}

/// Writes head and names of each upstrand, and says where its state is.
///
/// # Safety
///
/// `memory` is zeroed, aligned to 8 bytes and of at least the size that `size()` says.
pub unsafe fn write(memory: NonNull<u8>, blocks: &[Block<'_>]) -> Vec<Parts> {
    let mut writer = Writer(memory);
    // SAFETY: the caller's memory has room for all that size() counts, which is what is written.
    unsafe {
        for word in [MAGIC, VERSION, size(blocks) as u64, blocks.len() as u64, 0] {
            writer.word(word);
        }
        let mut all = Vec::new();
        for block in blocks {
            writer.word(block.size() as u64);
            writer.word(block.tiers as u64);
            writer.word(block.members.len() as u64);
            writer.word(0);
            all.push(writer.state(block.tiers, block.members.len()));
            writer.name(block.name);
            block.members.iter().for_each(|name| writer.name(name));
        }
        all
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
pub fn take_over(old: (NonNull<u8>, usize), block: &Block<'_>, upstrand: &Upstrand) -> bool {
    let Some(found) = Reader::new(old).and_then(|mut reader| reader.find(block.name)) else {
        return false;
    };
    let state = upstrand.memory.state();
    let old = found.state();
    for (tier, old) in state.tiers.iter().zip(old.tiers) {
        tier.set_turn(old.turn());
    }
    state.totals.take_over(old.totals);
    for (n, name) in block.members.iter().enumerate() {
        if let Some(old_n) = found.members.get(*name) {
            state.take_over(&upstrand.plan, n, &old, *old_n);
        }
    }
    true
}

/// Reads a zone that other processes may still write to: only atomics are read of what they
/// change, and each length is checked against what is left.
struct Reader {
    at: NonNull<u8>,
    left: usize,
    upstrands: u64,
}

struct Found {
    parts: Parts,
    members: HashMap<Vec<u8>, usize>,
}

impl Found {
    fn state(&self) -> walk::State<'_> {
        // SAFETY: the reader checked that the state lies within the zone, which the running
        // configuration keeps mapped.
        unsafe { self.parts.state() }
    }
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

    fn name(&mut self) -> Option<Vec<u8>> {
        let len = usize::try_from(self.word()?).ok()?;
        let at = self.skip(len.checked_next_multiple_of(WORD)?)?;
        // SAFETY: skip() checked that the bytes are there.
        Some(unsafe { core::slice::from_raw_parts(at.as_ptr(), len) }.to_vec())
    }

    fn find(&mut self, wanted: &[u8]) -> Option<Found> {
        for _ in 0..self.upstrands {
            let _size = self.word()?;
            let tier_count = usize::try_from(self.word()?).ok()?;
            let member_count = usize::try_from(self.word()?).ok()?;
            self.word()?;
            let at = self.skip(state_size(tier_count, member_count))?;
            // SAFETY: skip() checked that the state is there.
            let parts = unsafe { Writer(at).state(tier_count, member_count) };
            let name = self.name()?;
            let members = (0..member_count)
                .map(|n| Some((self.name()?, n)))
                .collect::<Option<HashMap<_, _>>>()?;
            if name.eq_ignore_ascii_case(wanted) {
                return Some(Found { parts, members });
            }
        }
        None
    }
}
