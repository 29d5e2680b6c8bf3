//! References to objects whose kind is known only at run time, such as bootstrap configs.
//!
//! A reference has no version: like core, we use the latest version that the CRD's label for the latest contract lists.

use std::{cmp::Ordering, collections::BTreeMap};

use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Version};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A reference without a version: the version is the one that fulfils the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContractReference {
    /// The group of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The kind of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The name of the object, in the referring object's namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl ContractReference {
    /// Whether the reference names an object.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.kind.is_empty() && !self.name.is_empty()
    }
}

/// The contracts that core accepts, the preferred one first.
const CONTRACTS: [&str; 2] = ["cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"];

/// The version of a kind that fulfils the contract: the latest one in the CRD's label, whose value joins versions with `_`
/// (A3). `None` if the CRD has no such label; core then rejects the kind.
#[must_use]
pub fn contract_version(crd_labels: &BTreeMap<String, String>) -> Option<&str> {
    let versions = CONTRACTS.iter().find_map(|contract| crd_labels.get(*contract))?;
    versions.split('_').filter(|version| !version.is_empty()).max_by(|a, b| compare(a, b))
}

/// The name of the CRD of a referenced kind, which the contract fixes (A2).
#[must_use]
pub fn crd_name(reference: &ContractReference) -> String {
    let resource = bootstrap_resource(reference, "");
    format!("{}.{}", resource.plural, reference.api_group)
}

/// The resource of a referenced kind at a version, without a request to the API server: the contract fixes the plural.
#[must_use]
pub fn bootstrap_resource(reference: &ContractReference, version: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk(&reference.api_group, version, &reference.kind);
    ApiResource::from_gvk(&kind)
}

/// `spec` of an object of any kind; null if it has none.
#[must_use]
pub fn spec_of(object: &DynamicObject) -> &Value {
    object.data.get("spec").unwrap_or(&Value::Null)
}

fn compare(a: &str, b: &str) -> Ordering {
    Version::parse(a).priority().cmp(&Version::parse(b).priority())
}
