//! In which format a request wants the state.

use super::response::Refused;
use crate::nginx::{bytes, Request, Text};

/// A format of the state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A JSON document.
    Json,
    /// Prometheus' text format.
    Prometheus,
    /// A page for people.
    Html,
}

impl Format {
    /// The format of this name.
    pub fn from_word(word: &[u8]) -> Option<Format> {
        match word {
            b"json" => Some(Format::Json),
            b"prometheus" => Some(Format::Prometheus),
            b"html" => Some(Format::Html),
            _ => None,
        }
    }
}

/// The format that `?format=` names, else the one that `Accept` likes best, else JSON.
pub fn format(request: Request) -> Result<Format, Refused> {
    match argument(bytes(&request.fields().args), b"format") {
        Some(word) => Format::from_word(word).ok_or_else(|| {
            let word = Text(word);
            let text = format_args!("unknown format \"{word}\": json, prometheus or html");
            Refused::new(request, 400, text)
        }),
        None => {
            let accept = request.header(b"accept").map_or(&[][..], bytes);
            Ok(liked(accept).unwrap_or(Format::Json))
        }
    }
}

/// Whether a request has `?format=`.
pub fn is_asked(request: Request) -> bool {
    argument(bytes(&request.fields().args), b"format").is_some()
}

/// The value of an argument of the query string.
fn argument<'a>(args: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    args.split(|byte| *byte == b'&')
        .find_map(|arg| arg.strip_prefix(name)?.strip_prefix(b"="))
}

/// The format that is liked best; of equals the first.
fn liked(accept: &[u8]) -> Option<Format> {
    let mut best: Option<(u32, Format)> = None;
    for range in accept.split(|byte| *byte == b',') {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let Some(format) = parts.next().and_then(of_media_type) else {
            continue;
        };
        let weight = parts.find_map(weight).unwrap_or(1000);
        if weight > best.map_or(0, |(weight, _)| weight) {
            best = Some((weight, format));
        }
    }
    best.map(|(_, format)| format)
}

fn of_media_type(kind: &[u8]) -> Option<Format> {
    let is = |known: &[&[u8]]| known.iter().any(|known| kind.eq_ignore_ascii_case(known));
    if is(&[b"text/html", b"application/xhtml+xml"]) {
        Some(Format::Html)
    } else if is(&[b"text/plain", b"application/openmetrics-text"]) {
        Some(Format::Prometheus)
    } else if is(&[b"application/json", b"application/*", b"*/*"]) {
        Some(Format::Json)
    } else {
        None
    }
}

/// `q=0.5` in thousandths.
fn weight(parameter: &[u8]) -> Option<u32> {
    let [b'q' | b'Q', b'=', value @ ..] = parameter else {
        return None;
    };
    let mut digits = value.iter().filter(|byte| **byte != b'.');
    let mut weight = 0u32;
    for _ in 0..4 {
        let digit = digits.next().map_or(0, |byte| byte.wrapping_sub(b'0'));
        weight = weight
            .saturating_mul(10)
            .saturating_add(u32::from(digit.min(9)));
    }
    Some(weight.min(1000))
}
