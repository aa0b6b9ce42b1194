//! Prometheus' text format, version 0.0.4.

use core::fmt::{self, Write};

use super::view::{nginx_version, Source};
use crate::conf::Upstrand;
use crate::nginx::{bytes, Output, Text};

/// Writes all metrics.
pub fn write(out: &mut Output, source: &Source<'_>) -> fmt::Result {
    let upstrands = || source.main.upstrands.iter().map(Box::as_ref);

    head(out, "info", "gauge", "Versions of nginx and of the module.")?;
    let module = env!("CARGO_PKG_VERSION");
    let nginx = nginx_version();
    writeln!(
        out,
        "nginx_upstrand_info{{nginx=\"{nginx}\",module=\"{module}\"}} 1"
    )?;

    head(
        out,
        "shared",
        "gauge",
        "Whether the upstrand has a zone; 0: its metrics are those of the worker that answers.",
    )?;
    for upstrand in upstrands() {
        let shared = u8::from(!upstrand.zone.is_null());
        of_upstrand(out, "shared", upstrand, shared.into())?;
    }

    type Total = fn(&Upstrand) -> u64;
    let totals: [(&str, &str, Total); 4] = [
        (
            "walks_total",
            "Requests that began to ask upstreams.",
            |upstrand| upstrand.memory.state().totals.walks(),
        ),
        (
            "exhausted_total",
            "Walks that ended with a failure, as no upstream was left.",
            |upstrand| upstrand.memory.state().totals.exhausted(),
        ),
        (
            "intercepted_total",
            "Walks whose final answer was intercepted.",
            |upstrand| upstrand.memory.state().totals.intercepted(),
        ),
        (
            "deadline_exceeded_total",
            "Walks that next_upstream_timeout ended.",
            |upstrand| upstrand.memory.state().totals.deadline_exceeded(),
        ),
    ];
    for (name, help, total) in totals {
        head(out, name, "counter", help)?;
        for upstrand in upstrands() {
            of_upstrand(out, name, upstrand, total(upstrand))?;
        }
    }

    head(
        out,
        "failovers_total",
        "counter",
        "Times that a walk went on to a further upstream, by the one that failed and why.",
    )?;
    for member in members(source) {
        let counts = member.counts().map(|counts| counts.ends());
        for (reason, count) in counts.into_iter().flatten() {
            if matches!(reason, "http" | "error" | "timeout") {
                member.line(out, "failovers_total", "from", ("reason", reason), count)?;
            }
        }
    }

    head(
        out,
        "tries_total",
        "counter",
        "Tries that have ended, by upstream and by why they ended.",
    )?;
    for member in members(source) {
        let counts = member.counts().map(|counts| counts.ends());
        for (result, count) in counts.into_iter().flatten() {
            member.line(out, "tries_total", "upstream", ("result", result), count)?;
        }
    }

    head(
        out,
        "requests_total",
        "counter",
        "Answers by upstream and by the class of their status.",
    )?;
    for member in members(source) {
        let counts = member.counts().map(|counts| counts.classes());
        for (code, count) in counts.into_iter().flatten() {
            member.line(out, "requests_total", "upstream", ("code", code), count)?;
        }
    }

    head(
        out,
        "upstream_state",
        "gauge",
        "State of an upstream: 1 up, 2 draining, 3 down, 4 unavail, 5 checking, 6 unhealthy.",
    )?;
    for member in members(source) {
        let (state, _) = source.state(member.upstrand, member.number);
        member.begin(out, "upstream_state", "upstream")?;
        writeln!(out, "}} {}", state as u8)?;
    }

    head(
        out,
        "upstream_tier",
        "gauge",
        "Tier of an upstream: 0 a normal one, 1 a backup, or as tier= says.",
    )?;
    for member in members(source) {
        member.begin(out, "upstream_tier", "upstream")?;
        let tier = member
            .upstrand
            .members
            .get(member.number)
            .map_or(0, |m| m.tier);
        writeln!(out, "}} {tier}")?;
    }

    head(
        out,
        "try_duration_seconds",
        "histogram",
        "What tries took, from the choice of the upstream to the header of its answer.",
    )?;
    for member in members(source) {
        let Some(counts) = member.counts() else {
            continue;
        };
        let mut all = 0;
        for (bound, count) in counts.durations() {
            member.begin(out, "try_duration_seconds_bucket", "upstream")?;
            match bound {
                Some(ms) => writeln!(out, ",le=\"{}\"}} {count}", Seconds(ms))?,
                None => writeln!(out, ",le=\"+Inf\"}} {count}")?,
            }
            all = count;
        }
        member.begin(out, "try_duration_seconds_sum", "upstream")?;
        writeln!(out, "}} {}", Seconds(counts.took()))?;
        member.begin(out, "try_duration_seconds_count", "upstream")?;
        writeln!(out, "}} {all}")?;
    }
    Ok(())
}

fn head(out: &mut Output, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP nginx_upstrand_{name} {help}")?;
    writeln!(out, "# TYPE nginx_upstrand_{name} {kind}")
}

fn of_upstrand(out: &mut Output, name: &str, upstrand: &Upstrand, value: u64) -> fmt::Result {
    let label = Label(upstrand.name_bytes());
    writeln!(out, "nginx_upstrand_{name}{{upstrand=\"{label}\"}} {value}")
}

struct Member<'a> {
    upstrand: &'a Upstrand,
    number: usize,
}

fn members<'a>(source: &Source<'a>) -> impl Iterator<Item = Member<'a>> {
    source
        .main
        .upstrands
        .iter()
        .flat_map(|upstrand| (0..upstrand.members.len()).map(|number| Member { upstrand, number }))
}

impl<'a> Member<'a> {
    fn counts(&self) -> Option<&'a walk::MemberCounts> {
        self.upstrand.memory.state().counts.get(self.number)
    }

    /// A line up to the labels of both names.
    fn begin(&self, out: &mut Output, metric: &str, label: &str) -> fmt::Result {
        let upstrand = Label(self.upstrand.name_bytes());
        let member = self.upstrand.members.get(self.number);
        let name = Label(member.map_or(&[], |member| bytes(&member.name)));
        write!(
            out,
            "nginx_upstrand_{metric}{{upstrand=\"{upstrand}\",{label}=\"{name}\""
        )
    }

    fn line(
        &self,
        out: &mut Output,
        metric: &str,
        label: &str,
        (other, word): (&str, &str),
        value: u64,
    ) -> fmt::Result {
        self.begin(out, metric, label)?;
        writeln!(out, ",{other}=\"{word}\"}} {value}")
    }
}

/// The value of a label: backslash, quote and line feed are escaped.
struct Label<'a>(&'a [u8]);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaped<'a, 'b>(&'a mut fmt::Formatter<'b>);

        impl fmt::Write for Escaped<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for part in text.split_inclusive(['\\', '"', '\n']) {
                    let mut plain = part.chars();
                    let escaped = match plain.next_back() {
                        Some('\\') => "\\\\",
                        Some('"') => "\\\"",
                        Some('\n') => "\\n",
                        _ => {
                            self.0.write_str(part)?;
                            continue;
                        }
                    };
                    self.0.write_str(plain.as_str())?;
                    self.0.write_str(escaped)?;
                }
                Ok(())
            }
        }

        write!(Escaped(f), "{}", Text(self.0))
    }
}

/// ms as seconds, without zeros at the end.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ms) = (self.0 / 1000, self.0 % 1000);
        match ms {
            0 => write!(f, "{seconds}"),
            _ if ms % 100 == 0 => write!(f, "{seconds}.{}", ms / 100),
            _ if ms % 10 == 0 => write!(f, "{seconds}.{:02}", ms / 10),
            _ => write!(f, "{seconds}.{ms:03}"),
        }
    }
}
