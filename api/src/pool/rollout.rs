//! `spec.rollout` and `spec.remediationPolicy`: how outdated and unhealthy instances are replaced.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::instance_refresh::InstanceRefresh;
use crate::{crd::shapes, values::string_enum};

string_enum! {
    /// Who replaces outdated instances.
    pub enum RolloutType {
        /// The controller, a few at a time.
        RollingUpdate = "RollingUpdate",
        /// AWS, in an instance refresh.
        InstanceRefresh = "InstanceRefresh",
        /// The controller, once a user deletes their Machines.
        OnDelete = "OnDelete",
    }
}

string_enum! {
    /// Whether outdated instances are replaced.
    pub enum RolloutMode {
        /// They are replaced, according to `strategy` and `disruption`.
        Automatic = "Automatic",
        /// No replacement starts.
        Paused = "Paused",
    }
}

string_enum! {
    /// What happens to a Machine that a `MachineHealthCheck` reports as unhealthy.
    pub enum RemediationPolicy {
        /// It is replaced.
        Replace = "Replace",
        /// Nothing.
        Ignore = "Ignore",
    }
}

/// How outdated instances are replaced. Changes apply in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// Whether outdated instances are replaced. With `Automatic` they are. With `Paused` no replacement starts: drains
    /// in progress continue, an instance refresh is cancelled and started again later, and surge instances that have
    /// not joined are terminated; instances that are launched for other reasons use the launch template version that
    /// the group specifies at that time. Defaults to `Automatic`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RolloutMode>,

    /// Time in RFC 3339, such as `2026-03-01T00:00:00Z`. Once it has passed, instances that were launched before it are
    /// outdated. Set it to the current time to replace all instances of a pool. Defaults to none. Changes apply in
    /// place; a later time makes running instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::instant")]
    pub after: Option<String>,

    /// Maximum age of an instance in seconds since its launch. Older instances are outdated. The controller shortens
    /// the lifetime of each instance by up to a tenth, so that instances that were launched together are not replaced
    /// together. Defaults to no limit. Changes apply in place; a shorter lifetime makes older instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 3600, max = 63_072_000))]
    pub max_instance_lifetime_seconds: Option<i32>,

    /// Maximum time in seconds for a rollout to make progress, that is, for another new instance to become available.
    /// If it is exceeded, the rollout stops. It resumes when the spec changes, or when a user removes the annotation
    /// asg.infrastructure.cluster.x-k8s.io/rollout-stopped. Time in which the rollout is paused or waits for a window
    /// does not count. With windows, the deadline is at most half of the shortest window. Does not apply to instance
    /// refreshes, for which AWS has its own time limit. Defaults to 1800. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 86_400))]
    pub progress_deadline_seconds: Option<i32>,

    /// Strategy by which outdated instances are replaced. Defaults to a rolling update with a surge of one instance.
    /// Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
}

/// The strategy and its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.rollingUpdate) || !has(self.type) || self.type == 'RollingUpdate'")
    .message("spec.rollout.strategy.rollingUpdate: may only be set with type RollingUpdate; remove it or change type")
    .field_path(".rollingUpdate"))]
#[x_kube(validation = Rule::new("!has(self.instanceRefresh) || (has(self.type) && self.type == 'InstanceRefresh')")
    .message("spec.rollout.strategy.instanceRefresh: may only be set with type InstanceRefresh; remove it or change type")
    .field_path(".instanceRefresh"))]
pub struct RolloutStrategy {
    /// Type of the strategy. `RollingUpdate`: the controller drains and replaces outdated instances, a few at a time.
    /// `InstanceRefresh`: AWS replaces the instances whose launch template version or instance type is outdated, with
    /// checkpoints, alarms and a rollback; a lifecycle hook holds each termination until the node is drained. The
    /// controller replaces instances that are outdated for other reasons. `OnDelete`: the controller replaces an
    /// instance once a user deletes its Machine or requests the replacement by annotation; the replacement of an
    /// instance because of a scheduled retirement, a rebalance recommendation or an imbalance of zones does not wait
    /// for a user. Defaults to `RollingUpdate`. Changes apply in place: a rollout in progress continues with the new
    /// type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<RolloutType>,

    /// Parameters of a rolling update. Defaults to a surge of one instance, and no unavailable instance. Changes apply
    /// in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,

    /// Parameters of an instance refresh. May only be set with type `InstanceRefresh`. Defaults to the defaults of AWS,
    /// with 90 percent of the replicas in service. Changes apply in place, to the next refresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_refresh: Option<InstanceRefresh>,
}

/// Parameters of a rolling update, as in a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(has(self.maxSurge) && string(self.maxSurge) in ['0', '0%'] && (!has(self.maxUnavailable) || string(self.maxUnavailable) in ['0', '0%']))")
    .message("spec.rollout.strategy.rollingUpdate: maxSurge and maxUnavailable must not both be 0"))]
pub struct RollingUpdate {
    /// Maximum number of instances above the replicas during a rollout: a number, or a percentage of the replicas,
    /// rounded up. Defaults to 1. Has no effect if another actor manages the replicas. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::count_or_percentage")]
    pub max_surge: Option<IntOrString>,

    /// Maximum number of replicas that may be unavailable during a rollout: a number, or a percentage of the replicas,
    /// rounded down. Defaults to 0. At least 1 applies if maxSurge is 0, or if another actor manages the replicas.
    /// Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::count_or_percentage")]
    pub max_unavailable: Option<IntOrString>,
}

/// [`Rollout`] with every default filled in, for a number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedRollout {
    /// Who replaces outdated instances.
    pub type_: RolloutType,
    /// The maximum number of instances above the replicas.
    pub max_surge: i32,
    /// The maximum number of unavailable replicas.
    pub max_unavailable: i32,
    /// Whether outdated instances are replaced.
    pub mode: RolloutMode,
    /// Instances that were launched before this time are outdated once it has passed.
    pub after: Option<DateTime<Utc>>,
    /// The maximum age of an instance.
    pub max_instance_lifetime: Option<TimeDelta>,
    /// The time in which a rollout must make progress.
    pub progress_deadline: TimeDelta,
}

impl ResolvedRollout {
    /// The same with at most this many instances above the replicas. A rollout without any makes one replica unavailable at
    /// least, as with `maxSurge: 0`.
    #[must_use]
    pub fn with_surge_up_to(self, most: i32) -> Self {
        let max_surge = self.max_surge.min(most);
        let max_unavailable = if max_surge == 0 { self.max_unavailable.max(1) } else { self.max_unavailable };
        Self { max_surge, max_unavailable, ..self }
    }
}

impl Default for ResolvedRollout {
    /// The rollout of a spec that sets nothing.
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
pub(super) const PROGRESS_DEADLINE_SECONDS: i32 = 1800;

/// Parses a time in RFC 3339. A text that the schema accepts and that is no time counts as absent.
#[must_use]
pub fn instant(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc())
}

/// The direction in which a percentage is rounded.
#[derive(Clone, Copy)]
pub(super) enum Rounding {
    Up,
    Down,
}

/// A number as it is, or a percentage of `whole`, rounded. The API server stores nothing else; any other text counts as
/// 0.
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
    use crate::ASGMachinePoolSpec;

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

    // Rules: H7
    #[test]
    fn the_default_is_one_more_than_wanted() {
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
        let deadline = |windows: serde_json::Value, seconds: Option<i32>| {
            let disruption = serde_json::from_value(serde_json::json!({ "windows": windows })).unwrap();
            let rollout = Rollout { progress_deadline_seconds: seconds, ..Rollout::default() };
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
