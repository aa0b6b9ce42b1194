//! Why a walk moved on after a try, or ended with it.

/// What `$upstrand_reason` says of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The try is not over.
    Running,
    /// The answer is not listed as a failure.
    Final,
    /// A listed status; the walk went on.
    Http(u16),
    /// No valid answer from any peer; the walk went on.
    Error,
    /// nginx's own timeout; the walk went on.
    Timeout,
    /// `next_upstream_timeout` has passed.
    Deadline,
    /// `next_upstream_tries` upstreams were visited.
    Tries,
    /// A request that must not be repeated was sent to a peer.
    NonIdempotent,
    /// The request's body was passed on while it came in, and is gone.
    Unbuffered,
    /// A listed status, and no upstream is left.
    Exhausted,
    /// The client went away.
    Aborted,
}

impl Reason {
    /// The word for it; that of `Http` lacks the status.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Running => "running",
            Reason::Final => "final",
            Reason::Http(_) => "http",
            Reason::Error => "error",
            Reason::Timeout => "timeout",
            Reason::Deadline => "deadline",
            Reason::Tries => "tries",
            Reason::NonIdempotent => "non_idempotent",
            Reason::Unbuffered => "unbuffered",
            Reason::Exhausted => "exhausted",
            Reason::Aborted => "aborted",
        }
    }
}
