//! What a pool reports of the rollout that is under way.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RolloutType;
use crate::values::string_enum;

string_enum! {
    /// What a rollout waits for.
    pub enum RolloutWait {
        /// Until the spec has been the same for a moment.
        StableSpec = "StableSpec",
        /// Until the group launches what the spec says; see `LaunchTemplateReady` and `GroupReady`.
        Group = "Group",
        /// Until new instances are launched and their nodes are ready.
        NewInstances = "NewInstances",
        /// Until the instance refresh has gone on: AWS replaces, waits at a checkpoint, or bakes.
        Refresh = "Refresh",
        /// Until nodes are drained and their instances gone.
        Drains = "Drains",
        /// Until fewer instances are disrupted than spec.disruption allows.
        Budget = "Budget",
        /// Until a window of spec.disruption opens.
        Window = "Window",
        /// Until spec.rollout.mode is `Automatic` again.
        Resume = "Resume",
        /// Until somebody deletes the Machines of outdated instances (type `OnDelete`).
        Deletion = "Deletion",
        /// Until somebody corrects the spec, or removes the annotation that says that the rollout was stopped.
        Correction = "Correction",
    }
}

/// The rollout that is under way or waits for something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Who replaces outdated instances, as spec.rollout.strategy.type.
    #[serde(rename = "type")]
    pub type_: RolloutType,

    /// Hash of what most outdated instances were made from; as toHash where something else made them outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub from_hash: Option<String>,

    /// Hash of what instances are to be made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub to_hash: Option<String>,

    /// Number of instances, those that are being replaced and those beyond the replicas included.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub total: i32,

    /// Number of them that are up to date and do their work.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub updated: i32,

    /// Number of them that are outdated.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub outdated: i32,

    /// How far the instance refresh is, as AWS says, in percent. Only while one is under way; in a rollback it goes down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Option<i32>,

    /// When the first outdated instance could be replaced. Absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,

    /// What the rollout waits for; `RollingOut` and `UpToDate` say it in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<RolloutWait>,

    /// Since when it waits for that. For new instances: since one last became available, or an outdated one went; after
    /// progressDeadlineSeconds of that the rollout stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<DateTime<Utc>>,

    /// The instance refresh that the controller ended last, before it had replaced everything: a window closed, rollouts
    /// were paused, the budget asks for a smaller one, or the spec changed. It is written before the call, so that such an
    /// end is never taken for a failure.
    #[serde(rename = "endedRefreshID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub ended_refresh_id: Option<String>,

    /// When the next window of spec.disruption opens, while none is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_window: Option<DateTime<Utc>>,
}
