//! Times as the server writes them and as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// This machine's clock, in ms since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// `2026-11-30T04:20:00.123Z`, in ms since 1970.
pub fn parse_iso(text: &str) -> Option<i64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-');
    let (year, month, day) = (date.next()?, date.next()?, date.next()?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let thousandths: String = fraction.chars().chain("00".chars()).take(3).collect();
    milliseconds(
        days(number(year)?, number(month)?, number(day)?)?,
        clock,
        number(&thousandths)?,
    )
}

/// `Mon, 30 Nov 2026 04:20:00 GMT`, in ms since 1970.
pub fn parse_http(text: &str) -> Option<i64> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)?;
    let month = i64::try_from(month).ok()?.checked_add(1)?;
    let clock = words.next()?;
    (words.next()? == "GMT").then_some(())?;
    milliseconds(days(number(year)?, month, number(day)?)?, clock, 0)
}

/// `5s`, `500ms`, `1m`, `1h 30m`, and `5` for seconds, as in nginx's configuration.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let mut total: u64 = 0;
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (digits, behind) = split(rest, |c| c.is_ascii_digit());
        let (unit, behind) = split(behind, |c| c.is_ascii_alphabetic());
        let factor: u64 = match unit {
            "ms" => 1,
            "" | "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err("a time is such as 5s, 500ms or 1m".to_owned()),
        };
        let part = digits.parse::<u64>().ok();
        let sum = part.and_then(|part| total.checked_add(part.checked_mul(factor)?));
        total = sum.ok_or("a time is such as 5s, 500ms or 1m")?;
        rest = behind.trim_start();
    }
    match total {
        0 => Err("a time above 0 is needed".to_owned()),
        // A year; beyond that clocks overflow somewhere.
        1..=31_536_000_000 => Ok(Duration::from_millis(total)),
        _ => Err("that is too long".to_owned()),
    }
}

fn split(text: &str, within: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !within(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 4 && text.chars().all(|c| c.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Days from 1970-01-01, by the calendar that counts from March.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = year.checked_sub(i64::from(month <= 2))?;
    let month = month.checked_add(9)? % 12;
    let leap = (year / 4)
        .checked_sub(year / 100)?
        .checked_add(year / 400)?;
    let before = month.checked_mul(153)?.checked_add(2)? / 5;
    year.checked_mul(365)?
        .checked_add(leap)?
        .checked_add(before)?
        .checked_add(day)?
        .checked_sub(719_469)
}

/// `clock` is hours, minutes and seconds.
fn milliseconds(days: i64, clock: &str, thousandths: i64) -> Option<i64> {
    let mut parts = clock.split(':').map(number);
    let mut total = days.checked_mul(24)?.checked_add(parts.next()??)?;
    total = total.checked_mul(60)?.checked_add(parts.next()??)?;
    total = total.checked_mul(60)?.checked_add(parts.next()??)?;
    parts.next().is_none().then_some(())?;
    total.checked_mul(1000)?.checked_add(thousandths)
}

#[cfg(test)]
mod tests {
    use super::{parse_http, parse_iso, parse_span};
    use std::time::Duration;

    #[test]
    fn times_of_the_server() {
        for (text, time) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("2000-02-29T12:00:00.500Z", Some(951_825_600_500)),
            ("2026-11-30T04:20:00.123Z", Some(1_796_012_400_123)),
            ("2026-11-30T04:20:00Z", Some(1_796_012_400_000)),
            ("2026-11-30T04:20:00.1Z", Some(1_796_012_400_100)),
            ("2024-12-31T23:59:59.999Z", Some(1_735_689_599_999)),
            ("2026-11-30 04:20:00", None),
            ("2026-13-30T04:20:00.000Z", None),
            ("2026-11-30T04:20.000Z", None),
            ("99999999999999999999-11-30T04:20:00.000Z", None),
            ("-1--1--1T:::.Z", None),
            ("", None),
        ] {
            assert_eq!(parse_iso(text), time, "{text}");
        }
        let http = |text| parse_http(text);
        assert_eq!(
            http("Mon, 30 Nov 2026 04:20:00 GMT"),
            Some(1_796_012_400_000)
        );
        assert_eq!(http("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http("Mon, 30 Nix 2026 04:20:00 GMT"), None);
        assert_eq!(http("Mon, 30 Nov 2026 04:20:00"), None);
    }

    #[test]
    fn times_of_people() {
        for (text, milliseconds) in [
            ("5s", Some(5000)),
            ("500ms", Some(500)),
            ("5", Some(5000)),
            ("1h 30m", Some(5_400_000)),
            ("1h30m", Some(5_400_000)),
            ("0", None),
            ("", None),
            ("s", None),
            ("-5s", None),
            ("5 parsecs", None),
            ("1.5s", None),
            ("18446744073709551615s", None),
            ("9999999999h", None),
        ] {
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(parse_span(text).ok(), expected, "{text}");
        }
    }
}
