//! Standard output and error: a terminal, a file or a pipe that may be gone.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};

use terminal_size::{terminal_size, Height, Width};

use crate::failure::Failure;
use crate::text::escaped;

/// Whether standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether to print colours there.
pub fn colours() -> bool {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal() && !set("NO_COLOR") && !dumb
}

/// Prints `text`. `false`: nobody reads it any more.
pub fn print(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Output(format!("standard output: {error}"))),
    }
}

/// Prints a message to standard error. If that is gone, too, there is no one to tell.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "upstrandctl: {}", escaped(text));
}

/// Prints `text` in place of what was on the terminal before, as much of it as fits.
pub fn redraw(text: &str) -> Result<bool, Failure> {
    let (width, height) = match terminal_size() {
        Some((Width(width), Height(height))) => (usize::from(width), usize::from(height)),
        None => (usize::MAX, usize::MAX),
    };
    print(&frame(text, width, height))
}

fn frame(text: &str, width: usize, height: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    // The last line of the screen is the cursor's.
    let room = height.saturating_sub(1).max(1);
    let shown = if lines.len() > room {
        room.saturating_sub(1)
    } else {
        lines.len()
    };
    let mut out = "\x1b[H".to_owned();
    for line in lines.iter().take(shown) {
        out.push_str(&cut(line, width));
        out.push_str("\x1b[K\n");
    }
    if shown < lines.len() {
        let more = lines.len().saturating_sub(shown);
        out.push_str(&format!("... {more} more lines\x1b[K\n"));
    }
    out.push_str("\x1b[J");
    out
}

/// The first `width` characters of a line; its colours count for nothing and stay.
fn cut(line: &str, width: usize) -> String {
    let mut out = String::with_capacity(line.len());
    let mut left = width;
    let mut code = false;
    for c in line.chars() {
        if code || c == '\x1b' {
            code = c != 'm';
        } else if left == 0 {
            continue;
        } else {
            left = left.saturating_sub(1);
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{cut, frame};

    #[test]
    fn a_frame_fits_the_screen() {
        for (text, height, shown) in [
            ("a\nb\n", 3, "a|b|"),
            ("a\nb\nc\n", 3, "a|... 2 more lines|"),
            ("a\nb\n", 0, "... 2 more lines|"),
        ] {
            let expected = format!("\x1b[H{}\x1b[J", shown.replace('|', "\x1b[K\n"));
            assert_eq!(frame(text, 80, height), expected);
        }
    }

    #[test]
    fn lines_are_cut_and_colours_end() {
        for (line, width, shown) in [
            ("abc", 5, "abc"),
            ("abc", 2, "ab"),
            ("\x1b[31mabc\x1b[0md", 2, "\x1b[31mab\x1b[0m"),
            ("\x1b[31mabc\x1b[0md", 4, "\x1b[31mabc\x1b[0md"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(line, width), shown);
        }
    }
}
