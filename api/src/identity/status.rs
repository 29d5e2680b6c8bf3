//! `status` of an `ASGIdentity`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::crd::shapes;

/// The observed state of an identity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ASGIdentityStatus {
    /// The metadata.generation that this status was computed for.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub observed_generation: i64,

    /// The AWS account of the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 12, max = 12))]
    pub account: Option<String>,

    /// Conditions: `Ready` is true while AWS accepts the credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "shapes::conditions")]
    pub conditions: Vec<Condition>,
}
