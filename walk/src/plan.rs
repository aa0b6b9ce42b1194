//! What the configuration says of an upstrand.

use std::collections::TryReserveError;

/// Where a walk starts in a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// `start_random`: the first turn is drawn by lot.
    pub start_random: bool,
    /// `per_request`: no turns are taken; every walk starts with the first upstream, or by lot.
    pub per_request: bool,
}

/// Upstreams of one rank: members `first..first + len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Index of its first member.
    pub first: usize,
    /// Number of members, at least 1.
    pub len: usize,
}

/// The upstreams of an upstrand in tiers, and the order of visiting them.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Tiers in the order of visiting.
    pub tiers: Vec<Tier>,
    /// For each member, how long it stays blacklisted after a failure, in ms; 0: not at all.
    pub intervals: Vec<u64>,
    /// Where a walk starts in a tier.
    pub order: Order,
    /// `next_upstream_tries`: the number of upstreams that one walk visits; 0: no limit.
    pub tries: u32,
}

impl Plan {
    /// Makes a plan of members that are sorted by rank: `ranks` holds each member's `tier=`. An
    /// error: memory is short.
    pub fn new(
        ranks: &[u32],
        intervals: Vec<u64>,
        order: Order,
        tries: u32,
    ) -> Result<Plan, TryReserveError> {
        let mut tiers: Vec<Tier> = Vec::new();
        let mut last = None;
        for (first, rank) in ranks.iter().enumerate() {
            match tiers.last_mut() {
                Some(tier) if last == Some(rank) => tier.len = tier.len.saturating_add(1),
                _ => {
                    tiers.try_reserve(1)?;
                    tiers.push(Tier { first, len: 1 });
                }
            }
            last = Some(rank);
        }
        Ok(Plan {
            tiers,
            intervals,
            order,
            tries,
        })
    }

    /// The blacklist interval of a member, in ms; 0: it is never blacklisted.
    pub fn interval(&self, member: usize) -> u64 {
        self.intervals.get(member).copied().unwrap_or(0)
    }
}
