//! What can go wrong, in words for people and as an exit code for scripts.

/// All well.
pub const WELL: u8 = 0;
/// The server refused, or did not answer.
pub const FAILED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// `status`: an upstrand has no usable upstream.
pub const UNUSABLE: u8 = 3;

/// Why a command came to nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// No answer, or one that makes no sense.
    Unanswered(String),
    /// The server refused: the text of its error, and the whole document.
    Refused { text: String, document: String },
    /// The answer can't be written to standard output.
    Output(String),
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => USAGE,
            Failure::Unanswered(_) | Failure::Refused { .. } | Failure::Output(_) => FAILED,
        }
    }

    /// The message.
    pub fn text(&self) -> &str {
        match self {
            Failure::Usage(text)
            | Failure::Unanswered(text)
            | Failure::Output(text)
            | Failure::Refused { text, .. } => text,
        }
    }
}
