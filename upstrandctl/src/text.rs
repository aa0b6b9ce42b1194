//! Text for terminals.

use std::time::Duration;

/// `text` without what a terminal would obey or hide: control characters, and those that turn the
/// direction of writing or have no width.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if unprintable(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// A JSON document that means the same, without them.
pub fn escaped_json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.trim_end().chars() {
        match c {
            '\n' | '\t' => out.push(c),
            // Only between members and elements; JSON has no other control characters of ASCII.
            '\r' => out.push(' '),
            c if unprintable(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('\n');
    out
}

fn unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `12s`, `3m12s`, `2h05m`, `3d04h`.
pub fn age(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// A time that a person gave, such as 5s or 500ms.
pub fn span(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::{age, escaped, escaped_json};

    #[test]
    fn a_terminal_obeys_nothing() {
        for (text, shown) in [
            ("plain, é, 日本", "plain, é, 日本"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("a\nb\rc\td", "a\\nb\\rc\\td"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("\u{202e}gro", "\\u{202e}gro"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }

    #[test]
    fn json_means_the_same() {
        for (document, shown) in [
            ("{\"a\":\n\t1}", "{\"a\":\n\t1}\n"),
            ("[\r\n]\n\n", "[ \n]\n"),
            ("[\"\u{9b}2J\u{7f}\"]", "[\"\\u009b2J\\u007f\"]\n"),
            ("[\"\u{e0041}\"]", "[\"\\udb40\\udc41\"]\n"),
        ] {
            let value = |text| serde_json::from_str::<serde_json::Value>(text).ok();
            assert_eq!(escaped_json(document), shown);
            assert_eq!(value(document), value(shown));
        }
    }

    #[test]
    fn ages() {
        for (milliseconds, text) in [
            (-5, "0s"),
            (999, "0s"),
            (59_999, "59s"),
            (192_000, "3m12s"),
            (3_600_000, "1h00m"),
            (7_500_000, "2h05m"),
            (86_400_000, "1d00h"),
            (273_600_000, "3d04h"),
            (i64::MAX, "106751991167d07h"),
        ] {
            assert_eq!(age(milliseconds), text);
        }
    }
}
