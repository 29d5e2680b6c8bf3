//! The requests and responses of `GeneratePatches` and `ValidateTopology`.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Request, Response, Settings, Status, Template, common::null_is_empty};

/// The request of `GeneratePatches`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratePatchesRequest {
    /// The settings.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The variables of all templates.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// The templates.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub items: Vec<GeneratePatchesRequestItem>,
}

/// A template to patch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GeneratePatchesRequestItem {
    /// Identifies the template in this request.
    pub uid: String,
    /// The object that uses the template.
    #[serde(default)]
    pub holder_reference: HolderReference,
    /// The template.
    #[serde(default)]
    pub object: Template,
    /// The variables of this template, which override those of all.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// The response to `GeneratePatches`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratePatchesResponse {
    /// The result of the call.
    pub status: Status,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The patches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<GeneratePatchesResponseItem>,
}

/// The patch of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GeneratePatchesResponseItem {
    /// That of the template in the request (R9).
    pub uid: String,
    /// The format of the patch.
    pub patch_type: PatchType,
    /// The patch, encoded in base64.
    pub patch: String,
}

/// The format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatchType {
    /// RFC 6902.
    #[serde(rename = "JSONPatch")]
    Json,
    /// RFC 7386.
    #[serde(rename = "JSONMergePatch")]
    JsonMerge,
}

/// The request of `ValidateTopology`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ValidateTopologyRequest {
    /// The settings.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The variables of all templates.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// The templates, patched.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub items: Vec<ValidateTopologyRequestItem>,
}

/// A template to validate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidateTopologyRequestItem {
    /// The object that uses the template.
    #[serde(default)]
    pub holder_reference: HolderReference,
    /// The template.
    #[serde(default)]
    pub object: Template,
    /// The variables of this template, which override those of all.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// A variable with its value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value: any JSON.
    #[serde(default)]
    pub value: Value,
}

/// The object that uses a template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HolderReference {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name; for an object that does not exist yet, the one that it gets.
    pub name: String,
    /// The field that refers to the template.
    pub field_path: String,
}

impl GeneratePatchesResponseItem {
    /// A JSON merge patch.
    #[must_use]
    pub fn merge(uid: &str, patch: &Value) -> Self {
        Self {
            uid: uid.to_owned(),
            patch_type: PatchType::JsonMerge,
            patch: BASE64_STANDARD.encode(patch.to_string()),
        }
    }
}

impl Request for GeneratePatchesRequest {
    fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Request for ValidateTopologyRequest {
    fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Response for GeneratePatchesResponse {
    fn success() -> Self {
        Self::default()
    }

    fn failure(message: String) -> Self {
        Self { status: Status::Failure, message, items: Vec::new() }
    }

    fn not_ready(message: String) -> Self {
        Self::failure(message)
    }

    fn status(&self) -> Status {
        self.status
    }
}
