//! The root of `ASGGuard`: the namespaces and what their pools may use. A field that is not set restricts nothing.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{identity::NamespaceSelection, values::string_enum};

string_enum! {
    /// Whether pools may adopt groups.
    pub enum AdoptionRule {
        /// They may, if a tag of the group names them.
        Allowed = "Allowed",
        /// They may not.
        Denied = "Denied",
    }
}

/// What the pools of namespaces may use in AWS, whatever credentials they use. A pool must satisfy every guard that selects
/// its namespace. Cluster-scoped: only operators create guards.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ASGGuard",
    plural = "asgguards",
    singular = "asgguard",
    shortname = "asgg",
    category = "cluster-api",
    derive = "PartialEq",
    doc = "ASGGuard restricts what the ASGMachinePools of namespaces may use in AWS.",
    printcolumn(
        name = "Adoption",
        type_ = "string",
        json_path = ".spec.adoption",
        description = "Whether pools may adopt Auto Scaling groups."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ASGGuardSpec {
    /// The namespaces that the guard applies to. Changes apply in place.
    pub namespaces: NamespaceSelection,

    /// Regions, each a name or a pattern with `*`, such as `eu-*`. Defaults to every Region. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 32)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub regions: Option<Vec<String>>,

    /// IDs of VPCs. The subnets of a pool must be in one of them. Defaults to every VPC. Changes apply in place.
    #[serde(rename = "vpcIDs", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub vpc_ids: Option<Vec<String>>,

    /// IDs of subnets. Defaults to every subnet. Changes apply in place.
    #[serde(rename = "subnetIDs", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub subnet_ids: Option<Vec<String>>,

    /// IDs of security groups. Defaults to every security group. Changes apply in place.
    #[serde(rename = "securityGroupIDs", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub security_group_ids: Option<Vec<String>>,

    /// Names of instance profiles, or patterns with `*`. An instance profile gives its role to the user of the
    /// instance: list those of nodes alone. Defaults to `nodes.cluster-api-provider-aws.sigs.k8s.io`, if no other guard of a
    /// namespace sets this field. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub instance_profiles: Option<Vec<String>>,

    /// Names of key pairs, or patterns with `*`. Defaults to every key pair. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 255)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub ssh_key_names: Option<Vec<String>>,

    /// Prefixes of the names of SSM parameters that may name an image, such as `/aws/service/`. Defaults to every parameter. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 1011)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub ssm_parameter_prefixes: Option<Vec<String>>,

    /// IDs, ARNs or aliases of KMS keys as pools write them, or patterns with `*`. Defaults to every key. Changes apply in place.
    #[serde(rename = "kmsKeyIDs", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 2048)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub kms_key_ids: Option<Vec<String>>,

    /// IDs of images that pools name in `spec.machine.image.id`, or patterns with `*`; for images that a parameter names, see
    /// `ssmParameterPrefixes`. Defaults to every image. Changes apply in place.
    #[serde(rename = "imageIDs", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub image_ids: Option<Vec<String>>,

    /// IDs of snapshots of data volumes, or patterns with `*`. A snapshot gives its data to the user of the instance.
    /// Defaults to every snapshot. Changes apply in place.
    #[serde(rename = "snapshotIDs", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 64)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub snapshot_ids: Option<Vec<String>>,

    /// Names that pools may give to Auto Scaling groups in `spec.group.name`, or patterns with `*`. Defaults to every name. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 255)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub group_names: Option<Vec<String>>,

    /// Whether pools may adopt Auto Scaling groups whose tag `asg.infrastructure.cluster.x-k8s.io/adoptable-by` names them:
    /// `Allowed` or `Denied`. Defaults to `Denied`, if no other guard of a namespace sets this field. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<AdoptionRule>,

    /// Limits of size. Defaults to no limits. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<GuardLimits>,
}

/// Limits of the pools of each namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuardLimits {
    /// The most replicas of one pool. Defaults to no limit. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_replicas_per_pool: Option<i32>,

    /// The most pools of a namespace, whatever their replicas. Further pools create nothing. Defaults to no limit. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_pools: Option<i32>,

    /// The most replicas of all pools of a namespace together. Defaults to no limit. Changes apply in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_replicas: Option<i32>,
}
