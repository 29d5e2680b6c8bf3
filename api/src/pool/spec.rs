//! The root of `ASGMachinePool` (A1, A5, A8), and the fields that have no file of their own.
//!
//! The schema rejects what a schema can reject, so that no webhook has to. Immutable fields say so (B14, B15).

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::{
    ASGMachinePoolStatus, AdoptionPolicy, ChangePolicy, DeletionPolicy, Disruption, Drain, Group,
    InstanceTypeEntry, InstancesDistribution, MachineTemplate, RebalanceRecommendationPolicy,
    RemediationPolicy, ResolvedInstancesDistribution, Rollout, ScaleInOrder, SubnetSelector,
    ZoneRebalancePolicy,
};
use crate::{capi, crd::shapes, identity::IdentityReference};

/// The desired state of a pool of nodes on one Auto Scaling group. Replicas, Kubernetes version and bootstrap data come
/// from the MachinePool. A change of `machine`, of the Kubernetes version or of the bootstrap config, or the removal of
/// an instance type, makes running instances outdated; see each field.
#[expect(clippy::duplicated_attributes, reason = "each printcolumn has members of its own")]
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ASGMachinePool",
    plural = "asgmachinepools",
    singular = "asgmachinepool",
    shortname = "asgmp",
    category = "cluster-api",
    namespaced,
    status = "ASGMachinePoolStatus",
    derive = "PartialEq",
    doc = "ASGMachinePool is a pool of nodes on one AWS Auto Scaling group. The MachinePool that refers to it sets its number of replicas.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
        description = "Cluster that the pool belongs to."
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".status.desiredReplicas",
        description = "Desired number of instances."
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Number of instances."
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Number of ready Machines."
    ),
    printcolumn(
        name = "Up-To-Date",
        type_ = "integer",
        json_path = ".status.upToDateReplicas",
        description = "Number of instances that match the current spec."
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Summary of the pool's state for users."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".status.version",
        description = "Kubernetes version that the MachinePool requests."
    ),
    printcolumn(
        name = "Min",
        type_ = "integer",
        json_path = ".status.group.minSize",
        priority = 1,
        description = "MinSize of the Auto Scaling group."
    ),
    printcolumn(
        name = "Max",
        type_ = "integer",
        json_path = ".status.group.maxSize",
        priority = 1,
        description = "MaxSize of the Auto Scaling group."
    ),
    printcolumn(
        name = "Group",
        type_ = "string",
        json_path = ".status.group.name",
        priority = 1,
        description = "Name of the Auto Scaling group."
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        priority = 1,
        description = "Whether the pool is paused."
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.providerID) || self.region == self.providerID.split(':')[3]")
        .message("spec.region: must be the region of spec.providerID, the Auto Scaling group in use")
        .field_path(".region"),
    validation = Rule::new("!has(oldSelf.providerID) || has(self.providerID)")
        .message("spec.providerID: cannot be removed; it names the Auto Scaling group in use")
        .field_path(".providerID"),
    validation = Rule::new("!has(self.minSize) || !has(self.maxSize) || self.minSize <= self.maxSize")
        .message("spec.minSize: must not be greater than spec.maxSize")
        .field_path(".minSize"),
    validation = Rule::new("(has(self.group) && has(self.group.name)) == (has(oldSelf.group) && has(oldSelf.group.name))")
        .message("spec.group.name: cannot be set or removed once the pool exists; create another pool")
        .field_path(".group.name"),
    validation = Rule::new("!has(self.adoptionPolicy) || self.adoptionPolicy != 'Adopt' || (has(self.group) && has(self.group.name))")
        .message("spec.adoptionPolicy: Adopt requires spec.group.name, the Auto Scaling group to adopt")
        .field_path(".adoptionPolicy"),
    validation = Rule::new("!(has(self.drain) && has(self.drain.onCloudTermination) && self.drain.onCloudTermination == 'Ignore' && has(self.rollout) && has(self.rollout.strategy) && has(self.rollout.strategy.type) && self.rollout.strategy.type == 'InstanceRefresh')")
        .message("spec.drain.onCloudTermination: must be Drain with rollout.strategy.type InstanceRefresh: Ignore terminates instances without draining their nodes; use Drain, or type RollingUpdate")
        .field_path(".drain.onCloudTermination"),
    validation = Rule::new("!has(self.machine.image.ssmParameter) || !self.machine.image.ssmParameter.startsWith('arn:') || self.machine.image.ssmParameter.contains(':ssm:' + self.region + ':')")
        .message("spec.machine.image.ssmParameter: must be an SSM parameter of spec.region; use the name of a parameter, or an ARN of that region")
        .field_path(".machine.image.ssmParameter"),
    validation = Rule::new("!has(self.machine.rootVolume) || !has(self.machine.rootVolume.kmsKeyID) || !self.machine.rootVolume.kmsKeyID.startsWith('arn:') || self.machine.rootVolume.kmsKeyID.contains(':kms:' + self.region + ':')")
        .message("spec.machine.rootVolume.kmsKeyID: must be a KMS key of spec.region; use a key of that region, or the replica there of a multi-Region key")
        .field_path(".machine.rootVolume.kmsKeyID"),
    validation = Rule::new("!has(self.machine.dataVolumes) || self.machine.dataVolumes.all(volume, !has(volume.kmsKeyID) || !volume.kmsKeyID.startsWith('arn:') || volume.kmsKeyID.contains(':kms:' + self.region + ':'))")
        .message("spec.machine.dataVolumes[].kmsKeyID: must be a KMS key of spec.region; use a key of that region, or the replica there of a multi-Region key")
        .field_path(".machine.dataVolumes"),
)]
pub struct ASGMachinePoolSpec {
    /// ARN of the Auto Scaling group. Written by the controller. The account, region and group name in it cannot be
    /// changed.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 512),
        regex(
            pattern = r"^arn:[^:]+:autoscaling:[^:]+:[^:]+:autoScalingGroup:[^:]*:autoScalingGroupName/[^:]+$"
        )
    )]
    #[x_kube(validation = Rule::new("self.split(':')[3] == oldSelf.split(':')[3] && self.split(':')[4] == oldSelf.split(':')[4] && self.split(':')[7] == oldSelf.split(':')[7]")
        .message("spec.providerID: account, region and group name cannot be changed; create another pool"))]
    pub provider_id: Option<String>,

    /// Provider IDs of the pool's instances, `aws:///<zone>/<instance ID>`, sorted. Written by the controller for core
    /// Cluster API.
    #[serde(rename = "providerIDList", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10000),
        inner(length(min = 1, max = 512), regex(pattern = r"^aws:///[^/]+/i-[0-9a-f]+$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub provider_id_list: Vec<String>,

    /// AWS region of the pool, such as `eu-west-1`. Immutable.
    #[schemars(length(max = 32))]
    #[x_kube(
        validation = Rule::new("self.matches('^[a-z]{2,}(-[a-z0-9]+)+-[0-9]+$')")
            .message("spec.region: must be an AWS region, such as eu-west-1; if it is empty, a variable of the template has no value"),
        validation = Rule::new("self == oldSelf").message("spec.region: cannot be changed; create another pool"),
    )]
    pub region: String,

    /// Subnets in which instances are launched, each selected by ID or by tags. If the MachinePool has failureDomains,
    /// only subnets in these zones are used. Changes apply in place: running instances stay in their subnets.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub subnets: Vec<SubnetSelector>,

    /// Minimum number of replicas. If the MachinePool requests fewer, this number is used. If another actor manages
    /// replicas, this is the MinSize of the Auto Scaling group. Defaults to the annotation
    /// cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size of the MachinePool, or to 0 without one. Changes
    /// apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10000))]
    pub min_size: Option<i32>,

    /// Maximum number of replicas. If the MachinePool requests more, this number is used. If another actor manages
    /// replicas, this is the MaxSize of the Auto Scaling group. Defaults to the annotation
    /// cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size of the MachinePool; without one there is no limit,
    /// and MaxSize is 10000. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10000))]
    pub max_size: Option<i32>,

    /// Which instances are chosen first for a scale-in if no other criterion decides: `Oldest` or `Newest`. Defaults to
    /// `Oldest`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_in_order: Option<ScaleInOrder>,

    /// Instance types, in order of preference, each at most once. An added type or another order applies in place.
    /// Removing a type makes its running instances outdated.
    #[schemars(length(min = 1, max = 40))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(entry, self.exists_one(other, other.type == entry.type))")
        .message("spec.instanceTypes: must not contain a type twice"))]
    pub instance_types: Vec<InstanceTypeEntry>,

    /// Distribution of the instances between On-Demand and Spot. Defaults to On-Demand instances only, with the types
    /// in the order of `instanceTypes`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_distribution: Option<InstancesDistribution>,

    /// Tags of the Auto Scaling group, the launch template, the instances, their volumes and network interfaces, and, if the
    /// pool launches Spot Instances alone, Spot Instance requests, in addition to those that the controller sets. Defaults to
    /// none. Changes apply in place, to the group and to instances that are launched later; running instances and the
    /// launch template itself keep their tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::tags")]
    #[x_kube(
        validation = Rule::new("self.all(key, size(key) >= 1 && size(key) <= 128)")
            .message("spec.tags: a tag key must have 1 to 128 characters"),
        validation = Rule::new("self.all(key, !key.lowerAscii().startsWith('aws:'))")
            .message("spec.tags: keys that begin with aws: are reserved by AWS"),
        validation = Rule::new("self.all(key, !key.startsWith('asg.infrastructure.cluster.x-k8s.io/'))")
            .message("spec.tags: keys that begin with asg.infrastructure.cluster.x-k8s.io/ are reserved for the controller; remove the tag"),
        validation = Rule::new("self.all(key, !key.startsWith('kubernetes.io/cluster/'))")
            .message("spec.tags: keys that begin with kubernetes.io/cluster/ are reserved: the controller sets kubernetes.io/cluster/<name of the Cluster>; remove the tag, and give an EKS cluster the name of its Cluster object (field eksClusterName of its AWSManagedControlPlane)"),
    )]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub tags: BTreeMap<String, String>,

    /// Template of each instance. A change makes running instances outdated.
    pub machine: MachineTemplate,

    /// How outdated instances are replaced. Defaults to a rolling update with a surge of one instance. Changes apply in
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,

    /// When the controller may disrupt instances voluntarily (rollouts, requested replacements, remediation, scale-in),
    /// and how many at the same time. Defaults to any time, and to as many as `rollout` allows. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,

    /// How nodes are drained before their instances terminate. Defaults to a drain before every termination; a
    /// termination by AWS is held for up to 3600 seconds. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,

    /// What happens to a Spot instance that EC2 recommends replacing because it is at an elevated risk of interruption.
    /// `Replace` launches a replacement and then drains the instance, as a rolling update does, within the limits of
    /// `disruption`. `Ignore` keeps the instance until EC2 interrupts it. `Replace` requires an event queue (flag
    /// --event-queue of the manager); without one, the condition `EventQueueReady` is False, as it is for each pool with
    /// Spot instances while the messages of a configured queue cannot be received. Defaults to `Ignore`. Changes
    /// apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalance_recommendation_policy: Option<RebalanceRecommendationPolicy>,

    /// What happens while the numbers of instances of two Availability Zones differ by two or more for 5 minutes, as
    /// after the outage of a zone. `Replace` launches a replacement, which AWS places in the zone with the fewest
    /// instances, and then drains an instance of the zone with the most, as a rolling update does, within the limits of
    /// `disruption`, one at a time. `Ignore` keeps the instances: a scale-out, a scale-in or the next rollout restores the
    /// balance. Defaults to `Ignore`, so that no node is disrupted without a request. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_rebalance_policy: Option<ZoneRebalancePolicy>,

    /// Settings of the Auto Scaling group. Defaults to the defaults of its fields. Changes apply in place, except for
    /// `name`, which is immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,

    /// What happens to a Machine that a `MachineHealthCheck` reports as unhealthy. `Replace` deletes the Machine: its
    /// node is drained if it responds, and its instance is replaced. At most max(1, maxUnavailable) Machines are
    /// replaced at a time. `Ignore` does nothing. Defaults to `Replace`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation_policy: Option<RemediationPolicy>,

    /// Maximum time in seconds for an instance in service to have a ready node: since its launch if it has not joined
    /// the cluster, else since its node was deleted or became not ready. If it is exceeded, the conditions `NodesReady`
    /// and `Ready` are False, and `Stalled` is True; the instance is not replaced, which is the task of a
    /// MachineHealthCheck. 0 disables the limit. Defaults to 600. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub node_startup_timeout_seconds: Option<i32>,

    /// What happens to a difference between the spec and AWS. `Apply` corrects it. `Preview` only reports it in
    /// status.pendingChanges: the controller writes neither group settings nor the launch template and replaces no
    /// outdated instances, while scaling, drains, remediation and deletion continue. Defaults to `Apply`. Changes apply
    /// in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_policy: Option<ChangePolicy>,

    /// What happens to an existing Auto Scaling group with the name spec.group.name that the pool did not create.
    /// `Ignore` leaves it unchanged. `Adopt` makes it the pool's group, with its instances, if no controller owns it and
    /// it has as many instances as the MachinePool has replicas. The controller first reports in status.pendingChanges
    /// what the adoption changes; with changePolicy `Preview` it only reports it. Adopted instances are outdated, and
    /// are replaced according to `rollout`. A group that does not exist is created. Defaults to `Ignore`. Changes apply
    /// in place, and have no effect once the pool has its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption_policy: Option<AdoptionPolicy>,

    /// What happens to the Auto Scaling group, its instances and the launch template when the pool is deleted: `Delete`
    /// deletes them, `Orphan` keeps them. Defaults to `Delete`. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,

    /// Any text. Another value makes the controller repeat at once each call that AWS rejected, and each that AWS accepted
    /// without effect, resume the processes that AWS suspended after failed launches (also with changePolicy `Preview`),
    /// and resume a stopped rollout. Set it after the cause was corrected in AWS. Defaults to none. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub retry_token: Option<String>,

    /// The AWS credentials that the pool uses, which must be allowed in the namespace. Defaults to those of the Cluster
    /// (`identityRef` of its AWSCluster or AWSManagedControlPlane), then to the default ASGIdentity of the namespace, then to
    /// the credentials of the manager. Changes apply in place; the credentials must belong to the account of the group.
    // The credentials of a tenant (T1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityReference>,
}

/// The maximum number of instances of a pool: core's list of them accepts no more.
pub const MAX_REPLICAS: i32 = 10_000;

/// The bounds of the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaLimits {
    /// The minimum number of replicas.
    pub min: i32,
    /// The maximum number of replicas; `None` is no limit.
    pub max: Option<i32>,
}

impl ReplicaLimits {
    /// Whether a number of replicas is within the bounds.
    #[must_use]
    pub fn contain(&self, replicas: i32) -> bool {
        replicas >= self.min && self.max.is_none_or(|max| replicas <= max)
    }
}

impl ASGMachinePoolSpec {
    /// The bounds of the replicas: those of the spec, else the autoscaler's annotations on the owner `MachinePool`,
    /// else 0 and no limit (G3).
    #[must_use]
    pub fn limits(&self, owner: Option<&capi::MachinePool>) -> ReplicaLimits {
        ReplicaLimits {
            min: self.min_size.or_else(|| owner?.autoscaler_min_size()).unwrap_or(0),
            max: self.max_size.or_else(|| owner?.autoscaler_max_size()),
        }
    }

    /// Which instances are chosen first for a scale-in if no other criterion decides; `Oldest` unless set.
    #[must_use]
    pub fn scale_in_order(&self) -> ScaleInOrder {
        self.scale_in_order.unwrap_or(ScaleInOrder::Oldest)
    }

    /// The names of the instance types, in order of preference.
    #[must_use]
    pub fn instance_type_names(&self) -> Vec<String> {
        self.instance_types.iter().map(|entry| entry.type_.clone()).collect()
    }

    /// Whether the group needs a mixed instances policy: for more than one type, or for purchase options.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.instance_types.len() > 1 || self.instances_distribution.is_some()
    }

    /// Whether the group may launch Spot instances.
    #[must_use]
    pub fn may_launch_spot(&self) -> bool {
        self.instances_distribution().on_demand_percentage_above_base_capacity < 100
    }

    /// Whether the group launches nothing but Spot instances.
    #[must_use]
    pub fn launches_only_spot(&self) -> bool {
        let distribution = self.instances_distribution();
        distribution.on_demand_base_capacity == 0
            && distribution.on_demand_percentage_above_base_capacity == 0
    }

    /// The purchase options, with every default filled in.
    #[must_use]
    pub fn instances_distribution(&self) -> ResolvedInstancesDistribution {
        self.instances_distribution.clone().unwrap_or_default().resolve()
    }
}
