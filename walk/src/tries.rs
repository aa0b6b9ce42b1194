//! The walk: one try after the other, no upstream twice.

use crate::{Pick, Plan, State, Tier};

/// A try: an upstream to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Try {
    /// Index of the upstream's member.
    pub member: usize,
    /// The member's mark is over, and this try is its probe.
    pub probe: bool,
    /// This try is the first of a walk that found every member blacklisted.
    pub last_resort: bool,
}

/// Where a walk stands.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    tier: usize,
    start: usize,
    pos: usize,
    entered: bool,
    visited: u32,
    /// All members that do not drain were blacklisted when the walk began: it goes through them as
    /// if none were.
    last_resort: bool,
}

impl Walk {
    /// The number of upstreams visited.
    pub fn visited(&self) -> u32 {
        self.visited
    }

    /// The next upstream. `now` in ms; `random` is drawn from only if the order asks for it.
    ///
    /// No upstream comes twice; upstreams of a lower tier come before those of a higher one; a
    /// blacklisted one is passed by, except in a walk that found all of them blacklisted when it
    /// began; a draining one always is.
    #[inline]
    pub fn next(
        &mut self,
        plan: &Plan,
        state: &State<'_>,
        now: u64,
        mut random: impl FnMut() -> u64,
    ) -> Option<Try> {
        let tier = plan.tiers.get(self.tier)?;
        if !self.entered {
            self.enter(plan, state, tier, &mut random);
            let member = tier.first.saturating_add(self.start);
            // Nearly always the one whose turn it is can be asked.
            if !state.is_out(member) {
                self.pos = 1;
                self.visited = self.visited.saturating_add(1);
                return Some(Try {
                    member,
                    probe: false,
                    last_resort: false,
                });
            }
        }
        self.search(plan, state, now, random)
    }

    fn enter(
        &mut self,
        plan: &Plan,
        state: &State<'_>,
        tier: &Tier,
        random: &mut impl FnMut() -> u64,
    ) {
        self.start = if plan.order.per_request {
            lot(plan, tier.len, random)
        } else {
            state.take_turn(self.tier, tier.len)
        };
        self.entered = true;
        self.pos = 0;
    }

    /// See `next()`: the first candidate is marked, or was visited.
    #[inline(never)]
    fn search(
        &mut self,
        plan: &Plan,
        state: &State<'_>,
        now: u64,
        mut random: impl FnMut() -> u64,
    ) -> Option<Try> {
        while let Some(tier) = plan.tiers.get(self.tier) {
            if !self.entered {
                self.enter(plan, state, tier, &mut random);
            }
            if let Some((pick, pos)) = self.candidate(plan, state, now) {
                self.pos = pos.saturating_add(1);
                self.visited = self.visited.saturating_add(1);
                return Some(Try {
                    member: pick.member,
                    probe: pick.probe,
                    last_resort: self.last_resort && self.visited == 1,
                });
            }
            let at_start = self.visited == 0 && self.tier == 0 && !self.last_resort;
            if at_start && !any_usable(plan, state, now, 1) {
                self.last_resort = true;
                continue;
            }
            self.tier = self.tier.saturating_add(1);
            self.entered = false;
        }
        None
    }

    /// Begins a walk with a given member, usable or not, as if its turn had come.
    pub fn start_at(&mut self, plan: &Plan, member: usize) -> Option<Try> {
        let (index, tier) = plan.tiers.iter().enumerate().find(|(_, tier)| {
            (tier.first..tier.first.saturating_add(tier.len)).contains(&member)
        })?;
        *self = Walk {
            tier: index,
            start: member.saturating_sub(tier.first),
            pos: 1,
            entered: true,
            visited: 1,
            last_resort: false,
        };
        Some(Try {
            member,
            probe: false,
            last_resort: false,
        })
    }

    fn candidate(&self, plan: &Plan, state: &State<'_>, now: u64) -> Option<(Pick, usize)> {
        if !self.last_resort {
            return state.usable(plan, self.tier, self.start, self.pos, now, true);
        }
        let tier = plan.tiers.get(self.tier)?;
        let (member, pos) = state.undrained(tier, self.start, self.pos)?;
        Some((
            Pick {
                member,
                probe: false,
            },
            pos,
        ))
    }

    /// The member that a walk which began now would ask first; None: all are draining. Changes
    /// nothing.
    pub fn preview(
        plan: &Plan,
        state: &State<'_>,
        now: u64,
        mut random: impl FnMut() -> u64,
    ) -> Option<usize> {
        let mut first = None;
        for (index, tier) in plan.tiers.iter().enumerate() {
            let start = if plan.order.per_request {
                lot(plan, tier.len, &mut random)
            } else {
                state.see_turn(index, tier.len)
            };
            first = first.or(state.undrained(tier, start, 0));
            if let Some((pick, _)) = state.usable(plan, index, start, 0, now, false) {
                return Some(pick.member);
            }
        }
        first.map(|(member, _)| member)
    }
}

pub(crate) fn any_usable(plan: &Plan, state: &State<'_>, now: u64, from: usize) -> bool {
    (from..plan.tiers.len()).any(|tier| state.usable(plan, tier, 0, 0, now, false).is_some())
}

fn lot(plan: &Plan, len: usize, random: &mut impl FnMut() -> u64) -> usize {
    if plan.order.start_random && len > 1 {
        random().checked_rem(len as u64).unwrap_or(0) as usize
    } else {
        0
    }
}
