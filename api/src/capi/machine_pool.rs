//! `MachinePool`: how many nodes, of which version, where, with which bootstrap data.

use kube::{CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

use super::ContractReference;
use crate::names::annotations;

/// What is read of a `MachinePool`'s spec.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachinePool",
    plural = "machinepools",
    namespaced,
    status = "MachinePoolStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolSpec {
    /// The Cluster that the pool belongs to.
    pub cluster_name: String,
    /// How many nodes; core defaults it to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What each node is.
    pub template: MachineTemplateResource,
    /// Zones that the pool keeps to; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<String>,
    /// What core has copied from our list.
    #[serde(rename = "providerIDList", skip_serializing_if = "Vec::is_empty")]
    pub provider_id_list: Vec<String>,
}

/// The template's wrapper.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineTemplateResource {
    /// What each Machine would be.
    pub spec: MachineTemplateSpec,
}

/// What each Machine of the pool would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineTemplateSpec {
    /// Where bootstrap data comes from.
    pub bootstrap: Bootstrap,
    /// The object of ours that the pool refers to.
    pub infrastructure_ref: ContractReference,
    /// The Kubernetes version, with its v.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Seconds that a node must be ready to count as available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Limits on how a Machine goes; core does not hand them on to a pool's Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
}

/// Where bootstrap data comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bootstrap {
    /// The object that renders it, such as a `KubeadmConfig`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<ContractReference>,
    /// The Secret that holds it, in key `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_secret_name: Option<String>,
}

/// Limits on how a Machine goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeletion {
    /// Seconds that a drain may take; 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout_seconds: Option<i32>,
    /// Seconds that detaching volumes may take; 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// Seconds that deleting the Node may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// What is read of a `MachinePool`'s status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolStatus {
    /// What core makes of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How many nodes core has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

impl MachinePool {
    /// How many nodes are asked for; 1 where the webhook has not said (B12).
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    /// The zones to keep to; empty for all (H5).
    #[must_use]
    pub fn failure_domains(&self) -> &[String] {
        &self.spec.failure_domains
    }

    /// The name of the pool of ours that this one refers to, if it is one of ours (C4).
    #[must_use]
    pub fn infrastructure_pool(&self) -> Option<&str> {
        let reference = &self.spec.template.spec.infrastructure_ref;
        let ours = reference.api_group == crate::GROUP && reference.kind == "ASGMachinePool";
        Some(reference.name.as_str()).filter(|name| ours && !name.is_empty())
    }

    /// The Kubernetes version of the nodes, with its v.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.spec.template.spec.version.as_deref().filter(|version| !version.is_empty())
    }

    /// The Secret with the bootstrap data, once there is one (C3).
    #[must_use]
    pub fn data_secret_name(&self) -> Option<&str> {
        self.spec.template.spec.bootstrap.data_secret_name.as_deref().filter(|name| !name.is_empty())
    }

    /// The object that renders the bootstrap data, if there is one.
    #[must_use]
    pub fn bootstrap_config(&self) -> Option<&ContractReference> {
        self.spec.template.spec.bootstrap.config_ref.as_ref().filter(|reference| reference.is_set())
    }

    /// Seconds that a drain may take by core's own limit; `None` for no limit.
    #[must_use]
    pub fn node_drain_timeout_seconds(&self) -> Option<i32> {
        self.spec.template.spec.deletion?.node_drain_timeout_seconds.filter(|seconds| *seconds > 0)
    }

    /// Limits on how each Machine goes, which core does not hand on (D14).
    #[must_use]
    pub fn machine_deletion(&self) -> MachineDeletion {
        self.spec.template.spec.deletion.unwrap_or_default()
    }

    /// Seconds that a node must be ready to count as available; 0 unless set.
    #[must_use]
    pub fn min_ready_seconds(&self) -> i32 {
        self.spec.template.spec.min_ready_seconds.unwrap_or(0).max(0)
    }

    /// Who manages replicas instead of the `MachinePool`: the annotation's value, unless it is `false` (G2).
    #[must_use]
    pub fn replicas_managed_by(&self) -> Option<&str> {
        self.annotations()
            .get(annotations::REPLICAS_MANAGED_BY)
            .map(String::as_str)
            .filter(|value| *value != "false")
    }

    /// The autoscaler's lower bound, where its annotation is a number (G3).
    #[must_use]
    pub fn autoscaler_min_size(&self) -> Option<i32> {
        self.size_annotation(annotations::AUTOSCALER_MIN_SIZE)
    }

    /// The autoscaler's upper bound, where its annotation is a number (G3).
    #[must_use]
    pub fn autoscaler_max_size(&self) -> Option<i32> {
        self.size_annotation(annotations::AUTOSCALER_MAX_SIZE)
    }

    /// Whether the pool is being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn size_annotation(&self, key: &str) -> Option<i32> {
        self.annotations().get(key)?.parse().ok().filter(|size| *size >= 0)
    }
}
