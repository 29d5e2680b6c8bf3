//! `status.rollout`: the rollout that is in progress or waits.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RolloutType;
use crate::values::string_enum;

string_enum! {
    /// What a rollout waits for.
    pub enum RolloutWait {
        /// The spec has not changed for 10 seconds.
        StableSpec = "StableSpec",
        /// The state of the group and of its instance refreshes is read, and the group uses the desired launch
        /// template; see `LaunchTemplateReady` and `GroupReady`.
        Group = "Group",
        /// New instances are launched and their nodes are ready.
        NewInstances = "NewInstances",
        /// The instance refresh makes progress: AWS replaces instances, waits at a checkpoint, or waits for the bake
        /// time.
        Refresh = "Refresh",
        /// Nodes are drained and their instances are terminated.
        Drains = "Drains",
        /// Fewer instances are disrupted than spec.disruption allows.
        Budget = "Budget",
        /// Outdated instances without a ready node are available, or can be replaced: `do-not-disrupt` or a pause keeps
        /// them, and no other instance can be replaced before.
        UnavailableInstances = "UnavailableInstances",
        /// A window of spec.disruption opens.
        Window = "Window",
        /// spec.rollout.mode is `Automatic` again.
        Resume = "Resume",
        /// A user deletes the Machines of outdated instances (type `OnDelete`).
        Deletion = "Deletion",
        /// A user corrects the spec, or removes the annotation that stops the rollout.
        Correction = "Correction",
    }
}

/// A rollout that is in progress or waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Type of the rollout, as in spec.rollout.strategy.type.
    #[serde(rename = "type")]
    pub type_: RolloutType,

    /// Hash of the template that most outdated instances were launched from; equal to toHash if they are outdated for
    /// another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub from_hash: Option<String>,

    /// Hash of the desired template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub to_hash: Option<String>,

    /// Number of instances, including those that are being replaced and those above the replicas.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub total: i32,

    /// Number of instances that are up to date and available.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub updated: i32,

    /// Number of instances that are outdated.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub outdated: i32,

    /// Percentage of the instance refresh that is complete, as AWS reports it. Absent if no refresh is in progress. It
    /// decreases during a rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Option<i32>,

    /// Time at which the replacement of the first outdated instance became possible. Absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,

    /// What the rollout waits for. `StableSpec`: the spec has not changed for 10 seconds. `Group`: the group uses the
    /// desired launch template. `NewInstances`: new instances are launched and their nodes are ready. `Refresh`: AWS
    /// completes the instance refresh. `Drains`: nodes are drained and their instances are terminated. `Budget`: fewer
    /// instances are disrupted than spec.disruption allows. `UnavailableInstances`: outdated instances without a ready
    /// node, which an annotation or a pause keeps, are available or replaced. `Window`: a window of spec.disruption
    /// opens. `Resume`: spec.rollout.mode is `Automatic`. `Deletion`: a user deletes the Machines of outdated instances.
    /// `Correction`: a user corrects the spec, or removes the annotation
    /// asg.infrastructure.cluster.x-k8s.io/rollout-stopped. The conditions `RollingOut` and `UpToDate` describe it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<RolloutWait>,

    /// Time at which the current wait (waitingFor) began. For `NewInstances`, it is the time at which an instance last
    /// became available or an outdated instance terminated; the rollout stops progressDeadlineSeconds after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<DateTime<Utc>>,

    /// ID of the last instance refresh that the controller cancelled or rolled back before it had replaced all
    /// instances: because a window closed, the rollout was paused, the limit of spec.disruption was reduced, or the spec
    /// changed. The controller writes it before the call, so that it never mistakes such a refresh for a failed one.
    #[serde(rename = "endedRefreshID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub ended_refresh_id: Option<String>,

    /// Time at which the next window of spec.disruption opens. Absent if a window is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_window: Option<DateTime<Utc>>,
}
