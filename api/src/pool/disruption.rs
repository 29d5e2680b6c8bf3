//! When, and how many at once, instances may be taken away for reasons of ours.

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

/// When, and how many at once, the controller may take instances away for reasons of its own. Changes apply in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How many instances may be disrupted at once, all reasons together (rollouts, requested replacements, unhealthy
    /// Machines, scale-in): a count of at least 1, or a percentage of the replicas, rounded down but at least 1.
    /// Instances that drain count, and replicas that are missing or whose nodes have not joined. Instances that are gone
    /// already never wait. Default: no limit beside those of `rollout`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::some_or_percentage")]
    pub max_disrupted: Option<IntOrString>,

    /// When outdated instances may be replaced: while at least one window is open. When the last one closes, drains go on,
    /// and an instance refresh is cancelled: another one follows in the next window. Scale-in and unhealthy Machines do
    /// not wait for windows. Default: at any time. Changed in place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub windows: Vec<DisruptionWindow>,
}

/// A time in which outdated instances may be replaced, again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionWindow {
    /// When the window opens: five fields of cron (minute, hour, day of month, month, day of week), such as
    /// `0 22 * * 1-5`. A time that the clocks skip is the first after it; one that comes twice is the first. Changed in
    /// place.
    #[schemars(length(min = 9, max = 128), regex(pattern = r"^[A-Za-z0-9*/,#?-]+( [A-Za-z0-9*/,#?-]+){4}$"))]
    pub schedule: String,

    /// How long the window stays open, in seconds. Changed in place.
    #[schemars(range(min = 900, max = 604_800))]
    pub duration_seconds: i32,

    /// The time zone of the schedule, by its name in the IANA database, such as `Europe/Dublin`. Default `Etc/UTC`.
    /// Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z][A-Za-z0-9_+/-]*$"))]
    pub time_zone: Option<String>,

    /// How many instances may be disrupted at once by rollouts in this window, as `maxDisrupted` of `disruption`, which
    /// holds beside it. Of several open windows the most generous counts. Default: no limit of its own. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::some_or_percentage")]
    pub max_disrupted: Option<IntOrString>,
}

/// [`Disruption`] for a number of replicas.
#[derive(Clone, Debug, Default)]
pub struct ResolvedDisruption {
    /// How many instances may be disrupted at once; `None` is no limit.
    pub max_disrupted: Option<i32>,
    windows: Vec<(Window, Option<i32>)>,
    /// Windows that cannot be read, by index: they never open.
    pub unreadable: Vec<(usize, WindowError)>,
}

/// Whether outdated instances may be replaced at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// There are no windows.
    Always,
    /// A window is open.
    Open {
        /// How many may be disrupted at once in it; `None` is no limit of its own.
        max_disrupted: Option<i32>,
        /// When the open windows are next to be looked at: one of them closes.
        until: DateTime<Utc>,
    },
    /// None is open.
    Closed {
        /// When the next one opens, and the name of its time zone; `None` if none does.
        next: Option<(DateTime<Utc>, &'static str)>,
    },
}

impl Opening {
    /// Whether outdated instances may be replaced.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed { .. })
    }

    /// When the next window opens, as people of its zone say it: `Mon 2 Mar 22:00 Europe/Dublin`.
    #[must_use]
    pub fn next_in_words(&self) -> Option<String> {
        let Self::Closed { next: Some((at, zone)) } = self else { return None };
        let local = at.with_timezone(&Tz::from_str(zone).unwrap_or(Tz::Etc__UTC));
        Some(format!("{} {zone}", local.format("%a %-d %b %H:%M")))
    }
}

impl ResolvedDisruption {
    /// Which windows are open.
    #[must_use]
    pub fn opening(&self, now: DateTime<Utc>) -> Opening {
        if self.windows.is_empty() && self.unreadable.is_empty() {
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
        // Windows permit: one without a limit lifts those of the others.
        let most: Option<Vec<i32>> = open.into_iter().map(|(_, most)| most).collect();
        Opening::Open { max_disrupted: most.and_then(|most| most.into_iter().max()), until }
    }
}

impl ASGMachinePoolSpec {
    /// When and how many instances of a pool of so many replicas may be disrupted.
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
                Err(error) => resolved.unreadable.push((index, error)),
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
        assert_eq!(closed.next_in_words().as_deref(), Some("Tue 3 Mar 22:00 Etc/UTC"));
    }

    #[test]
    fn what_cannot_be_read_never_opens() {
        let disruption =
            resolved(json!({ "windows": [{ "schedule": "0 99 * * *", "durationSeconds": 900 }] }), 3);
        assert_eq!(disruption.opening(at("2026-03-02T12:00:00Z")), Opening::Closed { next: None });
        assert_eq!(disruption.unreadable[0].0, 0);
    }
}
