//! Time limits in Go's notation, such as `10m0s`.

use std::time::Duration;

use super::names::InvalidName;

/// The longest limit.
const LONGEST: Duration = Duration::from_hours(24);
/// The time of a rollback and of what Helm does besides waiting.
const MARGIN: Duration = Duration::from_mins(1);

/// How long Helm waits for one operation in Kubernetes, such as a hook or the readiness of all resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit(Duration);

impl TimeLimit {
    /// Reads `spec.options.timeout`: numbers with the units h, m, s and ms.
    ///
    /// # Errors
    /// If the text is no duration, or one of more than 24 hours.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let rule = "be a duration of at most 24 hours with the units h, m, s and ms, such as 10m0s";
        let invalid = InvalidName { field: "options.timeout", rule };
        let mut rest = text;
        let mut seconds = 0.0;
        while !rest.is_empty() {
            let length = rest.find(|one: char| !one.is_ascii_digit() && one != '.').ok_or(invalid.clone())?;
            let (number, after) = rest.split_at(length);
            let units = [("ms", 0.001), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
            let unit = units.iter().find_map(|(unit, of)| Some((after.strip_prefix(unit)?, of)));
            let (after, of) = unit.ok_or(invalid.clone())?;
            let number: f64 = number.parse().map_err(|_| invalid.clone())?;
            seconds += number * of;
            rest = after;
        }
        let limit = Duration::try_from_secs_f64(seconds).map_err(|_| invalid.clone())?;
        if text.is_empty() || limit > LONGEST { Err(invalid) } else { Ok(Self(limit)) }
    }

    /// After which time Helm is stopped: hooks before and after, and the resources, wait for the limit each. With `atomic`,
    /// a failed operation is reverted, which takes as long again.
    #[must_use]
    pub fn until_stopped(self, is_atomic: bool) -> Duration {
        self.0 * if is_atomic { 6 } else { 3 } + MARGIN
    }

    /// The notation for Helm, in milliseconds.
    #[must_use]
    pub fn argument(self) -> String {
        format!("{}ms", self.0.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let seconds = |text: &str| TimeLimit::parse(text).unwrap().0.as_secs_f64();
        for (text, expected) in
            [("10m0s", 600.0), ("1h", 3600.0), ("90s", 90.0), ("1.5h", 5400.0), ("1h30m5s", 5405.0)]
        {
            assert!((seconds(text) - expected).abs() < 1e-9, "{text}");
        }
        assert!((seconds("250ms") - 0.25).abs() < 1e-9);
        assert_eq!(TimeLimit::parse("1m30s").unwrap().argument(), "90000ms");
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in
            ["", "10", "m", "-5m", "5 m", "5d", "1..5h", ".", "25h", "999999999999h", "5m --post-renderer"]
        {
            assert!(TimeLimit::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_failed_atomic_operation_has_time_to_revert() {
        let limit = TimeLimit::parse("5m").unwrap();
        assert_eq!(limit.until_stopped(false), Duration::from_mins(16));
        assert_eq!(limit.until_stopped(true), Duration::from_mins(31));
    }
}
