//! `Cluster`: whether it is paused, its infrastructure is provisioned and its control plane is initialized.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ContractReference;
use crate::{conditions, time::from_kubernetes};

/// The API group of the AWS provider.
const AWS_PROVIDER: &str = "infrastructure.cluster.x-k8s.io";
/// The API group of the control planes of the AWS provider.
const AWS_CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
/// Core's condition on a Cluster: `True` from the first time that its control plane accepted requests.
const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";

/// The fields that are read of a Cluster's spec.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Cluster",
    plural = "clusters",
    namespaced,
    status = "ClusterStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Whether the Cluster and all its objects are paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The object that represents the Cluster's infrastructure; absent if there is none to wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ContractReference>,
    /// The object that represents the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_ref: Option<ContractReference>,
}

/// The fields that are read of a Cluster's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// The steps of the initialization.
    pub initialization: ClusterInitialization,
    /// The Cluster's conditions.
    pub conditions: Vec<Condition>,
}

/// The steps of the initialization of a Cluster; none is ever reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInitialization {
    /// The infrastructure is provisioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infrastructure_provisioned: Option<bool>,
    /// The control plane accepts requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_initialized: Option<bool>,
}

impl Cluster {
    /// Whether `spec.paused` is set.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.spec.paused == Some(true)
    }

    /// Whether pools may be created: the infrastructure is provisioned, or there is none to wait for (C3).
    #[must_use]
    pub fn is_infrastructure_ready(&self) -> bool {
        let provisioned = self.initialization().infrastructure_provisioned == Some(true);
        provisioned || !self.spec.infrastructure_ref.as_ref().is_some_and(ContractReference::is_set)
    }

    /// Whether the control plane has accepted requests once.
    #[must_use]
    pub fn is_control_plane_initialized(&self) -> bool {
        self.initialization().control_plane_initialized == Some(true)
    }

    /// When the control plane accepted requests for the first time; `None` if core does not report it.
    #[must_use]
    pub fn control_plane_initialized_at(&self) -> Option<DateTime<Utc>> {
        let conditions = &self.status.as_ref()?.conditions;
        let condition = conditions::get(conditions, CONTROL_PLANE_INITIALIZED)?;
        (condition.status == "True").then(|| from_kubernetes(&condition.last_transition_time))
    }

    /// The `AWSCluster` of the AWS provider, if that represents the Cluster's infrastructure.
    #[must_use]
    pub fn aws_cluster(&self) -> Option<&ContractReference> {
        let reference = self.spec.infrastructure_ref.as_ref().filter(|reference| reference.is_set())?;
        (reference.api_group == AWS_PROVIDER && reference.kind == "AWSCluster").then_some(reference)
    }

    /// The object of the AWS provider whose `spec.identityRef` names the credentials of the Cluster: its `AWSCluster`, or the
    /// `AWSManagedControlPlane` of an EKS cluster.
    #[must_use]
    pub fn aws_identity_holder(&self) -> Option<&ContractReference> {
        let control_plane = || {
            let reference = self.spec.control_plane_ref.as_ref().filter(|reference| reference.is_set())?;
            (reference.api_group == AWS_CONTROL_PLANE && reference.kind == "AWSManagedControlPlane")
                .then_some(reference)
        };
        self.aws_cluster().or_else(control_plane)
    }

    /// Whether the Cluster is being deleted; core then skips drains (E6).
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn initialization(&self) -> ClusterInitialization {
        self.status.as_ref().map(|status| status.initialization).unwrap_or_default()
    }
}

/// The ID of the VPC that the spec of an `AWSCluster` names; the AWS provider writes it once it has created the VPC.
#[must_use]
pub fn vpc_of_aws_cluster(spec: &Value) -> Option<String> {
    text_at(spec, "/network/vpc/id")
}

/// The region that the spec of an `AWSCluster` names; the AWS provider takes its own if there is none.
#[must_use]
pub fn region_of_aws_cluster(spec: &Value) -> Option<String> {
    text_at(spec, "/region")
}

fn text_at(spec: &Value, pointer: &str) -> Option<String> {
    let text = spec.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}
