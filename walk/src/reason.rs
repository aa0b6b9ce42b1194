//! Why a walk moved on after a try, or ended with it.

/// Marks what `Reason::code()` made.
const CODED: u64 = 1 << 63;

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
    /// The words for why tries end, as `end()` numbers them.
    pub const ENDS: [&'static str; 10] = [
        "final",
        "http",
        "error",
        "timeout",
        "deadline",
        "tries",
        "non_idempotent",
        "unbuffered",
        "exhausted",
        "aborted",
    ];

    /// The words for what a failure comes from, as `cause()` numbers them.
    pub const CAUSES: [&'static str; 4] = ["http", "error", "timeout", "deadline"];

    /// Its place in `ENDS`; past the end for a try that is not over.
    #[inline]
    pub fn end(self) -> usize {
        match self {
            Reason::Final => 0,
            Reason::Http(_) => 1,
            Reason::Error => 2,
            Reason::Timeout => 3,
            Reason::Deadline => 4,
            Reason::Tries => 5,
            Reason::NonIdempotent => 6,
            Reason::Unbuffered => 7,
            Reason::Exhausted => 8,
            Reason::Aborted => 9,
            Reason::Running => Reason::ENDS.len(),
        }
    }

    /// Its place in `CAUSES`; past the end if no failure comes from it.
    #[inline]
    pub fn cause(self) -> usize {
        self.end().wrapping_sub(1)
    }

    /// A number for it, to be kept in a zone; never 0.
    pub fn code(self) -> u64 {
        let status = match self {
            Reason::Http(status) => status,
            _ => 0,
        };
        (self.end() as u64).wrapping_shl(16) | u64::from(status) | CODED
    }

    /// What `code()` numbered so; None: nothing, or a later version did.
    pub fn from_code(code: u64) -> Option<Reason> {
        if code & CODED == 0 {
            return None;
        }
        Some(match (code & !CODED).wrapping_shr(16) {
            0 => Reason::Final,
            1 => Reason::Http((code & 0xffff) as u16),
            2 => Reason::Error,
            3 => Reason::Timeout,
            4 => Reason::Deadline,
            5 => Reason::Tries,
            6 => Reason::NonIdempotent,
            7 => Reason::Unbuffered,
            8 => Reason::Exhausted,
            9 => Reason::Aborted,
            _ => return None,
        })
    }

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

impl core::fmt::Display for Reason {
    /// As `$upstrand_reason` has it: `http_503`, `timeout`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.word())?;
        match self {
            Reason::Http(status) => write!(f, "_{status:03}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Reason; 10] = [
        Reason::Final,
        Reason::Http(503),
        Reason::Error,
        Reason::Timeout,
        Reason::Deadline,
        Reason::Tries,
        Reason::NonIdempotent,
        Reason::Unbuffered,
        Reason::Exhausted,
        Reason::Aborted,
    ];

    #[test]
    fn ends_have_their_words_and_codes() {
        for (n, reason) in ALL.into_iter().enumerate() {
            assert_eq!(reason.end(), n);
            assert_eq!(Reason::ENDS.get(n), Some(&reason.word()));
            assert_eq!(Reason::from_code(reason.code()), Some(reason));
        }
        assert_eq!(Reason::ENDS.get(Reason::Running.end()), None);
        assert_eq!(Reason::from_code(0), None);
        assert_eq!(Reason::from_code(CODED | 77 << 16), None);
    }

    #[test]
    fn causes_have_their_words() {
        let causes = ALL.map(|reason| Reason::CAUSES.get(reason.cause()).copied());
        let expected = [
            None,
            Some("http"),
            Some("error"),
            Some("timeout"),
            Some("deadline"),
        ];
        assert_eq!(causes.get(..5), Some(&expected[..]));
        assert!(causes.iter().skip(5).all(Option::is_none));
    }

    #[test]
    fn reasons_are_printed_with_their_status() {
        assert_eq!(Reason::Http(503).to_string(), "http_503");
        assert_eq!(Reason::Http(99).to_string(), "http_099");
        assert_eq!(Reason::Timeout.to_string(), "timeout");
    }
}
