//! References to objects whose kind is known only at run time, such as bootstrap configs.

use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A reference without version: the served version is the one that fulfils the contract.
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
    /// Whether anything is referred to.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !self.kind.is_empty() && !self.name.is_empty()
    }
}

/// The resource of a referenced kind at a version, without asking the API server: the contract fixes the plural.
#[must_use]
pub fn bootstrap_resource(reference: &ContractReference, version: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk(&reference.api_group, version, &reference.kind);
    ApiResource::from_gvk(&kind)
}

/// `spec` of an object of any kind; null where it has none.
#[must_use]
pub fn spec_of(object: &DynamicObject) -> &Value {
    object.data.get("spec").unwrap_or(&Value::Null)
}
