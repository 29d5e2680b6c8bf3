//! `ASGMachinePoolTemplate`: what a `ClusterClass` makes pools from (J1). The controller never reads it: core makes pools
//! and changes them.

mod schema;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

pub(crate) use self::schema::message_of_template;
use crate::{ASGMachinePoolSpec, crd::shapes};

/// What the topology controller of Cluster API makes pools from. It may be edited: pools are changed in place.
#[expect(clippy::duplicated_attributes, reason = "each printcolumn has members of its own")]
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ASGMachinePoolTemplate",
    plural = "asgmachinepooltemplates",
    singular = "asgmachinepooltemplate",
    shortname = "asgmpt",
    category = "cluster-api",
    namespaced,
    derive = "PartialEq",
    doc = "ASGMachinePoolTemplate is what a ClusterClass makes ASGMachinePools from. Cluster API carries a change of it \
           into the pools that came from it, in place.",
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        json_path = r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#,
        description = "The ClusterClass that uses the template."
    ),
    printcolumn(
        name = "Types",
        type_ = "string",
        json_path = ".spec.template.spec.instanceTypes",
        description = "The instance types of its pools, before patches."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ASGMachinePoolTemplateSpec {
    /// The pool to make. Changed in place, in every pool that was made from it.
    pub template: ASGMachinePoolTemplateResource,
}

/// The pool to make: its metadata and its spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ASGMachinePoolTemplateResource {
    /// Labels and annotations of the pools, beside those of Cluster API. Default: none. Changed in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,

    /// What a pool should be: the spec of an ASGMachinePool without what is written for one pool alone. Each field says
    /// what its change does to the pools. One that is fixed in a pool may be edited here, and counts for new pools; the
    /// pools that there are refuse it, which their Cluster tells in its condition `TopologyReconciled`.
    #[schemars(schema_with = "schema::of_template")]
    pub spec: ASGMachinePoolSpec,
}

/// Metadata that pools get from their template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels of the pools. Default: none. Changed in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::labels")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub labels: BTreeMap<String, String>,

    /// Annotations of the pools. Default: none. Changed in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::annotations")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub annotations: BTreeMap<String, String>,
}
