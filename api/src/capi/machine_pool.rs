//! `MachinePool`: replicas, version, failure domains and bootstrap data.

use kube::{CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

use super::ContractReference;
use crate::names::annotations;

/// The fields that are read of a `MachinePool`'s spec.
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
    /// The number of nodes; core defaults it to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The template of the nodes.
    pub template: MachineTemplateResource,
    /// The zones of the pool; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failure_domains: Vec<String>,
    /// The copy of `spec.providerIDList` of our pool.
    #[serde(rename = "providerIDList", skip_serializing_if = "Vec::is_empty")]
    pub provider_id_list: Vec<String>,
}

/// The wrapper of the template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineTemplateResource {
    /// The spec of each Machine.
    pub spec: MachineTemplateSpec,
}

/// The spec of each Machine of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineTemplateSpec {
    /// The source of the bootstrap data.
    pub bootstrap: Bootstrap,
    /// The `ASGMachinePool` that the pool refers to.
    pub infrastructure_ref: ContractReference,
    /// The Kubernetes version, with the v.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Seconds that a node must be ready to count as available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Timeouts of the deletion of a Machine; core does not copy them to the Machines of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
}

/// The source of the bootstrap data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bootstrap {
    /// The object that renders the data, such as a `KubeadmConfig`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_ref: Option<ContractReference>,
    /// The Secret that contains the data, in the key `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_secret_name: Option<String>,
}

/// Timeouts of the deletion of a Machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineDeletion {
    /// The limit of a drain in seconds; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout_seconds: Option<i32>,
    /// The limit of detaching volumes in seconds; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// The limit of deleting the Node in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout_seconds: Option<i32>,
}

/// The fields that are read of a `MachinePool`'s status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinePoolStatus {
    /// Core's summary of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The number of nodes that core has observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

impl MachinePool {
    /// The requested number of nodes; 1 if the webhook has not defaulted it (B12).
    #[must_use]
    pub fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    /// The zones of the pool; empty for all (H5).
    #[must_use]
    pub fn failure_domains(&self) -> &[String] {
        &self.spec.failure_domains
    }

    /// The name of the `ASGMachinePool` that this pool refers to; `None` if it refers to another kind (C4).
    #[must_use]
    pub fn infrastructure_pool(&self) -> Option<&str> {
        let reference = &self.spec.template.spec.infrastructure_ref;
        let ours = reference.api_group == crate::GROUP && reference.kind == "ASGMachinePool";
        Some(reference.name.as_str()).filter(|name| ours && !name.is_empty())
    }

    /// The Kubernetes version of the nodes, with the v.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.spec.template.spec.version.as_deref().filter(|version| !version.is_empty())
    }

    /// The Secret with the bootstrap data, once it exists (C3).
    #[must_use]
    pub fn data_secret_name(&self) -> Option<&str> {
        self.spec.template.spec.bootstrap.data_secret_name.as_deref().filter(|name| !name.is_empty())
    }

    /// The object that renders the bootstrap data, if there is one.
    #[must_use]
    pub fn bootstrap_config(&self) -> Option<&ContractReference> {
        self.spec.template.spec.bootstrap.config_ref.as_ref().filter(|reference| reference.is_set())
    }

    /// Core's limit of a drain in seconds; `None` is no limit.
    #[must_use]
    pub fn node_drain_timeout_seconds(&self) -> Option<i32> {
        self.spec.template.spec.deletion?.node_drain_timeout_seconds.filter(|seconds| *seconds > 0)
    }

    /// Timeouts of the deletion of each Machine, which core does not copy (D14).
    #[must_use]
    pub fn machine_deletion(&self) -> MachineDeletion {
        self.spec.template.spec.deletion.unwrap_or_default()
    }

    /// Seconds that a node must be ready to count as available; 0 unless set.
    #[must_use]
    pub fn min_ready_seconds(&self) -> i32 {
        self.spec.template.spec.min_ready_seconds.unwrap_or(0).max(0)
    }

    /// The actor that manages the replicas instead of the `MachinePool`: the annotation's value, unless it is `false` (G2).
    #[must_use]
    pub fn replicas_managed_by(&self) -> Option<&str> {
        self.annotations()
            .get(annotations::REPLICAS_MANAGED_BY)
            .map(String::as_str)
            .filter(|value| *value != "false")
    }

    /// The autoscaler's minimum size, if its annotation is a number (G3).
    #[must_use]
    pub fn autoscaler_min_size(&self) -> Option<i32> {
        self.size_annotation(annotations::AUTOSCALER_MIN_SIZE)
    }

    /// The autoscaler's maximum size, if its annotation is a number (G3).
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
