//! What an upstrand remembers between walks: turns, blacklist marks, what operators want.
//!
//! All of it is atomics, so that the same code serves a worker's own memory and a zone that
//! several workers share, without a lock: a worker that is killed leaves nothing locked.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{MemberCounts, Plan, Reason, Tier, UpstrandCounts};

/// A tier is looked at again after this long, in ms, whatever is known: when one worker marks a
/// member while another one reckons, the latter may not see it.
const RECHECK: u64 = 1000;

const WORD: usize = 64;

/// Words of a bit set over `members`.
pub fn member_words(members: usize) -> usize {
    members.div_ceil(WORD)
}

/// Why a member is blacklisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An answer of its own.
    Failure(Reason),
    /// An operator wants it so: no answer ends such a mark before its time.
    ByHand,
}

/// State of one upstream in an upstrand.
#[repr(C)]
#[derive(Debug, Default)]
pub struct MemberState {
    /// When the mark is over, in ms; means something only while the member's bit is set.
    until: AtomicU64,
    /// What `until` was when the member was marked: a probe moves `until` on.
    first_until: AtomicU64,
    /// When the member was last marked, in ms.
    marked_at: AtomicU64,
    /// Why; 0: by hand.
    cause: AtomicU64,
    /// When it was last marked, drained or taken back, in ms; 0: never.
    since: AtomicU64,
    /// When it last failed, in ms; 0: never.
    failed_at: AtomicU64,
    /// By what.
    failed_by: AtomicU64,
    reserved: AtomicU64,
}

impl MemberState {
    /// When it was last marked, drained or taken back, in ms; None: never.
    pub fn since(&self) -> Option<u64> {
        Some(self.since.load(Relaxed)).filter(|since| *since > 0)
    }

    /// Notes a failure.
    pub fn set_failed(&self, now: u64, by: Reason) {
        self.failed_at.store(now, Relaxed);
        self.failed_by.store(by.code(), Relaxed);
    }

    /// When it last failed, in ms, and by what.
    pub fn failed(&self) -> Option<(u64, Reason)> {
        let by = Reason::from_code(self.failed_by.load(Relaxed))?;
        Some((self.failed_at.load(Relaxed), by))
    }

    fn cause(&self) -> Cause {
        match Reason::from_code(self.cause.load(Relaxed)) {
            Some(reason) => Cause::Failure(reason),
            None => Cause::ByHand,
        }
    }
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
    /// What is counted of each member.
    pub counts: &'a [MemberCounts],
    /// What is counted of the upstrand.
    pub totals: &'a UpstrandCounts,
    /// A bit for each member: it is blacklisted.
    pub marked: &'a [AtomicU64],
    /// A bit for each member: it is draining, so that no walk visits it, not even the last resort.
    pub draining: &'a [AtomicU64],
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
    pub fn mark(&self, plan: &Plan, member: usize, cause: Cause, now: u64, until: u64) {
        let Some(state) = self.members.get(member) else {
            return;
        };
        let longer_by_hand = cause != Cause::ByHand
            && self.cause(member) == Some(Cause::ByHand)
            && self.until(member) > until;
        if longer_by_hand {
            return;
        }
        let code = match cause {
            Cause::Failure(reason) => reason.code(),
            Cause::ByHand => 0,
        };
        state.cause.store(code, Relaxed);
        state.marked_at.store(now, Relaxed);
        state.first_until.store(until, Relaxed);
        self.set_until(plan, member, until);
        if let Some((word, mask)) = bit(self.marked, member) {
            if word.fetch_or(mask, Relaxed) & mask == 0 {
                state.since.store(now, Relaxed);
            }
        }
    }

    /// Whether a member's mark is over and this walk is to probe it.
    pub fn claim_probe(&self, plan: &Plan, member: usize, now: u64) -> bool {
        let end = member.saturating_add(1);
        self.first_expired(plan, member, end, now, true).is_some()
    }

    /// A probe did not ask its member after all: the next walk may. `until` is what the mark was set
    /// to for the probe; one that was set to something else meanwhile stays.
    pub fn give_back_probe(&self, plan: &Plan, member: usize, until: u64, now: u64) {
        let Some(state) = self.members.get(member) else {
            return;
        };
        let is_own = state
            .until
            .compare_exchange(until, now, Relaxed, Relaxed)
            .is_ok();
        if let (true, Some(tier)) = (
            is_own,
            tier_of(plan, member).and_then(|tier| self.tiers.get(tier)),
        ) {
            tier.earliest.fetch_min(now, Relaxed);
        }
    }

    fn set_until(&self, plan: &Plan, member: usize, until: u64) {
        if let Some(state) = self.members.get(member) {
            state.until.store(until, Relaxed);
        }
        if let Some(tier) = tier_of(plan, member).and_then(|tier| self.tiers.get(tier)) {
            tier.earliest.fetch_min(until, Relaxed);
        }
    }

    /// A good answer of a member that was asked at `asked` (ms): ends its mark, unless the mark is
    /// younger than the question, or was made by hand and has yet to run out.
    #[inline]
    pub fn clear(&self, member: usize, now: u64, asked: u64) {
        if self.is_marked(member) {
            self.clear_marked(member, now, asked);
        }
    }

    fn clear_marked(&self, member: usize, now: u64, asked: u64) {
        let Some(state) = self.members.get(member) else {
            return;
        };
        let lasts = state.cause() == Cause::ByHand && !self.is_probed(member);
        if !lasts && state.marked_at.load(Relaxed) <= asked {
            self.unmark(member, now);
        }
    }

    /// Ends a member's mark.
    pub fn unmark(&self, member: usize, now: u64) {
        if let (Some((word, mask)), Some(state)) =
            (bit(self.marked, member), self.members.get(member))
        {
            if word.fetch_and(!mask, Relaxed) & mask != 0 {
                state.since.store(now, Relaxed);
            }
        }
    }

    /// Why a member is marked; None: it is not.
    pub fn cause(&self, member: usize) -> Option<Cause> {
        let state = self.members.get(member)?;
        self.is_marked(member).then(|| state.cause())
    }

    /// Whether a marked member's mark was over, and a probe has been sent since.
    pub fn is_probed(&self, member: usize) -> bool {
        self.members
            .get(member)
            .is_some_and(|m| m.until.load(Relaxed) != m.first_until.load(Relaxed))
    }

    /// Has walks pass a member by, or visit it again. False if that was so already.
    pub fn set_draining(&self, plan: &Plan, member: usize, draining: bool, now: u64) -> bool {
        let (Some((word, mask)), Some(state)) =
            (bit(self.draining, member), self.members.get(member))
        else {
            return false;
        };
        let old = if draining {
            word.fetch_or(mask, Relaxed)
        } else {
            // Its tier has not heeded the member's mark.
            self.set_until(plan, member, state.until.load(Relaxed));
            word.fetch_and(!mask, Relaxed)
        };
        let changed = (old & mask != 0) != draining;
        if changed {
            state.since.store(now, Relaxed);
        }
        changed
    }

    /// Whether walks pass a member by.
    pub fn is_draining(&self, member: usize) -> bool {
        is_set(self.draining, member)
    }

    /// Whether a member is neither draining, nor blacklisted at this time.
    pub fn is_usable(&self, member: usize, now: u64) -> bool {
        !self.is_draining(member) && (!self.is_marked(member) || self.until(member) <= now)
    }

    /// Goes on from what is known of a member of an older configuration. A mark that a failure
    /// made is dropped if failures of the new member make none.
    pub fn take_over(&self, plan: &Plan, member: usize, old: &State<'_>, old_member: usize) {
        let (Some(state), Some(other)) = (self.members.get(member), old.members.get(old_member))
        else {
            return;
        };
        let cause = old.cause(old_member);
        let keeps = cause.is_some_and(|cause| cause == Cause::ByHand || plan.interval(member) > 0);
        if let (true, Some((word, mask))) = (keeps, bit(self.marked, member)) {
            word.fetch_or(mask, Relaxed);
        }
        if let (true, Some((word, mask))) =
            (old.is_draining(old_member), bit(self.draining, member))
        {
            word.fetch_or(mask, Relaxed);
        }
        self.set_until(plan, member, other.until.load(Relaxed));
        let fields = |m: &'_ MemberState| {
            [
                m.first_until.load(Relaxed),
                m.marked_at.load(Relaxed),
                m.cause.load(Relaxed),
                m.since.load(Relaxed),
                m.failed_at.load(Relaxed),
                m.failed_by.load(Relaxed),
            ]
        };
        let [first_until, marked_at, cause, since, failed_at, failed_by] = fields(other);
        state.first_until.store(first_until, Relaxed);
        state.marked_at.store(marked_at, Relaxed);
        state.cause.store(cause, Relaxed);
        state.since.store(since, Relaxed);
        state.failed_at.store(failed_at, Relaxed);
        state.failed_by.store(failed_by, Relaxed);
        if let (Some(counts), Some(old)) = (self.counts.get(member), old.counts.get(old_member)) {
            counts.take_over(old);
        }
    }

    /// Whether a member is marked, be the mark over or not.
    pub fn is_marked(&self, member: usize) -> bool {
        is_set(self.marked, member)
    }

    /// Whether a member is marked or draining.
    #[inline]
    pub(crate) fn is_out(&self, member: usize) -> bool {
        is_set(self.marked, member) || is_set(self.draining, member)
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
            if !self.is_out(member) {
                return Some((
                    Pick {
                        member,
                        probe: false,
                    },
                    pos,
                ));
            }
            // While no mark can be over, the next free one up to the end of the tier it is.
            if now < self.tiers.get(index)?.earliest.load(Relaxed) {
                let end = tier.first.saturating_add(tier.len);
                if let Some(member) = self.first_free(member, end) {
                    let pick = Pick {
                        member,
                        probe: false,
                    };
                    return Some((pick, position(tier, start, 0, 0, member)));
                }
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
            let free = self.first_free(from, to);
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

    /// The member that a walk of last resort visits next, of those of a tier from `pos` on in the
    /// order of visiting, and its position.
    pub(crate) fn undrained(
        &self,
        tier: &Tier,
        start: usize,
        mut pos: usize,
    ) -> Option<(usize, usize)> {
        while pos < tier.len {
            let place = start.saturating_add(pos).checked_rem(tier.len)?;
            let member = tier.first.saturating_add(place);
            if !self.is_draining(member) {
                return Some((member, pos));
            }
            pos = pos.saturating_add(1);
        }
        None
    }

    #[inline]
    fn first_free(&self, from: usize, to: usize) -> Option<usize> {
        self.first_bit(from, to, |marked, draining| !(marked | draining))
    }

    /// Of those that are not draining.
    fn first_marked(&self, from: usize, to: usize) -> Option<usize> {
        self.first_bit(from, to, |marked, draining| marked & !draining)
    }

    /// The first member of `from..to` whose bit is set in what `view` makes of the words.
    #[inline]
    fn first_bit(&self, from: usize, to: usize, view: impl Fn(u64, u64) -> u64) -> Option<usize> {
        let first = from >> 6;
        let words = first..to.div_ceil(WORD);
        let marked = self.marked.get(words.clone())?;
        let draining = self.draining.get(words)?;
        let mut mask = u64::MAX.wrapping_shl(low_bits(from));
        for (n, (marked, draining)) in marked.iter().zip(draining).enumerate() {
            let bits = view(marked.load(Relaxed), draining.load(Relaxed)) & mask;
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
                if claim && plan.interval(member) == 0 {
                    // Marked by hand; there is nothing to mark it for anew.
                    self.unmark(member, now);
                    return Some(member);
                }
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

fn bit(words: &[AtomicU64], member: usize) -> Option<(&AtomicU64, u64)> {
    let word = words.get(member >> 6)?;
    Some((word, 1u64.wrapping_shl(low_bits(member))))
}

fn is_set(words: &[AtomicU64], member: usize) -> bool {
    bit(words, member).is_some_and(|(word, mask)| word.load(Relaxed) & mask != 0)
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
