//! How outdated and unhealthy instances are replaced.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ASGMachinePoolSpec, InstanceRefresh};
use crate::{crd::shapes, values::string_enum};

string_enum! {
    /// How outdated instances are replaced.
    pub enum RolloutType {
        /// A few at a time, by the controller.
        RollingUpdate = "RollingUpdate",
        /// By AWS, which replaces them in an instance refresh.
        InstanceRefresh = "InstanceRefresh",
        /// Each when somebody deletes its Machine.
        OnDelete = "OnDelete",
    }
}

string_enum! {
    /// Whether outdated instances are replaced at all.
    pub enum RolloutMode {
        /// They are, as `strategy` and `disruption` say.
        Automatic = "Automatic",
        /// Nothing of a rollout starts.
        Paused = "Paused",
    }
}

string_enum! {
    /// What becomes of a Machine that a `MachineHealthCheck` wants replaced.
    pub enum RemediationPolicy {
        /// It is replaced.
        Replace = "Replace",
        /// It is left alone.
        Ignore = "Ignore",
    }
}

/// How outdated instances are replaced. Changes apply in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// `Automatic`: outdated instances are replaced. `Paused`: nothing of a rollout starts, what drains already goes on,
    /// an instance refresh is cancelled (another one follows later), and instances beyond the replicas are given back
    /// unless they have joined; instances that are launched for other reasons are made from what the group launches then.
    /// Default `Automatic`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RolloutMode>,

    /// A point in time, RFC 3339 (`2026-03-01T00:00:00Z`): once it has passed, instances that were launched before are
    /// outdated. Set it to now to replace a whole pool as it is. Default: none. Changed in place; a later time makes
    /// running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::instant")]
    pub after: Option<String>,

    /// How old an instance may become, in seconds from its launch; older ones are outdated. Each has a lifetime up to a
    /// tenth shorter, so that a pool that was launched at once is not replaced at once. Default: no limit. Changed in
    /// place; a shorter lifetime makes older instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 3600, max = 63_072_000))]
    pub max_instance_lifetime_seconds: Option<i32>,

    /// How long, in seconds, a rollout may go on without a new instance that becomes available. Then it stops, and goes
    /// on once the spec changes or the annotation asg.infrastructure.cluster.x-k8s.io/rollout-stopped is removed. Time
    /// in which it may not go on (windows, a pause) does not count; with windows it is half of the shortest one at most.
    /// Default 1800. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 86_400))]
    pub progress_deadline_seconds: Option<i32>,

    /// How outdated instances are replaced. Default: a rolling update with one instance more than wanted. Changed in
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
}

/// The strategy and its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.rollingUpdate) || !has(self.type) || self.type == 'RollingUpdate'")
    .message("spec.rollout.strategy.rollingUpdate: only with type RollingUpdate; remove it or change type")
    .field_path(".rollingUpdate"))]
#[x_kube(validation = Rule::new("!has(self.instanceRefresh) || (has(self.type) && self.type == 'InstanceRefresh')")
    .message("spec.rollout.strategy.instanceRefresh: only with type InstanceRefresh; remove it or change type")
    .field_path(".instanceRefresh"))]
pub struct RolloutStrategy {
    /// `RollingUpdate`: the controller replaces outdated instances, a few at a time and drained first. `InstanceRefresh`:
    /// AWS replaces them, with checkpoints, alarms and a way back; the lifecycle hook holds each until its node is drained.
    /// `OnDelete`: each is replaced when somebody deletes its Machine. Default `RollingUpdate`. Changed in place: a rollout under way
    /// goes on by the new type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<RolloutType>,

    /// How many instances may be added and be missing while outdated ones are replaced. Default: one is added, none is
    /// missing. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,

    /// How AWS replaces outdated instances, with type `InstanceRefresh`. Default: as AWS does, with nine of ten in
    /// service. Changed in place, for the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_refresh: Option<InstanceRefresh>,
}

/// The budget of a rolling update, as a Deployment has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.maxSurge) && string(self.maxSurge) in ['0', '0%'] && (!has(self.maxUnavailable) || string(self.maxUnavailable) in ['0', '0%']))")
    .message("spec.rollout.strategy.rollingUpdate: maxSurge and maxUnavailable must not both be 0, nothing could be replaced"))]
pub struct RollingUpdate {
    /// How many instances may run beyond the replicas while outdated ones are replaced: a count, or a percentage of
    /// the replicas, rounded up. Default 1. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::count_or_percentage")]
    pub max_surge: Option<IntOrString>,

    /// How many of the replicas may be unavailable while outdated instances are replaced: a count, or a percentage of
    /// the replicas, rounded down. Default 0. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::count_or_percentage")]
    pub max_unavailable: Option<IntOrString>,
}

/// [`Rollout`] with every default filled in, for a number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedRollout {
    /// Who replaces outdated instances.
    pub type_: RolloutType,
    /// Instances that may run beyond the replicas.
    pub max_surge: i32,
    /// Replicas that may be unavailable.
    pub max_unavailable: i32,
    /// Whether outdated instances are replaced at all.
    pub mode: RolloutMode,
    /// Instances that were launched before are outdated, once it has passed.
    pub after: Option<DateTime<Utc>>,
    /// How old an instance may become.
    pub max_instance_lifetime: Option<TimeDelta>,
    /// How long a rollout may go on without a new instance that becomes available.
    pub progress_deadline: TimeDelta,
}

impl Default for ResolvedRollout {
    /// That of a spec that says nothing.
    fn default() -> Self {
        Self {
            type_: RolloutType::RollingUpdate,
            max_surge: 1,
            max_unavailable: 0,
            mode: RolloutMode::Automatic,
            after: None,
            max_instance_lifetime: None,
            progress_deadline: TimeDelta::seconds(i64::from(PROGRESS_DEADLINE_SECONDS)),
        }
    }
}

/// `progressDeadlineSeconds` unless set.
const PROGRESS_DEADLINE_SECONDS: i32 = 1800;

impl ASGMachinePoolSpec {
    /// How outdated instances of a pool of so many replicas are replaced, with every default filled in.
    ///
    /// Percentages are taken of the replicas, the surge rounded up and the unavailable ones down; where both come to 0,
    /// one may be unavailable, as with Deployments.
    #[must_use]
    pub fn rollout(&self, replicas: i32) -> ResolvedRollout {
        let rollout = self.rollout.clone().unwrap_or_default();
        let strategy = rollout.strategy.unwrap_or_default();
        let budget = strategy.rolling_update.unwrap_or_default();
        let max_surge = budget.max_surge.map_or(1, |surge| count(&surge, replicas, Rounding::Up));
        let max_unavailable = budget.max_unavailable.map_or(0, |some| count(&some, replicas, Rounding::Down));
        let seconds = |seconds: i32| TimeDelta::seconds(i64::from(seconds));
        ResolvedRollout {
            type_: strategy.type_.unwrap_or(RolloutType::RollingUpdate),
            max_surge,
            max_unavailable: if max_surge == 0 { max_unavailable.max(1) } else { max_unavailable },
            mode: rollout.mode.unwrap_or(RolloutMode::Automatic),
            after: rollout.after.as_deref().and_then(instant),
            max_instance_lifetime: rollout.max_instance_lifetime_seconds.map(seconds),
            progress_deadline: self.progress_deadline(rollout.progress_deadline_seconds),
        }
    }

    /// At most half of the shortest window: a rollout that fails anew in each window is to end as well.
    fn progress_deadline(&self, wanted: Option<i32>) -> TimeDelta {
        let windows = self.disruption.iter().flat_map(|disruption| &disruption.windows);
        let shortest = windows.map(|window| window.duration_seconds / 2).min();
        let wanted = wanted.unwrap_or(PROGRESS_DEADLINE_SECONDS);
        TimeDelta::seconds(i64::from(shortest.map_or(wanted, |most| most.min(wanted))))
    }

    /// What becomes of a Machine that a `MachineHealthCheck` wants replaced; `Replace` unless set (D15).
    #[must_use]
    pub fn remediation_policy(&self) -> RemediationPolicy {
        self.remediation_policy.unwrap_or(RemediationPolicy::Replace)
    }
}

/// Reads a point in time as RFC 3339 writes it; what the schema lets through and is none is as good as absent.
#[must_use]
pub fn instant(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc())
}

/// Which way a share of something is rounded.
#[derive(Clone, Copy)]
pub(super) enum Rounding {
    Up,
    Down,
}

/// A count as it is, a percentage of `whole` rounded; what is neither cannot be stored and counts as 0.
pub(super) fn count(value: &IntOrString, whole: i32, rounding: Rounding) -> i32 {
    match value {
        IntOrString::Int(count) => (*count).max(0),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
            let hundredths = percent.clamp(0, 100) * i64::from(whole.max(0));
            let rounded = match rounding {
                Rounding::Up => (hundredths + 99) / 100,
                Rounding::Down => hundredths / 100,
            };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(budget: &serde_json::Value, replicas: i32) -> (i32, i32) {
        let rollout = serde_json::json!({ "strategy": { "rollingUpdate": budget } });
        let spec = ASGMachinePoolSpec {
            rollout: Some(serde_json::from_value(rollout).unwrap()),
            ..ASGMachinePoolSpec::default()
        };
        let rollout = spec.rollout(replicas);
        (rollout.max_surge, rollout.max_unavailable)
    }

    #[test]
    fn surge_is_rounded_up_and_unavailable_down_and_never_both_to_zero() {
        use serde_json::json;
        for (budget, replicas, expected) in [
            (json!({}), 3, (1, 0)),
            (json!({ "maxSurge": 2, "maxUnavailable": 1 }), 3, (2, 1)),
            (json!({ "maxSurge": "10%" }), 3, (1, 0)),
            (json!({ "maxSurge": "34%", "maxUnavailable": "34%" }), 10, (4, 3)),
            (json!({ "maxSurge": 0, "maxUnavailable": "10%" }), 3, (0, 1)),
            (json!({ "maxSurge": "0%", "maxUnavailable": "100%" }), 3, (0, 3)),
            (json!({ "maxSurge": "100%", "maxUnavailable": 0 }), 0, (0, 1)),
        ] {
            assert_eq!(resolved(&budget, replicas), expected, "{budget} of {replicas}");
        }
    }

    #[test]
    fn h7_the_default_is_one_more_than_wanted() {
        let rollout = ASGMachinePoolSpec::default().rollout(5);
        assert_eq!(rollout, ResolvedRollout::default());
        assert_eq!((rollout.max_surge, rollout.max_unavailable), (1, 0));
        assert_eq!(rollout.progress_deadline, TimeDelta::minutes(30));
    }

    #[test]
    fn after_is_read_in_any_offset() {
        let rollout = |after: &str| {
            let rollout = Rollout { after: Some(after.to_owned()), ..Rollout::default() };
            let spec = ASGMachinePoolSpec { rollout: Some(rollout), ..ASGMachinePoolSpec::default() };
            spec.rollout(3).after
        };
        assert_eq!(rollout("2026-03-01T02:00:00+02:00"), rollout("2026-03-01T00:00:00Z"));
        assert!(rollout("2026-03-01T00:00:00Z").is_some());
        assert_eq!(rollout("2026-02-30T00:00:00Z"), None);
    }

    #[test]
    fn a_rollout_that_fails_in_every_window_has_a_deadline_within_one() {
        let deadline = |windows: serde_json::Value, wanted: Option<i32>| {
            let disruption = serde_json::from_value(serde_json::json!({ "windows": windows })).unwrap();
            let rollout = Rollout { progress_deadline_seconds: wanted, ..Rollout::default() };
            let spec = ASGMachinePoolSpec {
                disruption: Some(disruption),
                rollout: Some(rollout),
                ..ASGMachinePoolSpec::default()
            };
            spec.rollout(3).progress_deadline.num_seconds()
        };
        let window =
            |seconds: i32| serde_json::json!({ "schedule": "0 2 * * *", "durationSeconds": seconds });
        assert_eq!(deadline(serde_json::json!([window(14_400)]), None), 1800);
        assert_eq!(deadline(serde_json::json!([window(14_400), window(900)]), None), 450);
        assert_eq!(deadline(serde_json::json!([window(900)]), Some(60)), 60);
    }
}
