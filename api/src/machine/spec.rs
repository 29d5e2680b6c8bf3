//! The root of `ASGMachine`: the instance that it represents. Only the pool controller writes it.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::ASGMachineStatus;

/// The instance that the object represents. Written by the controller. Immutable.
#[expect(clippy::duplicated_attributes, reason = "each printcolumn has members of its own")]
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ASGMachine",
    plural = "asgmachines",
    singular = "asgmachine",
    shortname = "asgm",
    category = "cluster-api",
    namespaced,
    status = "ASGMachineStatus",
    derive = "PartialEq",
    doc = "ASGMachine represents one instance of an ASGMachinePool. The controller creates and deletes it. To replace the instance, delete its Machine.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
        description = "Cluster that the instance belongs to."
    ),
    printcolumn(
        name = "Pool",
        type_ = "string",
        json_path = r".metadata.labels['cluster\.x-k8s\.io/pool-name']",
        description = "MachinePool that the instance belongs to."
    ),
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".status.instanceType",
        description = "Instance type."
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = ".status.failureDomain",
        description = "Availability Zone."
    ),
    printcolumn(
        name = "Purchase",
        type_ = "string",
        json_path = ".status.purchaseOption",
        description = "Purchase option of the instance."
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.lifecycleState",
        description = "Lifecycle state of the instance in its Auto Scaling group."
    ),
    printcolumn(
        name = "Up-To-Date",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="UpToDate")].status"#,
        description = "Whether the instance matches the current spec of the pool."
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether the instance has started, is healthy, is in its Auto Scaling group and is not terminating."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Instance-ID",
        type_ = "string",
        json_path = ".spec.instanceID",
        description = "ID of the EC2 instance."
    ),
    printcolumn(
        name = "Template-Version",
        type_ = "integer",
        json_path = ".status.launchTemplateVersion",
        priority = 1,
        description = "Launch template version that the instance was launched from."
    ),
    printcolumn(
        name = "Provider-ID",
        type_ = "string",
        json_path = ".spec.providerID",
        priority = 1,
        description = "Provider ID of the instance and its Node."
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.providerID.endsWith('/' + self.instanceID)")
    .message("spec.instanceID: must be the instance of spec.providerID")
        .field_path(".instanceID"))]
pub struct ASGMachineSpec {
    /// Provider ID of the instance and its Node, `aws:///<zone>/<instance ID>`. Immutable.
    #[serde(rename = "providerID")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^aws:///[^/]+/i-[0-9a-f]+$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("spec.providerID: cannot be changed"))]
    pub provider_id: String,

    /// ID of the EC2 instance. Immutable.
    #[serde(rename = "instanceID")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^i-[0-9a-f]+$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("spec.instanceID: cannot be changed"))]
    pub instance_id: String,
}

impl ASGMachineSpec {
    /// The spec for an instance in an availability zone.
    #[must_use]
    pub fn new(availability_zone: &str, instance_id: &str) -> Self {
        Self {
            provider_id: crate::names::provider_id(availability_zone, instance_id),
            instance_id: instance_id.to_owned(),
        }
    }
}
