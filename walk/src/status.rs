//! The words of `next_upstream_statuses` and `intercept_statuses`, and what they match.

use crate::Reason;

const FIRST: u16 = 100;
const LAST: u16 = 599;
const WORDS: usize = 8;

const BAD_GATEWAY: u16 = 502;
const GATEWAY_TIME_OUT: u16 = 504;

/// An upstream's answer, as far as a status word can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The upstream's own answer, fresh or out of a cache.
    Own(u16),
    /// nginx's answer for a peer that gave none: 502, 504 or 500.
    Made(u16),
    /// nginx's 502 for a peer whose answer could not be parsed.
    InvalidHeader,
}

impl Answer {
    /// The status code.
    pub fn status(self) -> u16 {
        match self {
            Answer::Own(status) | Answer::Made(status) => status,
            Answer::InvalidHeader => BAD_GATEWAY,
        }
    }

    fn is_error(self) -> bool {
        matches!(self, Answer::Made(BAD_GATEWAY) | Answer::InvalidHeader)
    }

    fn is_timeout(self) -> bool {
        matches!(self, Answer::Made(GATEWAY_TIME_OUT))
    }

    /// The reason for which a walk goes on after this answer.
    pub fn reason(self) -> Reason {
        if self.is_error() {
            Reason::Error
        } else if self.is_timeout() {
            Reason::Timeout
        } else {
            Reason::Http(self.status())
        }
    }
}

/// One word of a status list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A status, a class or a range, both ends included.
    Range(u16, u16),
    /// nginx's 502 for want of a valid answer.
    Error,
    /// nginx's 504.
    Timeout,
    /// nginx's 502 for an answer that could not be parsed.
    InvalidHeader,
    /// POST, LOCK and PATCH go on as well.
    NonIdempotent,
}

/// The word is none that a status list knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError;

impl Word {
    /// Parses a word. Statuses that can be final are 101 and 200 to 599.
    pub fn parse(text: &[u8]) -> Result<Word, ParseError> {
        match text {
            b"error" => Ok(Word::Error),
            b"timeout" => Ok(Word::Timeout),
            b"invalid_header" => Ok(Word::InvalidHeader),
            b"non_idempotent" => Ok(Word::NonIdempotent),
            [class @ b'2'..=b'5', b'x', b'x'] => {
                let first = u16::from(class.wrapping_sub(b'0')).wrapping_mul(100);
                Ok(Word::Range(first, first.wrapping_add(99)))
            }
            [low @ .., b'-', _, _, _] => {
                let high = text.get(low.len().saturating_add(1)..).unwrap_or_default();
                let (low, high) = (status(low)?, status(high)?);
                let crosses_gap = low == 101 && high != 101;
                if low > high || crosses_gap {
                    return Err(ParseError);
                }
                Ok(Word::Range(low, high))
            }
            _ => status(text).map(|status| Word::Range(status, status)),
        }
    }
}

fn status(text: &[u8]) -> Result<u16, ParseError> {
    let [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] = text else {
        return Err(ParseError);
    };
    let digit = |d: u8| u16::from(d.wrapping_sub(b'0'));
    let value = digit(*a)
        .wrapping_mul(100)
        .wrapping_add(digit(*b).wrapping_mul(10))
        .wrapping_add(digit(*c));
    if value == 101 || value >= 200 {
        Ok(value)
    } else {
        Err(ParseError)
    }
}

/// A set of status words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    bits: [u64; WORDS],
    error: bool,
    timeout: bool,
    invalid_header: bool,
    non_idempotent: bool,
}

impl Statuses {
    /// What holds without `next_upstream_statuses`: `error timeout`, as nginx's own
    /// `proxy_next_upstream` has it.
    pub fn next_upstream_default() -> Statuses {
        Statuses {
            error: true,
            timeout: true,
            ..Statuses::default()
        }
    }

    /// Adds a word.
    pub fn add(&mut self, word: Word) {
        match word {
            Word::Error => self.error = true,
            Word::Timeout => self.timeout = true,
            Word::InvalidHeader => self.invalid_header = true,
            Word::NonIdempotent => self.non_idempotent = true,
            Word::Range(low, high) => (low..=high).for_each(|status| self.set(status)),
        }
    }

    /// Whether each answer that the word matches is in the set already.
    pub fn covers(&self, word: Word) -> bool {
        match word {
            Word::Error => self.error || self.has(BAD_GATEWAY),
            Word::Timeout => self.timeout || self.has(GATEWAY_TIME_OUT),
            Word::InvalidHeader => self.invalid_header || self.error || self.has(BAD_GATEWAY),
            Word::NonIdempotent => self.non_idempotent,
            Word::Range(low, high) => (low..=high).all(|status| self.has(status)),
        }
    }

    /// Whether the answer is in the set.
    pub fn matches(&self, answer: Answer) -> bool {
        self.has(answer.status())
            || (self.error && answer.is_error())
            || (self.timeout && answer.is_timeout())
            || (self.invalid_header && answer == Answer::InvalidHeader)
    }

    /// Whether `non_idempotent` is given.
    pub fn non_idempotent(&self) -> bool {
        self.non_idempotent
    }

    fn place(status: u16) -> Option<(usize, u64)> {
        if !(FIRST..=LAST).contains(&status) {
            return None;
        }
        let bit = status.wrapping_sub(FIRST);
        Some((usize::from(bit >> 6), 1u64.wrapping_shl(u32::from(bit))))
    }

    fn set(&mut self, status: u16) {
        if let Some((word, mask)) = Self::place(status) {
            if let Some(bits) = self.bits.get_mut(word) {
                *bits |= mask;
            }
        }
    }

    fn has(&self, status: u16) -> bool {
        Self::place(status)
            .and_then(|(word, mask)| self.bits.get(word).map(|bits| bits & mask != 0))
            .unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let table: &[(&str, Option<Word>)] = &[
            ("error", Some(Word::Error)),
            ("timeout", Some(Word::Timeout)),
            ("invalid_header", Some(Word::InvalidHeader)),
            ("non_idempotent", Some(Word::NonIdempotent)),
            ("2xx", Some(Word::Range(200, 299))),
            ("5xx", Some(Word::Range(500, 599))),
            ("101", Some(Word::Range(101, 101))),
            ("200", Some(Word::Range(200, 200))),
            ("599", Some(Word::Range(599, 599))),
            ("500-504", Some(Word::Range(500, 504))),
            ("503-503", Some(Word::Range(503, 503))),
            ("101-101", Some(Word::Range(101, 101))),
            ("1xx", None),
            ("6xx", None),
            ("5XX", None),
            ("5xxx", None),
            ("50x", None),
            ("20x", None),
            ("0", None),
            ("99", None),
            ("100", None),
            ("102", None),
            ("199", None),
            ("600", None),
            ("5000", None),
            ("99999", None),
            ("-1", None),
            ("", None),
            ("-504", None),
            ("500-", None),
            ("504-500", None),
            ("500-600", None),
            ("101-204", None),
            ("4xx-5xx", None),
            ("500-504-505", None),
            ("http_503", None),
            ("Error", None),
            ("errors", None),
            ("invalid_heade", None),
            ("non-idempotent", None),
            ("+503", None),
            ("503 ", None),
        ];
        for (text, want) in table {
            assert_eq!(Word::parse(text.as_bytes()).ok(), *want, "{text}");
        }
    }

    fn set(words: &[&str]) -> Statuses {
        let mut statuses = Statuses::default();
        for word in words {
            statuses.add(Word::parse(word.as_bytes()).unwrap_or(Word::NonIdempotent));
        }
        statuses
    }

    #[test]
    fn matching() {
        use Answer::{InvalidHeader, Made, Own};
        let table: &[(&[&str], Answer, bool)] = &[
            (&[], Own(503), false),
            (&["5xx"], Own(500), true),
            (&["5xx"], Made(599), true),
            (&["5xx"], Own(499), false),
            (&["101"], Own(101), true),
            (&["502"], InvalidHeader, true),
            (&["502"], Made(504), false),
            (&["error"], Own(502), false),
            (&["error"], Made(502), true),
            (&["error"], InvalidHeader, true),
            (&["error"], Made(504), false),
            (&["invalid_header"], InvalidHeader, true),
            (&["invalid_header"], Made(502), false),
            (&["invalid_header"], Own(502), false),
            (&["timeout"], Made(504), true),
            (&["timeout"], Own(504), false),
            (&["timeout"], Made(502), false),
            (&["non_idempotent"], Own(503), false),
            (&["500-504"], Own(505), false),
            (&["404", "5xx"], Own(404), true),
            (&["200"], Own(0), false),
            (&["200"], Own(999), false),
        ];
        for (words, answer, want) in table {
            assert_eq!(set(words).matches(*answer), *want, "{words:?} {answer:?}");
        }
        let default = Statuses::next_upstream_default();
        assert!(default.matches(Made(502)) && default.matches(Made(504)));
        assert!(!default.matches(Own(502)) && !default.matches(Own(503)));
    }

    #[test]
    fn covering() {
        let table: &[(&[&str], &str, bool)] = &[
            (&["5xx"], "503", true),
            (&["503"], "5xx", false),
            (&["500-504"], "502-503", true),
            (&["500-504"], "504-505", false),
            (&["5xx"], "error", true),
            (&["502"], "invalid_header", true),
            (&["error"], "invalid_header", true),
            (&["invalid_header"], "error", false),
            (&["error"], "502", false),
            (&["504"], "timeout", true),
            (&["5xx"], "non_idempotent", false),
        ];
        for (words, word, want) in table {
            let word = Word::parse(word.as_bytes()).unwrap_or(Word::NonIdempotent);
            assert_eq!(set(words).covers(word), *want, "{words:?} {word:?}");
        }
    }

    #[test]
    fn reasons() {
        assert_eq!(Answer::Own(502).reason(), Reason::Http(502));
        assert_eq!(Answer::Made(502).reason(), Reason::Error);
        assert_eq!(Answer::InvalidHeader.reason(), Reason::Error);
        assert_eq!(Answer::Made(504).reason(), Reason::Timeout);
        assert_eq!(Answer::Made(500).reason(), Reason::Http(500));
    }
}
