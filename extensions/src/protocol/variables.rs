//! The request and the response of `DiscoverVariables`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Request, Response, Settings, Status, common::null_is_empty};

/// The request of `DiscoverVariables`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiscoverVariablesRequest {
    /// The settings.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
}

/// The response to `DiscoverVariables`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiscoverVariablesResponse {
    /// The result of the call.
    pub status: Status,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<ClusterClassVariable>,
}

/// A variable of a `ClusterClass`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassVariable {
    /// The name.
    pub name: String,
    /// Whether every Cluster must set it. Core requires the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Labels and annotations of the variable in `v1beta1`; not used by this extension.
    #[serde(rename = "deprecatedV1Beta1Metadata", default, skip_serializing_if = "Option::is_none")]
    pub deprecated_v1beta1_metadata: Option<Value>,
    /// The schema: `openAPIV3Schema` with a structural schema.
    #[serde(default)]
    pub schema: Value,
}

impl Request for DiscoverVariablesRequest {
    fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Response for DiscoverVariablesResponse {
    fn success() -> Self {
        Self::default()
    }

    fn failure(message: String) -> Self {
        Self { status: Status::Failure, message, variables: Vec::new() }
    }

    fn not_ready(message: String) -> Self {
        Self::failure(message)
    }

    fn status(&self) -> Status {
        self.status
    }
}
