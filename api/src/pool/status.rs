//! What a pool reports: the contract's fields (A10, B4, B5, B6, B13), counters for people, and what the spec was
//! resolved to.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PendingChange, RolloutStatus};
use crate::{crd::shapes, values::string_enum};

string_enum! {
    /// Where a pool stands, in one word for eyes; programs read conditions.
    pub enum Phase {
        /// Something that the pool needs is not there yet.
        Pending = "Pending",
        /// The group is being created.
        Provisioning = "Provisioning",
        /// As many instances as asked for, all up to date.
        Running = "Running",
        /// Growing or shrinking.
        Scaling = "Scaling",
        /// Replacing outdated instances.
        RollingOut = "RollingOut",
        /// Something is wrong; see the conditions.
        Degraded = "Degraded",
        /// Left alone.
        Paused = "Paused",
        /// Being deleted.
        Deleting = "Deleting",
    }
}

/// What was observed of the pool. It is rebuilt from the spec and AWS where it is lost (M4). There is no
/// `failureReason` or `failureMessage`: core panics on them (B7).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ASGMachinePoolStatus {
    /// True once group and launch template exist; never false again. Core Cluster API waits for it.
    // Core reads only this one (B6); it is always equal to `initialization.provisioned` (B5), and false is written.
    #[serde(default)]
    pub ready: bool,

    /// Whether the pool was provisioned, as the contract names it.
    #[serde(default)]
    pub initialization: InitializationStatus,

    /// Number of instances: the length of spec.providerIDList.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub replicas: i32,

    /// Kind of the objects that stand for single instances, `ASGMachine`. Absent until there can be any.
    // An empty string would make core list kind "List" and fail (B11), so it is an option and never empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z][A-Za-z0-9]*$"))]
    pub infrastructure_machine_kind: Option<String>,

    /// The metadata.generation that this status was computed for.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub observed_generation: i64,

    /// What holds of the pool: Ready sums `CloudReachable`, `LaunchTemplateReady`, `GroupReady`, `ScalingHealthy` and Deleting;
    /// beside them `UpToDate`, `RollingOut`, `ScalingUp`, `ScalingDown`, Remediating, Paused and Drifted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "shapes::conditions")]
    pub conditions: Vec<Condition>,

    /// Where the pool stands in one word, for eyes only: Pending, Provisioning, Running, Scaling, `RollingOut`, Degraded,
    /// Paused or Deleting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// Number of instances that the MachinePool, or whoever manages its replicas, asks for.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub desired_replicas: i32,

    /// Who manages replicas instead of the MachinePool: the value of its annotation
    /// cluster.x-k8s.io/replicas-managed-by, once the group's desired capacity is theirs. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub replicas_managed_by: Option<String>,

    /// Number of Machines that are ready.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub ready_replicas: i32,

    /// Number of instances that are made from the current spec.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub up_to_date_replicas: i32,

    /// The rollout that is under way or waits for something. Absent while no instance is outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,

    /// What a new node of the pool would have, as Kubernetes quantities by resource: cpu, memory, ephemeral-storage (the
    /// root volume) and devices such as nvidia.com/gpu; of several instance types the least of each. It is what AWS states:
    /// a node offers a little less. The Cluster Autoscaler reads it to raise a pool from zero.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::quantities")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub capacity: BTreeMap<String, String>,

    /// What a new node of the pool would say of itself; the Cluster Autoscaler reads it to raise a pool from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,

    /// The Auto Scaling group as AWS shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupStatus>,

    /// The launch template version that new instances start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_template: Option<LaunchTemplateStatus>,

    /// The image that new instances start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageStatus>,

    /// The last thing that kept AWS from launching instances. It stays when launches succeed again: `ScalingHealthy` tells
    /// what holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_launch_failure: Option<LaunchFailureStatus>,

    /// What would change in AWS with changePolicy `Apply`, the first 64 by path; only with `Preview`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub pending_changes: Vec<PendingChange>,

    /// The subnets that spec.subnets came down to, by ID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub subnets: Vec<SubnetStatus>,

    /// The security groups that spec.machine.securityGroups came down to, sorted.
    #[serde(rename = "securityGroupIDs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub security_group_ids: Vec<String>,
}

/// Whether the object was provisioned once; never taken back (B5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializationStatus {
    /// True once what the object stands for exists in AWS; never false again.
    #[serde(default)]
    pub provisioned: bool,
}

/// What a new node of the pool would say of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// The processors' architecture in Kubernetes' words, such as `amd64` or `arm64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub architecture: Option<String>,
    /// The operating system in Kubernetes' words: `linux` or `windows`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub operating_system: Option<String>,
}

/// The Auto Scaling group as AWS shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStatus {
    /// The group's name.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// The group's smallest size.
    #[serde(default)]
    pub min_size: i32,
    /// The group's largest size.
    #[serde(default)]
    pub max_size: i32,
    /// How many instances the group aims at.
    #[serde(default)]
    pub desired_capacity: i32,
    /// Processes that are suspended, by whomever.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub suspended_processes: Vec<String>,
}

/// The launch template version that the group is pinned to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaunchTemplateStatus {
    /// The template's ID.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// The version's number.
    #[serde(default)]
    pub version: i64,
    /// Hash of all that the version holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub content_hash: Option<String>,
    /// Hash of what makes instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub rollout_hash: Option<String>,
}

/// The image that the spec came down to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// The image in use, pinned.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// The image that the SSM parameter of the spec names now, if it is another: see spec.machine.image.updatePolicy.
    #[serde(rename = "availableID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub available_id: Option<String>,
}

/// Why AWS could not launch an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaunchFailureStatus {
    /// The reason that condition `ScalingHealthy` gave for it.
    #[schemars(length(min = 1, max = 128))]
    pub reason: String,
    /// AWS's words.
    #[schemars(length(min = 1, max = 1024))]
    pub message: String,
    /// The instance type that could not be launched, where AWS names it or the pool has no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub instance_type: Option<String>,
    /// The zone that it could not be launched in, where AWS names it or the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub availability_zone: Option<String>,
    /// When this failure was first met.
    #[schemars(schema_with = "shapes::time")]
    pub time: Time,
}

/// A subnet in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetStatus {
    /// The subnet's ID.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// The zone that the subnet is in.
    #[schemars(length(min = 1, max = 64))]
    pub availability_zone: String,
}

impl ASGMachinePoolStatus {
    /// Sets both readings of "provisioned" at once, and only ever to true (B5, B6).
    pub fn set_provisioned(&mut self) {
        self.ready = true;
        self.initialization.provisioned = true;
    }
}
