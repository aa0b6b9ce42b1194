//! Where a walk that began now would go, and why.

use crate::tries::any_usable;
use crate::{Plan, State};

/// Why a member is visited, or passed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nothing is against it.
    Usable,
    /// Its mark is over: the visit probes it.
    Probe,
    /// It is marked, but so are all others that do not drain.
    LastResort,
    /// It is marked.
    Blacklisted,
    /// An operator has it drained.
    Draining,
    /// `next_upstream_tries` ends the walk before it.
    TooManyTries,
}

/// What would become of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of the member.
    pub member: usize,
    /// Its place in the order of visiting, from 1 on; None: it is passed by.
    pub position: Option<u32>,
    /// Why.
    pub why: Why,
}

/// Tells of each member in the order of visiting what would become of it. Changes nothing. Returns
/// whether the walk would be one of last resort.
pub fn explain(plan: &Plan, state: &State<'_>, now: u64, mut each: impl FnMut(Step)) -> bool {
    let last_resort = !any_usable(plan, state, now, 0);
    let mut visited = 0u32;
    for (index, tier) in plan.tiers.iter().enumerate() {
        let start = if plan.order.per_request {
            0
        } else {
            state.see_turn(index, tier.len)
        };
        let (turned, first) = (start..tier.len, 0..start);
        for place in turned.chain(first) {
            let member = tier.first.saturating_add(place);
            let why = if state.is_draining(member) {
                Why::Draining
            } else if !state.is_marked(member) {
                Why::Usable
            } else if last_resort {
                Why::LastResort
            } else if state.until(member) <= now {
                Why::Probe
            } else {
                Why::Blacklisted
            };
            let is_in = !matches!(why, Why::Draining | Why::Blacklisted);
            let step = if is_in && plan.tries > 0 && visited >= plan.tries {
                Step {
                    member,
                    position: None,
                    why: Why::TooManyTries,
                }
            } else {
                visited = visited.saturating_add(is_in.into());
                Step {
                    member,
                    position: is_in.then_some(visited),
                    why,
                }
            };
            each(step);
        }
    }
    last_resort
}
