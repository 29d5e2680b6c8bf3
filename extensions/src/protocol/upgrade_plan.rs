//! The request and the response of `GenerateUpgradePlan`.

use serde::{Deserialize, Serialize};

use super::{Cluster, Request, Response, Settings, Status, UpgradeStep, common::null_is_empty};

/// The request of `GenerateUpgradePlan`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateUpgradePlanRequest {
    /// The settings.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The Cluster.
    #[serde(default, skip_serializing_if = "Cluster::is_absent")]
    pub cluster: Cluster,
    /// The version of the control plane.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from_control_plane_kubernetes_version: String,
    /// The oldest version of the workers; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from_workers_kubernetes_version: String,
    /// The version of the Cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to_kubernetes_version: String,
}

/// The response to `GenerateUpgradePlan`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateUpgradePlanResponse {
    /// The result of the call.
    pub status: Status,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The versions that the control plane is upgraded to, one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_plane_upgrades: Vec<UpgradeStep>,
    /// The versions that the workers are upgraded to, one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers_upgrades: Vec<UpgradeStep>,
}

impl Request for GenerateUpgradePlanRequest {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn cluster(&self) -> Option<&Cluster> {
        Some(&self.cluster)
    }

    fn cluster_mut(&mut self) -> Option<&mut Cluster> {
        Some(&mut self.cluster)
    }
}

impl Response for GenerateUpgradePlanResponse {
    fn success() -> Self {
        Self::default()
    }

    fn failure(message: String) -> Self {
        Self { status: Status::Failure, message, ..Self::default() }
    }

    fn not_ready(message: String) -> Self {
        Self::failure(message)
    }

    fn status(&self) -> Status {
        self.status
    }
}
