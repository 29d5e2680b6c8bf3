//! `spec.disruption`: when, and how many at once, the controller may disrupt instances voluntarily.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::crd::shapes;

/// Limits on when, and how many at once, the controller may disrupt instances voluntarily (rollouts, requested
/// replacements, remediation, scale-in). Changes apply in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Maximum number of instances that may be disrupted at the same time, for all reasons together (rollouts,
    /// requested replacements, unhealthy Machines, scale-in): a number of at least 1, or a percentage of the replicas,
    /// rounded down to at least 1. Instances that are being drained, missing replicas, and replicas whose nodes have
    /// not joined count as disrupted. Machines whose instances AWS terminates or has terminated are deleted regardless
    /// of the limit. Defaults to no limit beyond those of `rollout`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::positive_or_percentage")]
    pub max_disrupted: Option<IntOrString>,

    /// Windows in which outdated instances may be replaced: at least one must be open. When the last one closes, drains
    /// in progress continue, and an instance refresh is cancelled and started again in the next window. Instance
    /// refreshes do not support windows if the bootstrap data contains a bootstrap token, or if its provider is not
    /// kubeadm. Scale-in and the replacement of unhealthy Machines do not wait for windows. Defaults to any time.
    /// Changes apply in place.
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
    /// 22 * * 1-5`. If daylight saving time skips the time, the window opens at the next valid time; if the time occurs
    /// twice, the window opens at its first occurrence. Changes apply in place.
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

    /// Maximum number of instances that rollouts may disrupt at the same time while this window is open: a number, or a
    /// percentage of the replicas, as in spec.disruption.maxDisrupted, which also applies. If several windows are open,
    /// the largest limit applies, and none if one of them has no limit. Defaults to no additional limit. Changes apply
    /// in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shapes::positive_or_percentage")]
    pub max_disrupted: Option<IntOrString>,
}
