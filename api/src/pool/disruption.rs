//! `spec.disruption`: when, and how many at once, the controller may disrupt instances for its own reasons.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    ASGMachinePoolSpec, Window, WindowError,
    rollout::{Rounding, count},
};
use crate::crd::shapes;

/// Limits on when, and how many at once, the controller disrupts instances for its own reasons. Changes apply in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Maximum number of instances that may be disrupted at the same time, for all reasons together (rollouts,
    /// requested replacements, unhealthy Machines, scale-in): a number of at least 1, or a percentage of the replicas,
    /// rounded down to at least 1. Instances that are being drained count, and replicas that are missing or whose nodes
    /// have not joined. Instances that are terminated already are not limited. Defaults to no limit beyond those of
    /// `rollout`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::positive_or_percentage")]
    pub max_disrupted: Option<IntOrString>,

    /// Windows in which outdated instances may be replaced: at least one must be open. When the last one closes, drains
    /// in progress continue, and an instance refresh is cancelled and started again in the next window. Scale-in and
    /// the replacement of unhealthy Machines do not wait for windows. Defaults to any time. Changes apply in place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub windows: Vec<DisruptionWindow>,
}

/// A recurring window of time in which outdated instances may be replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionWindow {
    /// Start of the window in cron format with five fields (minute, hour, day of month, month, day of week), such as `0
    /// 22 * * 1-5`. If the clocks skip the time, the window opens at the first time after it; if the time occurs twice,
    /// the window opens at the first. Changes apply in place.
    #[schemars(length(min = 9, max = 128), regex(pattern = r"^[A-Za-z0-9*/,#?-]+( [A-Za-z0-9*/,#?-]+){4}$"))]
    pub schedule: String,

    /// Duration of the window in seconds. Changes apply in place.
    #[schemars(range(min = 900, max = 604_800))]
    pub duration_seconds: i32,

    /// Time zone of the schedule, as a name of the IANA database, such as `Europe/Dublin`. Defaults to `Etc/UTC`.
    /// Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_+/-]*$"))]
    pub time_zone: Option<String>,

    /// Maximum number of instances that rollouts may disrupt at the same time in this window, in the format of
    /// `maxDisrupted` of `disruption`, which applies as well. If several windows are open, the largest number applies.
    /// Defaults to no limit of its own. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::positive_or_percentage")]
    pub max_disrupted: Option<IntOrString>,
}

/// [`Disruption`] for a number of replicas.
#[derive(Clone, Debug, Default)]
pub struct ResolvedDisruption {
    /// The maximum number of disrupted instances; `None` is no limit.
    pub max_disrupted: Option<i32>,
    windows: Vec<(Window, Option<i32>)>,
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
        /// When the first of the open windows closes.
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

    /// When the next window opens, in the time of its zone: `Mon 2 Mar 22:00 Europe/Dublin`.
    #[must_use]
    pub fn format_next(&self) -> Option<String> {
        let Self::Closed { next: Some((at, zone)) } = self else { return None };
        let local = at.with_timezone(&Tz::from_str(zone).unwrap_or(Tz::Etc__UTC));
        Some(format!("{} {zone}", local.format("%a %-d %b %H:%M")))
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
        let Some(until) = open.iter().map(|(closes, _)| *closes).min() else {
            let next = self.windows.iter().filter_map(|(window, _)| {
                let at = window.next_opening(now)?;
                Some((at, window.zone_name()))
            });
            return Opening::Closed { next: next.min() };
        };
        // Windows allow disruptions: one without a limit overrides the limits of the others.
        let most: Option<Vec<i32>> = open.into_iter().map(|(_, most)| most).collect();
        Opening::Open { max_disrupted: most.and_then(|most| most.into_iter().max()), until }
    }
}

impl ASGMachinePoolSpec {
    /// When, and how many at once, instances of a pool with this number of replicas may be disrupted.
    #[must_use]
    pub fn disruption(&self, replicas: i32) -> ResolvedDisruption {
        let Some(disruption) = &self.disruption else { return ResolvedDisruption::default() };
        let most = |most: &IntOrString| count(most, replicas, Rounding::Down).max(1);
        let mut resolved = ResolvedDisruption {
            max_disrupted: disruption.max_disrupted.as_ref().map(most),
            ..ResolvedDisruption::default()
        };
        for (index, window) in disruption.windows.iter().enumerate() {
            match Window::new(window) {
                Ok(read) => resolved.windows.push((read, window.max_disrupted.as_ref().map(most))),
                Err(error) => resolved.invalid_windows.push((index, error)),
            }
        }
        resolved
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(opening("2026-03-02T22:30:00Z"), open(Some(1), "2026-03-03T00:00:00Z"));
        assert_eq!(opening("2026-03-02T23:15:00Z"), open(Some(5), "2026-03-03T00:00:00Z"));
        assert_eq!(opening("2026-03-02T23:30:00Z"), open(None, "2026-03-02T23:45:00Z"));
        assert_eq!(opening("2026-03-03T00:00:00Z"), open(Some(5), "2026-03-03T01:00:00Z"));
        let next = Some((at("2026-03-03T22:00:00Z"), "Etc/UTC"));
        let closed = opening("2026-03-03T01:00:00Z");
        assert_eq!(closed, Opening::Closed { next });
        assert_eq!(closed.format_next().as_deref(), Some("Tue 3 Mar 22:00 Etc/UTC"));
    }

    #[test]
    fn what_cannot_be_read_never_opens() {
        let disruption =
            resolved(json!({ "windows": [{ "schedule": "0 99 * * *", "durationSeconds": 900 }] }), 3);
        assert_eq!(disruption.opening(at("2026-03-02T12:00:00Z")), Opening::Closed { next: None });
        assert_eq!(disruption.invalid_windows[0].0, 0);
    }
}
