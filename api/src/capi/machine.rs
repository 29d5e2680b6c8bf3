//! `Machine`: has it joined, is it well, is it going, was it chosen to go.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

use super::{ContractReference, MachineDeletion};
use crate::{
    conditions::{self, READY},
    names::annotations,
    time::from_kubernetes,
};

/// Core's mark on a Machine that a `MachineHealthCheck` wants replaced, `False` while that is to be done (D15).
const OWNER_REMEDIATED: &str = "OwnerRemediated";
const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";

/// What is read of a Machine's spec.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Machine",
    plural = "machines",
    namespaced,
    status = "MachineStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSpec {
    /// The Cluster that the Machine belongs to.
    pub cluster_name: String,
    /// The object of ours that the Machine stands for.
    pub infrastructure_ref: ContractReference,
    /// The ID that the Node carries.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The Kubernetes version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Limits on how the Machine goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
}

/// What is read of a Machine's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// The Machine's conditions.
    pub conditions: Vec<Condition>,
    /// The Node, once it has joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeRef>,
    /// What core makes of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// The Node of a Machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeRef {
    /// The Node's name.
    pub name: String,
}

impl Machine {
    /// The name of the Node, once it has joined.
    #[must_use]
    pub fn node_name(&self) -> Option<&str> {
        let node = self.status.as_ref()?.node_ref.as_ref()?;
        Some(node.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Whether a Node has joined.
    #[must_use]
    pub fn has_node(&self) -> bool {
        self.node_name().is_some()
    }

    /// Whether core finds the Machine ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        conditions::is_true(self.conditions(), READY)
    }

    /// Since when the condition Ready has its status.
    #[must_use]
    pub fn ready_since(&self) -> Option<DateTime<Utc>> {
        conditions::get(self.conditions(), READY)
            .map(|condition| from_kubernetes(&condition.last_transition_time))
    }

    /// Whether the Machine is being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether the Machine is marked to go first (D8).
    #[must_use]
    pub fn is_marked_for_deletion(&self) -> bool {
        self.annotations().contains_key(annotations::DELETE_MACHINE)
    }

    /// Whether a `MachineHealthCheck` wants the Machine replaced (D15): it is unhealthy and marked. The mark alone is
    /// not enough, since nobody takes it off a Machine of a pool that recovered.
    #[must_use]
    pub fn needs_remediation(&self) -> bool {
        let is_false = |kind| {
            conditions::get(self.conditions(), kind).is_some_and(|condition| condition.status == "False")
        };
        is_false(HEALTH_CHECK_SUCCEEDED) && is_false(OWNER_REMEDIATED)
    }

    /// The Machine's conditions.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }
}
