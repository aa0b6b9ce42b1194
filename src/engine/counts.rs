//! What is counted of a walk: see walk/src/counts.rs.

use walk::{Answer, Reason, State};

use super::walking::Walking;
use crate::nginx;

/// A try has ended with an answer: for this reason, and as this failure.
#[inline(always)]
pub fn answered(
    walking: &Walking,
    state: &State<'_>,
    end: Reason,
    answer: Answer,
    failure: Option<Reason>,
) {
    let now = nginx::now();
    if let (Some(failure), Some(member)) = (failure, state.members.get(walking.member)) {
        member.set_failed(now, failure);
    }
    if let Some(counts) = state.counts.get(walking.member) {
        let took = now.saturating_sub(walking.asked);
        counts.count(end, Some(answer.status()), failure, took);
    }
}

/// A try has ended without an answer.
pub fn unanswered(walking: &Walking, end: Reason) {
    if let Some(counts) = walking.state().counts.get(walking.member) {
        let took = nginx::now().saturating_sub(walking.asked);
        counts.count(end, None, None, took);
    }
}
