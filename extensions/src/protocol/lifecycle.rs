//! The requests of the lifecycle hooks.

use serde::{Deserialize, Serialize};

use super::{Cluster, Request, Settings, common::null_is_empty};

/// The request of `BeforeClusterCreate`, `AfterControlPlaneInitialized` and `BeforeClusterDelete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRequest {
    /// The settings.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The Cluster.
    #[serde(default)]
    pub cluster: Cluster,
}

/// The request of `BeforeClusterUpgrade`, `BeforeControlPlaneUpgrade` and `BeforeWorkersUpgrade`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeRequest {
    /// The settings.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The Cluster.
    #[serde(default)]
    pub cluster: Cluster,
    /// The current version.
    #[serde(default)]
    pub from_kubernetes_version: String,
    /// The version of the step; for `BeforeClusterUpgrade` that of the Cluster.
    #[serde(default)]
    pub to_kubernetes_version: String,
    /// The steps of the control plane that follow.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub control_plane_upgrades: Vec<UpgradeStep>,
    /// The steps of the workers that follow.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub workers_upgrades: Vec<UpgradeStep>,
}

/// The request of `AfterControlPlaneUpgrade`, `AfterWorkersUpgrade` and `AfterClusterUpgrade`; the last has no steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradedRequest {
    /// The settings.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The Cluster.
    #[serde(default)]
    pub cluster: Cluster,
    /// The version that was reached.
    #[serde(default)]
    pub kubernetes_version: String,
    /// The steps of the control plane that follow.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub control_plane_upgrades: Vec<UpgradeStep>,
    /// The steps of the workers that follow.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub workers_upgrades: Vec<UpgradeStep>,
}

/// A step of an upgrade.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpgradeStep {
    /// The Kubernetes version of the step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// The steps of an upgrade that follow; empty where core does not say.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpgradeSteps<'a> {
    /// Those of the control plane.
    pub control_plane: &'a [UpgradeStep],
    /// Those of the workers.
    pub workers: &'a [UpgradeStep],
}

impl UpgradeRequest {
    /// The steps that follow.
    #[must_use]
    pub fn steps(&self) -> UpgradeSteps<'_> {
        UpgradeSteps { control_plane: &self.control_plane_upgrades, workers: &self.workers_upgrades }
    }
}

impl UpgradedRequest {
    /// The steps that follow.
    #[must_use]
    pub fn steps(&self) -> UpgradeSteps<'_> {
        UpgradeSteps { control_plane: &self.control_plane_upgrades, workers: &self.workers_upgrades }
    }
}

/// Those that are given of a version and of the steps that follow.
fn versions<'a>(version: &'a str, steps: UpgradeSteps<'a>) -> Vec<&'a str> {
    let steps = steps.control_plane.iter().chain(steps.workers).map(|step| step.version.as_str());
    steps.chain([version]).filter(|version| !version.is_empty()).collect()
}

impl Request for ClusterRequest {
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

impl Request for UpgradeRequest {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn cluster(&self) -> Option<&Cluster> {
        Some(&self.cluster)
    }

    fn cluster_mut(&mut self) -> Option<&mut Cluster> {
        Some(&mut self.cluster)
    }

    fn versions(&self) -> Vec<&str> {
        versions(&self.to_kubernetes_version, self.steps())
    }
}

impl Request for UpgradedRequest {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn cluster(&self) -> Option<&Cluster> {
        Some(&self.cluster)
    }

    fn cluster_mut(&mut self) -> Option<&mut Cluster> {
        Some(&mut self.cluster)
    }

    fn versions(&self) -> Vec<&str> {
        versions(&self.kubernetes_version, self.steps())
    }
}
