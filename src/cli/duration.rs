//! Durations as Go writes them, since every Cluster API provider takes its durations in that form.

use std::time::Duration;

use thiserror::Error;

/// Why a duration was rejected.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a duration such as 300ms, 15s or 1h30m")]
pub struct InvalidDuration(String);

/// Reads a duration such as `15s`, `1.5h` or `1h30m`; `0` needs no unit, negative ones are rejected.
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    sum_of_parts(text).ok_or_else(|| InvalidDuration(text.to_owned()))
}

fn sum_of_parts(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let number_ends = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(number_ends);
        let unit_ends = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_ends);
        let seconds = number.parse::<f64>().ok()? * seconds_of(unit)?;
        sum = sum.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(sum)
}

fn seconds_of(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1e-9),
        "us" | "µs" | "μs" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_prints() {
        for (text, expected) in [
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
            ("300ms", Duration::from_millis(300)),
            ("15s", Duration::from_secs(15)),
            ("1.5h", Duration::from_mins(90)),
            ("1h30m0s", Duration::from_mins(90)),
            ("10m0.5s", Duration::from_millis(600_500)),
            (".5s", Duration::from_millis(500)),
            ("250µs", Duration::from_micros(250)),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in ["", "15", "s", "-1s", "1d", "1 s", "1.2.3s", "1s1", ".s", "99999999999999999999h"] {
            assert_eq!(parse(text), Err(InvalidDuration(text.to_owned())), "{text}");
        }
    }
}
