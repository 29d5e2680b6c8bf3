//! The root of `ASGMachinePool` (A1, A5, A8) and the fields that are not in a group of their own.
//!
//! What the schema can refuse it refuses, so that no webhook has to; what cannot be changed says so (B14, B15).

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::{
    ASGMachinePoolStatus, AdoptionPolicy, CapacityRebalance, ChangePolicy, DeletionPolicy, Disruption, Drain,
    Group, IdentityReference, InstancesDistribution, MachineTemplate, RemediationPolicy,
    ResolvedInstancesDistribution, Rollout, ScaleInOrder, SubnetSelector,
};
use crate::{capi, crd::shapes};

/// What a pool of nodes on one Auto Scaling group should be. `machine` makes running instances outdated, the rest
/// changes in place. Replicas and version come from the MachinePool.
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
    doc = "ASGMachinePool is a pool of nodes on one AWS Auto Scaling group, scaled by the MachinePool that refers to it.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
        description = "The Cluster that the pool belongs to."
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".status.desiredReplicas",
        description = "Instances that the MachinePool asks for."
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Instances that exist."
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Machines that are ready."
    ),
    printcolumn(
        name = "Up-To-Date",
        type_ = "integer",
        json_path = ".status.upToDateReplicas",
        description = "Instances that are made from the current spec."
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Where the pool stands, for eyes only."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Min",
        type_ = "integer",
        json_path = ".status.group.minSize",
        priority = 1,
        description = "Smallest size of the Auto Scaling group."
    ),
    printcolumn(
        name = "Max",
        type_ = "integer",
        json_path = ".status.group.maxSize",
        priority = 1,
        description = "Largest size of the Auto Scaling group."
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
        description = "Whether the pool is left alone."
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.providerID) || self.region == self.providerID.split(':')[3]")
        .message("spec.region: must be the region of spec.providerID, the Auto Scaling group in use")
        .field_path(".region"),
    validation = Rule::new("!has(oldSelf.providerID) || has(self.providerID)")
        .message("spec.providerID: cannot be removed, it names the Auto Scaling group in use")
        .field_path(".providerID"),
    validation = Rule::new("!has(self.minSize) || !has(self.maxSize) || self.minSize <= self.maxSize")
        .message("spec.minSize: must not be above spec.maxSize")
        .field_path(".minSize"),
    validation = Rule::new("!has(self.identityRef)")
        .message("spec.identityRef: reserved, identities do not exist yet; remove it to use the controller's own AWS credentials")
        .field_path(".identityRef"),
    validation = Rule::new("(has(self.group) && has(self.group.name)) == (has(oldSelf.group) && has(oldSelf.group.name))")
        .message("spec.group.name: cannot be set or removed once the pool exists; create another pool")
        .field_path(".group.name"),
    validation = Rule::new("!has(self.adoptionPolicy) || self.adoptionPolicy != 'Adopt' || (has(self.group) && has(self.group.name))")
        .message("spec.adoptionPolicy: Adopt needs spec.group.name, the Auto Scaling group to adopt")
        .field_path(".adoptionPolicy"),
    validation = Rule::new("!(has(self.drain) && has(self.drain.onCloudTermination) && self.drain.onCloudTermination == 'Ignore' && has(self.rollout) && has(self.rollout.strategy) && has(self.rollout.strategy.type) && self.rollout.strategy.type == 'InstanceRefresh')")
        .message("spec.drain.onCloudTermination: with Ignore an instance refresh would end nodes undrained; use Drain, or rollout.strategy.type RollingUpdate")
        .field_path(".drain.onCloudTermination"),
)]
pub struct ASGMachinePoolSpec {
    /// ARN of the Auto Scaling group. Written by the controller once; it fixes account, region and group name.
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

    /// The AWS region that the pool is in, such as `eu-west-1`. Fixed.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]{2,}(-[a-z0-9]+)+-[0-9]+$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("spec.region: cannot be changed; create another pool"))]
    pub region: String,

    /// The subnets that instances are launched in, each by ID or by tags; failureDomains of the MachinePool narrow them
    /// to its zones. Changed in place: running instances stay where they are.
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub subnets: Vec<SubnetSelector>,

    /// Smallest number of replicas that is accepted; where somebody else manages replicas, the group's MinSize. Default:
    /// the autoscaler's min-size annotation of the MachinePool, else 0. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10000))]
    pub min_size: Option<i32>,

    /// Largest number of replicas that is accepted; where somebody else manages replicas, the group's MaxSize. Default:
    /// the autoscaler's max-size annotation of the MachinePool, else no limit (a MaxSize of 10000). Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10000))]
    pub max_size: Option<i32>,

    /// Which instance goes first when nothing else decides: `Oldest` or `Newest`. Default `Oldest`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_in_order: Option<ScaleInOrder>,

    /// The instance types to use, in order of preference. A type that is added or moved changes in place; removing one
    /// makes its running instances outdated.
    #[schemars(
        length(min = 1, max = 40),
        inner(length(min = 1, max = 64), regex(pattern = r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"))
    )]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[x_kube(validation = Rule::new("self.all(type, self.exists_one(other, other == type))")
        .message("spec.instanceTypes: name each type once"))]
    pub instance_types: Vec<String>,

    /// How the pool is split between On-Demand and Spot. Default: all On-Demand, types in the order given. Changed in
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_distribution: Option<InstancesDistribution>,

    /// Tags for the group, the launch template, instances and volumes, beside the controller's own. Default: none.
    /// Changed in place, on instances launched from then on; running instances keep the tags they have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::tags")]
    #[x_kube(
        validation = Rule::new("self.all(key, size(key) >= 1 && size(key) <= 128)")
            .message("spec.tags: a tag key has 1 to 128 characters"),
        validation = Rule::new("self.all(key, !key.lowerAscii().startsWith('aws:'))")
            .message("spec.tags: keys that begin with aws: are reserved by AWS"),
        validation = Rule::new("self.all(key, !key.startsWith('asg.infrastructure.cluster.x-k8s.io/') && !key.startsWith('kubernetes.io/cluster/'))")
            .message("spec.tags: keys that begin with asg.infrastructure.cluster.x-k8s.io/ or kubernetes.io/cluster/ are set by the controller"),
    )]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub tags: BTreeMap<String, String>,

    /// The machine that each instance is. A change makes running instances outdated.
    pub machine: MachineTemplate,

    /// How outdated instances are replaced. Default: a rolling update with one instance more than wanted. Changed in
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,

    /// When, and how many at once, the controller may take instances away for reasons of its own. Default: at any time,
    /// as many as `rollout` allows. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,

    /// How nodes are drained before their instances end. Default: they are, for up to an hour. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,

    /// What becomes of a Spot instance that EC2 recommends to replace, since it is likelier than others to be
    /// interrupted: `Replace` launches another first and drains it then, as a rolling update does, within `disruption`;
    /// `Ignore` waits until EC2 takes it back. Needs a queue of events. Default `Ignore`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_rebalance: Option<CapacityRebalance>,

    /// The Auto Scaling group itself. Default: each setting's own. Its settings change in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,

    /// What becomes of a Machine that a `MachineHealthCheck` finds unhealthy: `Replace` drains it if its node still
    /// answers, and replaces its instance, max(1, maxUnavailable) at a time; `Ignore` leaves it alone. Default
    /// `Replace`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation_policy: Option<RemediationPolicy>,

    /// Whether a difference between the spec and AWS is put right (`Apply`) or only shown in status.pendingChanges
    /// (`Preview`): then neither group settings nor launch template are written and nothing is rolled out, while scaling,
    /// drains, remediation and deletion go on. Default `Apply`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_policy: Option<ChangePolicy>,

    /// What becomes of an Auto Scaling group that exists under spec.group.name and was not made by the pool: `Never`
    /// leaves it alone; `Adopt` makes it the pool's with its instances, if no controller owns it and it has as many
    /// instances as the MachinePool asks for. What that changes is shown in status.pendingChanges first; with changePolicy
    /// `Preview` it is only shown. Its instances are outdated then, and replaced as `rollout` says. A group that does not
    /// exist is made. Default `Never`. Changed in place; without effect once the pool has its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption_policy: Option<AdoptionPolicy>,

    /// What becomes of group, instances and launch template when the pool is deleted: `Delete` or `Orphan`. Default
    /// `Delete`. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,

    /// Reserved for the AWS identity that the pool acts as; refused until identities exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_ref: Option<IdentityReference>,
}

/// The most instances that a pool can have: core's list of them takes no more.
pub const MOST_REPLICAS: i32 = 10_000;

/// The bounds that replicas are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaLimits {
    /// Smallest accepted number.
    pub min: i32,
    /// Largest accepted number; `None` is no limit.
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
    /// The bounds on replicas: the spec's own, else the autoscaler's annotations on the owner `MachinePool`, else 0 and
    /// none (G3).
    #[must_use]
    pub fn limits(&self, owner: Option<&capi::MachinePool>) -> ReplicaLimits {
        ReplicaLimits {
            min: self.min_size.or_else(|| owner?.autoscaler_min_size()).unwrap_or(0),
            max: self.max_size.or_else(|| owner?.autoscaler_max_size()),
        }
    }

    /// Which instance goes first when nothing else decides; `Oldest` unless set.
    #[must_use]
    pub fn scale_in_order(&self) -> ScaleInOrder {
        self.scale_in_order.unwrap_or(ScaleInOrder::Oldest)
    }

    /// Whether the group needs a mixed instances policy: more than one type, or purchase options.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.instance_types.len() > 1 || self.instances_distribution.is_some()
    }

    /// The purchase options with every default filled in.
    #[must_use]
    pub fn instances_distribution(&self) -> ResolvedInstancesDistribution {
        self.instances_distribution.clone().unwrap_or_default().resolve()
    }
}
