//! What an upstrand remembers between walks: turns and blacklist marks.
//!
//! All of it is atomics, so that the same code serves a worker's own memory and a zone that
//! several workers share, without a lock: a worker that is killed leaves nothing locked.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Plan, Tier};

/// A tier is looked at again after this long, in ms, whatever is known: when one worker marks a
/// member while another one reckons, the latter may not see it.
const RECHECK: u64 = 1000;

const WORD: usize = 64;

/// Words of a bit set over `members`.
pub fn member_words(members: usize) -> usize {
    members.div_ceil(WORD)
}

/// State of one upstream in an upstrand.
#[repr(C)]
#[derive(Debug, Default)]
pub struct MemberState {
    /// When the mark is over, in ms; means something only while the member's bit is set.
    until: AtomicU64,
    /// Room for what later versions count.
    reserved: [AtomicU64; 7],
}

/// State of one tier.
#[repr(C)]
#[derive(Debug, Default)]
pub struct TierState {
    /// Walks that entered the tier, plus where the first one started.
    turn: AtomicU64,
    /// Until this time, in ms, no mark of the tier needs a look.
    earliest: AtomicU64,
}

impl TierState {
    /// The turn, to be kept over a reload.
    pub fn turn(&self) -> u64 {
        self.turn.load(Relaxed)
    }

    /// Sets the turn.
    pub fn set_turn(&self, turn: u64) {
        self.turn.store(turn, Relaxed);
    }
}

/// The state of an upstrand: a view on memory that lives elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// One for each tier of the plan.
    pub tiers: &'a [TierState],
    /// One for each member.
    pub members: &'a [MemberState],
    /// A bit for each member: it is blacklisted.
    pub marked: &'a [AtomicU64],
}

/// A member to be visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Index of the member.
    pub member: usize,
    /// Its mark is over, and this visit is the one that probes it.
    pub probe: bool,
}

impl State<'_> {
    /// Takes the next turn in a tier: where the walk starts, counted from the tier's first member.
    pub(crate) fn take_turn(&self, tier: usize, len: usize) -> usize {
        let turn = self
            .tiers
            .get(tier)
            .map_or(0, |t| t.turn.fetch_add(1, Relaxed));
        remainder(turn, len)
    }

    /// Where the next walk would start.
    pub(crate) fn see_turn(&self, tier: usize, len: usize) -> usize {
        remainder(self.tiers.get(tier).map_or(0, TierState::turn), len)
    }

    /// Blacklists a member until `until` (ms).
    pub fn mark(&self, plan: &Plan, member: usize, until: u64) {
        let Some(state) = self.members.get(member) else {
            return;
        };
        state.until.store(until, Relaxed);
        if let Some(tier) = tier_of(plan, member).and_then(|tier| self.tiers.get(tier)) {
            tier.earliest.fetch_min(until, Relaxed);
        }
        if let Some((word, mask)) = self.bit(member) {
            word.fetch_or(mask, Relaxed);
        }
    }

    /// A good answer of a member that was asked at `asked` (ms): ends its mark, unless the mark is
    /// younger than the question.
    pub fn clear(&self, member: usize, interval: u64, asked: u64) {
        if !self.is_marked(member) {
            return;
        }
        if self.until(member).saturating_sub(interval) <= asked {
            self.unmark(member);
        }
    }

    /// Ends a member's mark.
    pub fn unmark(&self, member: usize) {
        if let Some((word, mask)) = self.bit(member) {
            word.fetch_and(!mask, Relaxed);
        }
    }

    /// Whether a member is marked, be the mark over or not.
    pub fn is_marked(&self, member: usize) -> bool {
        self.bit(member)
            .is_some_and(|(word, mask)| word.load(Relaxed) & mask != 0)
    }

    /// When a marked member's mark is over, in ms.
    pub fn until(&self, member: usize) -> u64 {
        self.members
            .get(member)
            .map_or(0, |m| m.until.load(Relaxed))
    }

    /// The first usable member of a tier in the order of visiting, of those from `pos` on: one
    /// without a mark, or one whose mark is over. With `claim` a mark that is over is set anew, so
    /// that no other walk takes the same member before this one's answer is known.
    ///
    /// Returns the member and its position in the order of visiting.
    #[inline]
    pub(crate) fn usable(
        &self,
        plan: &Plan,
        index: usize,
        start: usize,
        pos: usize,
        now: u64,
        claim: bool,
    ) -> Option<(Pick, usize)> {
        let tier = plan.tiers.get(index)?;
        let next = start.saturating_add(pos);
        if next < tier.len {
            let member = tier.first.saturating_add(next);
            if !self.is_marked(member) {
                return Some((
                    Pick {
                        member,
                        probe: false,
                    },
                    pos,
                ));
            }
        }
        self.search(plan, index, start, pos, now, claim)
    }

    /// See `usable()`: the first candidate is marked.
    fn search(
        &self,
        plan: &Plan,
        index: usize,
        start: usize,
        pos: usize,
        now: u64,
        claim: bool,
    ) -> Option<(Pick, usize)> {
        let tier = plan.tiers.get(index)?;
        let state = self.tiers.get(index)?;
        // Whether some mark of the tier may be over.
        let expired = now >= state.earliest.load(Relaxed);

        // The order of visiting is at most two runs of members: from the start to the end of the
        // tier, and from its first member to the start.
        let split = tier.len.saturating_sub(start);
        let runs = [
            (start.saturating_add(pos.min(split)), tier.len, 0),
            (pos.max(split).saturating_sub(split), start, split),
        ];
        let mut found = None;
        let mut passed_by = false;
        for (from, to, offset) in runs {
            let from = tier.first.saturating_add(from);
            let to = tier.first.saturating_add(to);
            let free = self.first_unmarked(from, to);
            if expired {
                let end = free.unwrap_or(to);
                if let Some(member) = self.first_expired(plan, from, end, now, claim) {
                    let pick = Pick {
                        member,
                        probe: true,
                    };
                    return Some((pick, position(tier, start, split, offset, member)));
                }
                passed_by |= from < end;
            }
            if let Some(member) = free {
                let pick = Pick {
                    member,
                    probe: false,
                };
                found = Some((pick, position(tier, start, split, offset, member)));
                break;
            }
        }
        // Marks that are over but not in the way are nobody's concern: no look at the whole tier.
        if passed_by && claim {
            self.reckon_earliest(tier, state, now);
        }
        found
    }

    fn bit(&self, member: usize) -> Option<(&AtomicU64, u64)> {
        let word = self.marked.get(member >> 6)?;
        Some((word, 1u64.wrapping_shl(low_bits(member))))
    }

    #[inline]
    fn first_unmarked(&self, from: usize, to: usize) -> Option<usize> {
        self.first_bit(from, to, |word| !word)
    }

    fn first_marked(&self, from: usize, to: usize) -> Option<usize> {
        self.first_bit(from, to, |word| word)
    }

    /// The first member of `from..to` whose bit is set in what `view` makes of the words.
    #[inline]
    fn first_bit(&self, from: usize, to: usize, view: impl Fn(u64) -> u64) -> Option<usize> {
        let first = from >> 6;
        let words = self.marked.get(first..to.div_ceil(WORD))?;
        let mut mask = u64::MAX.wrapping_shl(low_bits(from));
        for (n, word) in words.iter().enumerate() {
            let bits = view(word.load(Relaxed)) & mask;
            if bits != 0 {
                let base = first.saturating_add(n).wrapping_shl(6);
                let found = base.saturating_add(bits.trailing_zeros() as usize);
                return (found < to).then_some(found);
            }
            mask = u64::MAX;
        }
        None
    }

    fn first_expired(
        &self,
        plan: &Plan,
        from: usize,
        to: usize,
        now: u64,
        claim: bool,
    ) -> Option<usize> {
        let mut at = self.first_marked(from, to);
        while let Some(member) = at {
            let state = self.members.get(member)?;
            let until = state.until.load(Relaxed);
            if until <= now {
                let next = now.saturating_add(plan.interval(member));
                if !claim
                    || state
                        .until
                        .compare_exchange(until, next, Relaxed, Relaxed)
                        .is_ok()
                {
                    return Some(member);
                }
            }
            at = self.first_marked(member.saturating_add(1), to);
        }
        None
    }

    fn reckon_earliest(&self, tier: &Tier, state: &TierState, now: u64) {
        let old = state.earliest.load(Relaxed);
        let end = tier.first.saturating_add(tier.len);
        let mut earliest = now.saturating_add(RECHECK);
        let mut at = self.first_marked(tier.first, end);
        while let Some(member) = at {
            earliest = earliest.min(self.until(member));
            at = self.first_marked(member.saturating_add(1), end);
        }
        let _ = state
            .earliest
            .compare_exchange(old, earliest, Relaxed, Relaxed);
    }
}

fn position(tier: &Tier, start: usize, split: usize, offset: usize, member: usize) -> usize {
    let place = member.saturating_sub(tier.first);
    if offset == 0 {
        place.saturating_sub(start)
    } else {
        place.saturating_add(split)
    }
}

fn tier_of(plan: &Plan, member: usize) -> Option<usize> {
    plan.tiers
        .partition_point(|tier| tier.first <= member)
        .checked_sub(1)
}

fn low_bits(member: usize) -> u32 {
    (member & 63) as u32
}

fn remainder(turn: u64, len: usize) -> usize {
    turn.checked_rem(len as u64).unwrap_or(0) as usize
}
