//! The state of a member, in the words and numbers of nginx Plus.

use core::fmt;

use serde::{Serialize, Serializer};
use walk::{Cause, State as Memory};

use super::peers::Tally;

/// See `word()`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It takes requests.
    Up = 1,
    /// No new walk visits it.
    Draining = 2,
    /// All its servers are marked down.
    Down = 3,
    /// It is blacklisted, or no server of it is live.
    Unavail = 4,
    /// Its blacklisting is over, and a request tells what it is like.
    Checking = 5,
}

impl State {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            State::Up => "up",
            State::Draining => "draining",
            State::Down => "down",
            State::Unavail => "unavail",
            State::Checking => "checking",
        }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Why a member is in its state.
#[derive(Clone, Copy)]
pub enum Why {
    /// It is up.
    Usable,
    /// By hand.
    Drained,
    /// Until a time to come.
    Blacklisted(Cause),
    /// The time is over, and no request has come since.
    ProbeDue(Cause),
    /// The time is over, and a request is under way.
    Probed(Cause),
    /// All servers are marked down.
    AllDown,
    /// No server is live.
    NoneLive,
}

/// The state of a member at `now` (ms), and why.
pub fn of(memory: &Memory<'_>, member: usize, now: u64, tally: Tally) -> (State, Why) {
    if memory.is_draining(member) {
        return (State::Draining, Why::Drained);
    }
    if let Some(cause) = memory.cause(member) {
        return if memory.until(member) <= now {
            (State::Checking, Why::ProbeDue(cause))
        } else if memory.is_probed(member) {
            (State::Checking, Why::Probed(cause))
        } else {
            (State::Unavail, Why::Blacklisted(cause))
        };
    }
    if tally.total > 0 && tally.down == tally.total {
        (State::Down, Why::AllDown)
    } else if tally.total > 0 && tally.live == 0 {
        (State::Unavail, Why::NoneLive)
    } else {
        (State::Up, Why::Usable)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, cause) = match self {
            Why::Usable => return Ok(()),
            Why::Drained => return f.write_str("drained by hand"),
            Why::AllDown => return f.write_str("all servers are marked down"),
            Why::NoneLive => return f.write_str("no live servers"),
            Why::Blacklisted(cause) => ("blacklisted", cause),
            Why::ProbeDue(cause) => ("the next request probes it, blacklisted", cause),
            Why::Probed(cause) => ("a request probes it, blacklisted", cause),
        };
        match cause {
            Cause::ByHand => write!(f, "{text} by hand"),
            Cause::Failure(reason) => write!(f, "{text} after {reason}"),
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
