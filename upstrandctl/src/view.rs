//! Answers as tables and sentences.

use std::fmt::Write;

use crate::api::{Explanation, Upstrand, Upstream};
use crate::text::{age, escaped};
use crate::time::parse_iso;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "";
const RESET: &str = "\x1b[0m";

/// The upstreams of upstrands: `time` is the server's, in ms since 1970.
pub fn status<'a>(
    upstrands: impl Iterator<Item = (&'a str, &'a Upstrand)> + Clone,
    time: i64,
    colours: bool,
) -> String {
    if upstrands.clone().next().is_none() {
        return "no upstrands\n".to_owned();
    }
    let mut table = Table::new(&[
        ("UPSTRAND", Align::Left),
        ("TIER", Align::Right),
        ("UPSTREAM", Align::Left),
        ("STATE", Align::Left),
        ("SINCE", Align::Right),
        ("TRIES", Align::Right),
        ("FAILURES", Align::Right),
        ("ACTIVE", Align::Right),
        ("PEERS", Align::Right),
        ("REASON", Align::Left),
    ]);
    let mut below = String::new();
    for (name, upstrand) in upstrands.clone() {
        for upstream in &upstrand.upstreams {
            table.row(vec![
                plain(name),
                (upstream.tier.to_string(), PLAIN),
                plain(&upstream.name),
                (escaped(&upstream.state), colour(&upstream.state)),
                (since(upstream, time), PLAIN),
                (upstream.tries.to_string(), PLAIN),
                (upstream.failed().to_string(), PLAIN),
                (upstream.active().to_string(), PLAIN),
                (peers(upstream), PLAIN),
                (reason(upstream, time), PLAIN),
            ]);
        }
        if let Some((serves, colour)) = serves(upstrand) {
            let line = painted(&format!("{}: {serves}", escaped(name)), colour, colours);
            below.push_str(&line);
            below.push('\n');
        }
    }
    let alone: Vec<String> = upstrands
        .filter(|(_, upstrand)| upstrand.zone.is_none())
        .map(|(name, _)| escaped(name))
        .collect();
    if !alone.is_empty() {
        let _ = writeln!(below, "one worker's view, no zone: {}", alone.join(", "));
    }
    let mut out = table.print(colours);
    if !below.is_empty() {
        out.push('\n');
        out.push_str(&below);
    }
    out
}

/// Where a walk would go.
pub fn explanation(explanation: &Explanation, colours: bool) -> String {
    let mut out = format!(
        "{}: {}, {}\n\n",
        escaped(&explanation.upstrand),
        escaped(&explanation.order),
        match &explanation.zone {
            Some(zone) => format!("zone {}", escaped(zone)),
            None => "one worker's view, no zone".to_owned(),
        },
    );
    let mut table = Table::new(&[
        ("VISIT", Align::Right),
        ("TIER", Align::Right),
        ("UPSTREAM", Align::Left),
        ("REASON", Align::Left),
    ]);
    for visit in &explanation.upstreams {
        let position = visit.position.map(|position| position.to_string());
        table.row(vec![
            (position.unwrap_or_else(|| "-".to_owned()), PLAIN),
            (visit.tier.to_string(), PLAIN),
            plain(&visit.name),
            plain(&visit.reason),
        ]);
    }
    out.push_str(&table.print(colours));
    if explanation.last_resort {
        out.push('\n');
        let line = "last resort: all that could serve are blacklisted, and are asked all the same";
        out.push_str(&painted(line, RED, colours));
        out.push('\n');
    }
    out
}

/// How an upstream is after a change.
pub fn changed(upstrand: &str, upstream: &Upstream, time: i64, colours: bool) -> String {
    let mut line = format!(
        "{} in {} is {}",
        escaped(&upstream.name),
        escaped(upstrand),
        painted(&escaped(&upstream.state), colour(&upstream.state), colours),
    );
    let reason = reason(upstream, time);
    if !reason.is_empty() {
        line.push_str(": ");
        line.push_str(&reason);
    }
    line.push('\n');
    line
}

/// Who serves; `None` if the answer is dull, since all are up.
fn serves(upstrand: &Upstrand) -> Option<(String, &'static str)> {
    let names = |upstreams: Vec<&Upstream>| {
        let names: Vec<String> = upstreams.iter().map(|it| escaped(&it.name)).collect();
        names.join(", ")
    };
    if upstrand.upstreams.iter().all(|it| it.state == "up") {
        return None;
    }
    let serving = upstrand.serving();
    if let Some(first) = serving.first() {
        let tier = first.tier;
        return Some((format!("tier {tier} serves: {}", names(serving)), PLAIN));
    }
    let checking: Vec<&Upstream> = upstrand.upstreams.iter().filter(|it| it.usable()).collect();
    if checking.is_empty() {
        return Some(("no usable upstream".to_owned(), RED));
    }
    let names = names(checking);
    Some((format!("none is up, to be tried: {names}"), YELLOW))
}

fn since(upstream: &Upstream, time: i64) -> String {
    let since = upstream.since.as_deref().and_then(parse_iso);
    since.map_or_else(|| "-".to_owned(), |since| age(time.saturating_sub(since)))
}

/// The reason, and how long it lasts.
fn reason(upstream: &Upstream, time: i64) -> String {
    let mut reason = escaped(&upstream.reason);
    let until = upstream.blacklisted_until.as_deref().and_then(parse_iso);
    let left = until.map_or(0, |until| until.saturating_sub(time));
    if left > 0 {
        let sign = if reason.is_empty() { "" } else { ", " };
        // Rounded, as clocks may differ a little; "0s left" is over.
        let left = age(left.saturating_add(500).max(1000));
        let what = if upstream.draining {
            "blacklisted, "
        } else {
            ""
        };
        let _ = write!(reason, "{sign}{what}{left} left");
    }
    reason
}

fn peers(upstream: &Upstream) -> String {
    if upstream.peers.is_empty() {
        return "-".to_owned();
    }
    let live = upstream.peers.iter().filter(|peer| peer.state == "up");
    format!("{}/{}", live.count(), upstream.peers.len())
}

fn colour(state: &str) -> &'static str {
    match state {
        "up" => GREEN,
        "draining" | "checking" => YELLOW,
        _ => RED,
    }
}

fn painted(text: &str, colour: &str, colours: bool) -> String {
    if colours && !colour.is_empty() {
        format!("{colour}{text}{RESET}")
    } else {
        text.to_owned()
    }
}

#[derive(Clone, Copy)]
enum Align {
    Left,
    Right,
}

type Cell = (String, &'static str);

fn plain(text: &str) -> Cell {
    (escaped(text), PLAIN)
}

struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    fn new(columns: &[(&str, Align)]) -> Table {
        Table {
            align: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![columns
                .iter()
                .map(|(name, _)| ((*name).to_owned(), BOLD))
                .collect()],
        }
    }

    fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    fn print(&self, colours: bool) -> String {
        let mut widths = vec![0; self.align.len()];
        for row in &self.rows {
            for (width, (text, _)) in widths.iter_mut().zip(row) {
                *width = text.chars().count().max(*width);
            }
        }
        let mut out = String::new();
        for row in &self.rows {
            // Spaces are held back until something follows them.
            let mut spaces = 0_usize;
            for ((width, align), (text, colour)) in widths.iter().zip(&self.align).zip(row) {
                let padding = width.saturating_sub(text.chars().count());
                let (before, after) = match align {
                    Align::Left => (0, padding),
                    Align::Right => (padding, 0),
                };
                if !text.is_empty() {
                    out.extend(std::iter::repeat_n(' ', spaces.saturating_add(before)));
                    out.push_str(&painted(text, colour, colours));
                    spaces = 0;
                }
                spaces = spaces.saturating_add(after).saturating_add(2);
                if text.is_empty() {
                    spaces = spaces.saturating_add(before);
                }
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{changed, explanation, status};
    use crate::api::{Explanation, Upstrands, Upstream};

    const TIME: i64 = 1_796_012_400_000; // 2026-11-30T04:20:00Z

    fn upstrands() -> Upstrands {
        serde_json::from_str(include_str!("../tests/upstrands.json")).unwrap()
    }

    fn table(upstrands: &Upstrands, colours: bool) -> String {
        status(
            upstrands.iter().map(|(name, it)| (name.as_str(), it)),
            TIME,
            colours,
        )
    }

    #[test]
    fn a_table_of_upstreams() {
        let expected = "\
UPSTRAND  TIER  UPSTREAM  STATE     SINCE  TRIES  FAILURES  ACTIVE  PEERS  REASON
local        0  app       up            -     12         0       0      -  no mark
regions      0  eu        unavail     10s    900        31       3    1/2  blacklisted after http_503, 20s left
regions      1  us        up            -     31         0       2    1/1  no mark
regions      1  asia      draining  2h05m      0         0       0    0/1  drained by hand

regions: tier 1 serves: us
one worker's view, no zone: local
";
        assert_eq!(table(&upstrands(), false), expected);
    }

    #[test]
    fn colours_change_nothing_else() {
        let coloured = table(&upstrands(), true);
        assert!(coloured.contains("\x1b[31munavail\x1b[0m"), "{coloured}");
        assert!(coloured.contains("\x1b[32mup\x1b[0m"), "{coloured}");
        let mut bare = coloured;
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"] {
            bare = bare.replace(code, "");
        }
        assert_eq!(bare, table(&upstrands(), false));
    }

    #[test]
    fn who_serves() {
        for (states, line) in [
            (&["up", "up"][..], ""),
            (&["up", "down"], "x: tier 0 serves: u0"),
            (&["unavail", "up", "up"], "x: tier 1 serves: u1"),
            (&["checking", "up"], "x: tier 1 serves: u1"),
            (&["checking", "unavail"], "x: none is up, to be tried: u0"),
            (&["draining", "unavail"], "x: no usable upstream"),
            (&["unhealthy", "a new word"], "x: no usable upstream"),
        ] {
            let upstreams: Vec<_> = states
                .iter()
                .enumerate()
                .map(|(i, state)| serde_json::json!({"name": format!("u{i}"), "tier": i, "state": state}))
                .collect();
            let all = serde_json::json!({"x": {"zone": "z", "upstreams": upstreams}});
            let all: Upstrands = serde_json::from_value(all).unwrap();
            let text = table(&all, false);
            let (_, below) = text.split_once("\n\n").unwrap_or((&text, ""));
            assert_eq!(below.trim_end(), line, "{states:?}");
        }
    }

    #[test]
    fn nothing_of_the_server_reaches_the_terminal_raw() {
        let evil = "\x1b]0;owned\x07\u{9b}2J\r\n";
        let all = serde_json::json!({evil: {"zone": null, "upstreams": [
            {"name": evil, "tier": 0, "state": evil, "reason": evil, "since": evil}]}});
        let all: Upstrands = serde_json::from_value(all).unwrap();
        let mut text = table(&all, false);
        let walk = serde_json::json!({"upstrand": evil, "zone": evil, "order": evil, "last_resort": true,
            "upstreams": [{"name": evil, "tier": 0, "position": 1, "reason": evil}]});
        text += &explanation(&serde_json::from_value(walk).unwrap(), false);
        text += &changed(
            evil,
            all.values().next().unwrap().upstreams.first().unwrap(),
            TIME,
            false,
        );
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n'),
            "{text:?}"
        );
        assert_eq!(text.matches('\n').count(), 5 + 6 + 1, "{text:?}");
    }

    #[test]
    fn no_upstrands_at_all() {
        assert_eq!(table(&Upstrands::new(), false), "no upstrands\n");
    }

    #[test]
    fn where_a_walk_goes() {
        let text = include_str!("../tests/explain.json");
        let mut walk: Explanation = serde_json::from_str(text).unwrap();
        let expected = "\
regions: by turns, zone upstrands

VISIT  TIER  UPSTREAM  REASON
    1     1  us        its turn
    -     0  eu        blacklisted after http_503
    -     1  asia      drained by hand
";
        assert_eq!(explanation(&walk, false), expected);
        walk.last_resort = true;
        walk.zone = None;
        let text = explanation(&walk, false);
        assert!(text.starts_with("regions: by turns, one worker's view, no zone\n"));
        assert!(text.ends_with(
            "\n\nlast resort: all that could serve are blacklisted, and are asked all the same\n"
        ));
    }

    #[test]
    fn what_a_change_did() {
        for (upstream, line) in [
            (
                r#"{"name":"us","tier":1,"state":"up"}"#,
                "us in regions is up\n",
            ),
            (
                r#"{"name":"us","tier":1,"state":"draining","reason":"drained by hand","draining":true}"#,
                "us in regions is draining: drained by hand\n",
            ),
            (
                r#"{"name":"us","tier":1,"state":"draining","reason":"drained by hand","draining":true,
                    "blacklisted_until":"2026-11-30T04:20:30.004Z"}"#,
                "us in regions is draining: drained by hand, blacklisted, 30s left\n",
            ),
            (
                r#"{"name":"us","tier":1,"state":"unavail","blacklisted_until":"2026-11-30T04:20:00.200Z"}"#,
                "us in regions is unavail: 1s left\n",
            ),
            (
                r#"{"name":"us","tier":1,"state":"unavail","blacklisted_until":"2026-11-30T04:21:05.000Z"}"#,
                "us in regions is unavail: 1m05s left\n",
            ),
        ] {
            let upstream: Upstream = serde_json::from_str(upstream).unwrap();
            assert_eq!(changed("regions", &upstream, TIME, false), line);
        }
    }
}
