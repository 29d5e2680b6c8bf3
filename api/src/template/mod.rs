//! `ASGMachinePoolTemplate`: the template from which core creates the pools of a `ClusterClass` (J1). The controller never
//! reads it: core creates and changes the pools.

mod schema;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

pub use self::schema::message_of_template;
use crate::{ASGMachinePoolSpec, crd::shapes};

/// The template from which Cluster API's topology controller creates pools. A change applies in place to the pools that
/// were created from it.
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
    doc = "ASGMachinePoolTemplate is the template from which a ClusterClass creates ASGMachinePools. Cluster API applies \
           its changes in place to the pools that were created from it.",
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        json_path = r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#,
        description = "ClusterClass that uses the template."
    ),
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.template.spec.instanceTypes[0].type",
        description = "First instance type of the pools, before patches."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ASGMachinePoolTemplateSpec {
    /// The pool to create. Changes apply in place, to every pool that was created from it.
    pub template: ASGMachinePoolTemplateResource,
}

/// Metadata and spec of the pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ASGMachinePoolTemplateResource {
    /// Labels and annotations of the pools, in addition to those of Cluster API. Defaults to none. Changes apply in
    /// place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,

    /// The spec of the pools: that of an ASGMachinePool without the fields that are specific to one pool. The
    /// description of each field states how its change affects the pools. A field that is immutable in a pool may be
    /// changed here; the change applies to new pools. Existing pools reject it, and their Cluster reports the rejection
    /// in its condition `TopologyReconciled`.
    #[schemars(schema_with = "schema::of_template")]
    pub spec: ASGMachinePoolSpec,
}

/// Metadata that pools get from their template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels of the pools. Defaults to none. Changes apply in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::labels")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub labels: BTreeMap<String, String>,

    /// Annotations of the pools. Defaults to none. Changes apply in place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "shapes::annotations")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub annotations: BTreeMap<String, String>,
}
