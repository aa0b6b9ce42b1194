//! The walk over the upstreams of an upstrand, without nginx: which upstream comes next, what an
//! answer counts as, and why the walk moves on or ends.
//!
//! Time comes in as an argument (milliseconds of a monotonic clock), and so do random numbers.
#![forbid(unsafe_code)]

mod counts;
mod explain;
mod plan;
mod reason;
mod state;
mod status;
mod tries;

pub use counts::{MemberCounts, UpstrandCounts};
pub use explain::{explain, Step, Why};
pub use plan::{Order, Plan, Tier};
pub use reason::Reason;
pub use state::{member_words, Cause, MemberState, Pick, State, TierState};
pub use status::{Answer, ParseError, Statuses, Word};
pub use tries::{Try, Walk};
