//! `status` of a pool: the contract's fields (A10, B4, B5, B6, B13), counters for users, and what the spec resolves to.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

use super::{EffectiveSettings, PendingChange, RolloutStatus};
use crate::{crd::shapes, identity::IdentityInUse, values::string_enum};

string_enum! {
    /// A summary of the pool's state for users; programs should use the conditions.
    pub enum Phase {
        /// The pool waits for something that it requires.
        Pending = "Pending",
        /// The group is being created.
        Provisioning = "Provisioning",
        /// The desired number of nodes is ready, and all instances are up to date.
        Running = "Running",
        /// The pool is scaling up or down, or waits for nodes to be ready.
        Scaling = "Scaling",
        /// Outdated instances are being replaced.
        RollingOut = "RollingOut",
        /// The pool has a problem; see the conditions.
        Degraded = "Degraded",
        /// The pool is paused.
        Paused = "Paused",
        /// The pool is being deleted.
        Deleting = "Deleting",
        /// Cluster API does not know whether the nodes are ready.
        Unknown = "Unknown",
    }
}

/// The observed state of the pool. The controller rebuilds it from the spec and AWS if it is lost.
// That is M4. It has no `failureReason` and no `failureMessage`: core panics on them (B7).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ASGMachinePoolStatus {
    /// True once the Auto Scaling group exists, like initialization.provisioned. It is never reset to false. Core Cluster
    /// API waits for it.
    // Core reads only this field (B6). It always equals `initialization.provisioned` (B5), and false is written.
    #[serde(default)]
    pub ready: bool,

    /// Whether the pool is provisioned, as the contract of Cluster API defines it.
    #[serde(default)]
    pub initialization: InitializationStatus,

    /// Number of instances: the length of spec.providerIDList.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub replicas: i32,

    /// Kind of the objects that represent the instances, `ASGMachine`.
    // With an empty string, core would list the kind "List" and fail (B11), so it is an option and never empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z][A-Za-z0-9]*$"))]
    pub infrastructure_machine_kind: Option<String>,

    /// The metadata.generation that this status was computed for.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub observed_generation: i64,

    /// Conditions of the pool. `Ready` summarizes `CloudReachable`, `LaunchTemplateReady`, `GroupReady`,
    /// `ScalingHealthy` and `Deleting`, `NodesReady` once nodes have not been ready for
    /// spec.nodeStartupTimeoutSeconds, and `UpToDate` while a rollout is stopped. `Reconciling` and `Stalled` are those of
    /// kstatus. The others are `UpToDate`, `RollingOut`, `ScalingUp`, `ScalingDown`, `Remediating`, `Paused`,
    /// `Drifted` and `EventQueueReady`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "shapes::conditions")]
    pub conditions: Vec<Condition>,

    /// Summary of the pool's state for users: `Pending`, `Provisioning`, `Running`, `Scaling`, `RollingOut`,
    /// `Degraded`, `Paused`, `Deleting` or `Unknown`. Programs should use the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// Number of instances requested by the MachinePool or by the actor that manages its replicas.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub desired_replicas: i32,

    /// Actor that manages the replicas instead of the MachinePool: the value of the MachinePool's annotation
    /// cluster.x-k8s.io/replicas-managed-by. Absent until that actor controls the group's desired capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub replicas_managed_by: Option<String>,

    /// The AWS credentials that the pool uses, and what determines them. Absent until they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<IdentityInUse>,

    /// Number of Machines that are ready.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub ready_replicas: i32,

    /// Kubernetes version that the MachinePool requests. The versions of nodes are in the statuses of their Machines.
    /// Absent if the MachinePool has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,

    /// Number of instances that match the current spec.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub up_to_date_replicas: i32,

    /// The rollout that is in progress or waits. Absent if no instance is outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,

    /// Capacity of a new node of the pool, as Kubernetes quantities by resource: cpu, memory, ephemeral-storage (the
    /// volume of spec.machine.ephemeralStorageDeviceName) and devices such as nvidia.com/gpu. With several instance types,
    /// it is the minimum of each resource. The values are those of AWS; the capacity that a node reports is slightly lower.
    /// The Cluster Autoscaler reads them to scale a pool from zero.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::quantities")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub capacity: BTreeMap<String, String>,

    /// Properties of a new node of the pool. The Cluster Autoscaler reads them to scale a pool from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeInfo>,

    /// The Auto Scaling group as observed in AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupStatus>,

    /// The launch template version that new instances are launched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_template: Option<LaunchTemplateStatus>,

    /// The image that new instances are launched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageStatus>,

    /// The most recent failure to launch an instance. It is kept after launches succeed again; the condition
    /// `ScalingHealthy` reports the current state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_launch_failure: Option<LaunchFailureStatus>,

    /// Changes that the controller would make in AWS with changePolicy `Apply`, or is about to make in an adoption; at
    /// most 64, sorted by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub pending_changes: Vec<PendingChange>,

    /// The values that apply for the fields of the spec that have defaults, by the same paths. Percentages are numbers for
    /// the current replicas. The defaults do not change within a version of the API.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known")]
    #[schemars(schema_with = "shapes::partial::<EffectiveSettings>")]
    pub effective: Option<Box<EffectiveSettings>>,

    /// The subnets that spec.subnets selects, identified by ID.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub subnets: Vec<SubnetStatus>,

    /// IDs of the security groups that spec.machine.securityGroups selects, sorted.
    #[serde(rename = "securityGroupIDs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub security_group_ids: Vec<String>,

    /// Numbers of items that are left out of lists of this status because they are longer than the API allows, by the path of
    /// the list, such as `securityGroupIDs`. Absent if all are complete.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::counts")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub omitted: BTreeMap<String, i32>,
}

/// Whether the object was provisioned once. It is never reset (B5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializationStatus {
    /// True once the Auto Scaling group exists (ASGMachinePool), or the instance runs (ASGMachine). It is never reset
    /// to false.
    #[serde(default)]
    pub provisioned: bool,
}

/// Properties of a new node of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// CPU architecture as Kubernetes names it, such as `amd64` or `arm64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub architecture: Option<String>,
    /// Operating system as Kubernetes names it: `linux` or `windows`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub operating_system: Option<String>,
}

/// The Auto Scaling group as observed in AWS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStatus {
    /// Name of the group.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// MinSize of the group.
    #[serde(default)]
    pub min_size: i32,
    /// MaxSize of the group.
    #[serde(default)]
    pub max_size: i32,
    /// Desired capacity of the group: the number of instances that AWS maintains.
    #[serde(default)]
    pub desired_capacity: i32,
    /// Processes of the group that are suspended, by the controller or by another actor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub suspended_processes: Vec<String>,
}

/// The launch template version that the group uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaunchTemplateStatus {
    /// ID of the launch template.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Number of the version.
    #[serde(default)]
    pub version: i64,
    /// Hash of the whole content of the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub content_hash: Option<String>,
    /// Hash of the content whose change makes instances outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub rollout_hash: Option<String>,
}

/// The image that the spec selects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// ID of the image in use.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// ID of the image that the SSM parameter of the spec holds now, if it is another one. See
    /// spec.machine.image.updatePolicy.
    #[serde(rename = "availableID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub available_id: Option<String>,
}

/// A failure of AWS to launch an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaunchFailureStatus {
    /// Reason of the condition `ScalingHealthy` for this failure.
    #[schemars(length(min = 1, max = 128))]
    pub reason: String,
    /// Message of AWS.
    #[schemars(length(min = 1, max = 1024))]
    pub message: String,
    /// Instance type that AWS failed to launch. Absent if AWS does not name it and the pool has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub instance_type: Option<String>,
    /// Availability Zone in which AWS failed to launch the instance. Absent if AWS names neither the zone nor the
    /// subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub availability_zone: Option<String>,
    /// Time at which this failure first occurred.
    #[schemars(schema_with = "shapes::time")]
    pub time: Time,
}

/// A subnet in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetStatus {
    /// ID of the subnet.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Availability Zone of the subnet.
    #[schemars(length(min = 1, max = 64))]
    pub availability_zone: String,
}

impl ASGMachinePoolStatus {
    /// Sets both fields that say "provisioned", and only ever to true (B5, B6).
    pub fn set_provisioned(&mut self) {
        self.ready = true;
        self.initialization.provisioned = true;
    }
}

/// Reads what this version knows; `None` for what another version wrote with other members. The next status has it anew,
/// and a pool that cannot be read is never reconciled.
fn known<'de, D, T>(deserializer: D) -> Result<Option<Box<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}
