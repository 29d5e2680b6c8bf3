//! `Machine`: whether it has joined, is healthy, is being deleted, and is a victim.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

use super::{ContractReference, MachineDeletion};
use crate::{
    conditions::{self, DELETING, READY},
    names::annotations,
    time::from_kubernetes,
};

/// Core's condition on a Machine that a `MachineHealthCheck` reports as unhealthy: `False` until it is replaced (D15).
const OWNER_REMEDIATED: &str = "OwnerRemediated";
const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";

/// The fields that are read of a Machine's spec.
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
    /// The `ASGMachine` of the Machine.
    pub infrastructure_ref: ContractReference,
    /// The provider ID, which the Node has too.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The Kubernetes version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Timeouts of the deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
}

/// The fields that are read of a Machine's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// The Machine's conditions.
    pub conditions: Vec<Condition>,
    /// The Node, once it has joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeRef>,
    /// Core's summary of the state.
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

    /// Whether core reports the Machine as ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        conditions::is_true(self.conditions(), READY)
    }

    /// The last transition time of the condition Ready.
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

    /// What core reports about the deletion, in one line: during a drain, the pods that remain and the
    /// `PodDisruptionBudgets` that keep them (condition `Deleting`).
    #[must_use]
    pub fn deletion_progress(&self) -> Option<String> {
        let deleting = conditions::get(self.conditions(), DELETING).filter(|found| found.status == "True")?;
        let words: Vec<&str> = deleting.message.split_whitespace().filter(|word| *word != "*").collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// Whether the Machine has the annotation `delete-machine`, by which it is deleted first (D8).
    #[must_use]
    pub fn has_delete_annotation(&self) -> bool {
        self.annotations().contains_key(annotations::DELETE_MACHINE)
    }

    /// Whether a `MachineHealthCheck` reports the Machine as unhealthy and to be replaced (D15). `OwnerRemediated` alone is not
    /// sufficient, since no controller removes it from a Machine of a pool that recovered.
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
