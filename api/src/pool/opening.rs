//! When, and how many at once, instances of a pool may be disrupted.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::window::{Window, WindowError};

/// [`super::Disruption`] for a number of replicas.
#[derive(Clone, Debug, Default)]
pub struct ResolvedDisruption {
    /// The maximum number of disrupted instances; `None` is no limit.
    pub max_disrupted: Option<i32>,
    pub(super) windows: Vec<(Window, Option<i32>)>,
    /// Windows that are invalid, by index: they never open.
    pub invalid_windows: Vec<(usize, WindowError)>,
}

/// Whether outdated instances may be replaced at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The pool has no windows.
    Always,
    /// At least one window is open.
    Open {
        /// The maximum number of instances that may be disrupted in it; `None` is no limit of its own.
        max_disrupted: Option<i32>,
        /// When the first of the open windows closes, or another one opens: `max_disrupted` may be another then.
        until: DateTime<Utc>,
    },
    /// No window is open.
    Closed {
        /// When the next window opens, and the name of its time zone; `None` if none ever opens.
        next: Option<(DateTime<Utc>, &'static str)>,
    },
}

impl Opening {
    /// Whether outdated instances may be replaced.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed { .. })
    }

    /// When the next window opens, in the time of its zone: `Mon 2 Mar 2026 22:00 Europe/Dublin`.
    #[must_use]
    pub fn format_next(&self) -> Option<String> {
        let Self::Closed { next: Some((at, zone)) } = self else { return None };
        let local = at.with_timezone(&Tz::from_str(zone).unwrap_or(Tz::Etc__UTC));
        Some(format!("{} {zone}", local.format("%a %-d %b %Y %H:%M")))
    }
}

impl ResolvedDisruption {
    /// Which windows are open.
    #[must_use]
    pub fn opening(&self, now: DateTime<Utc>) -> Opening {
        if self.windows.is_empty() && self.invalid_windows.is_empty() {
            return Opening::Always;
        }
        let open: Vec<(DateTime<Utc>, Option<i32>)> =
            self.windows.iter().filter_map(|(window, most)| Some((window.closes(now)?, *most))).collect();
        let next = self.windows.iter().filter(|(window, _)| window.closes(now).is_none());
        let next = next.filter_map(|(window, _)| Some((window.next_opening(now)?, window.zone_name()))).min();
        let Some(closes) = open.iter().map(|(closes, _)| *closes).min() else {
            return Opening::Closed { next };
        };
        let until = next.map_or(closes, |(opens, _)| opens.min(closes));
        // Windows allow disruptions: one without a limit overrides the limits of the others.
        let most: Option<Vec<i32>> = open.into_iter().map(|(_, most)| most).collect();
        Opening::Open { max_disrupted: most.and_then(|most| most.into_iter().max()), until }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ASGMachinePoolSpec;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn resolved(disruption: serde_json::Value, replicas: i32) -> ResolvedDisruption {
        let spec = ASGMachinePoolSpec {
            disruption: Some(serde_json::from_value(disruption).unwrap()),
            ..ASGMachinePoolSpec::default()
        };
        spec.disruption(replicas)
    }

    #[test]
    fn a_limit_is_a_count_or_a_share_of_at_least_one() {
        for (most, replicas, expected) in
            [(json!(3), 10, 3), (json!("25%"), 10, 2), (json!("1%"), 10, 1), (json!("50%"), 0, 1)]
        {
            let disruption = resolved(json!({ "maxDisrupted": most }), replicas);
            assert_eq!(disruption.max_disrupted, Some(expected), "{most} of {replicas}");
        }
        assert_eq!(ASGMachinePoolSpec::default().disruption(3).max_disrupted, None);
    }

    #[test]
    fn without_windows_it_is_always_open() {
        let now = at("2026-03-02T12:00:00Z");
        assert_eq!(ASGMachinePoolSpec::default().disruption(3).opening(now), Opening::Always);
        assert_eq!(resolved(json!({ "maxDisrupted": 1 }), 3).opening(now), Opening::Always);
    }

    #[test]
    fn of_several_open_windows_the_most_generous_counts() {
        let windows = json!({ "windows": [
            { "schedule": "0 22 * * *", "durationSeconds": 7200, "maxDisrupted": 1 },
            { "schedule": "0 23 * * *", "durationSeconds": 7200, "maxDisrupted": "50%" },
            { "schedule": "30 23 * * *", "durationSeconds": 900 },
        ] });
        let opening = |now: &str| resolved(windows.clone(), 10).opening(at(now));
        let open = |most: Option<i32>, until: &str| Opening::Open { max_disrupted: most, until: at(until) };
        assert_eq!(opening("2026-03-02T22:30:00Z"), open(Some(1), "2026-03-02T23:00:00Z"));
        assert_eq!(opening("2026-03-02T23:15:00Z"), open(Some(5), "2026-03-02T23:30:00Z"));
        assert_eq!(opening("2026-03-02T23:30:00Z"), open(None, "2026-03-02T23:45:00Z"));
        assert_eq!(opening("2026-03-03T00:00:00Z"), open(Some(5), "2026-03-03T01:00:00Z"));
        let next = Some((at("2026-03-03T22:00:00Z"), "Etc/UTC"));
        let closed = opening("2026-03-03T01:00:00Z");
        assert_eq!(closed, Opening::Closed { next });
        assert_eq!(closed.format_next().as_deref(), Some("Tue 3 Mar 2026 22:00 Etc/UTC"));
    }

    #[test]
    fn what_cannot_be_read_never_opens() {
        let disruption =
            resolved(json!({ "windows": [{ "schedule": "0 99 * * *", "durationSeconds": 900 }] }), 3);
        assert_eq!(disruption.opening(at("2026-03-02T12:00:00Z")), Opening::Closed { next: None });
        assert_eq!(disruption.invalid_windows[0].0, 0);
    }
}
