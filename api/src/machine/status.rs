//! `status` of an `ASGMachine`. Core copies the contract's fields to the Machine (D6).

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions, crd::shapes, pool::InitializationStatus, reasons::termination_pending, values::string_enum,
};

string_enum! {
    /// The types of address that core defines.
    pub enum AddressType {
        /// The host name.
        Hostname = "Hostname",
        /// An address inside the VPC.
        InternalIp = "InternalIP",
        /// An address that is reachable from outside the VPC.
        ExternalIp = "ExternalIP",
        /// A name inside the VPC.
        InternalDns = "InternalDNS",
        /// A name that is reachable from outside the VPC.
        ExternalDns = "ExternalDNS",
    }
}

string_enum! {
    /// The purchase option of an instance.
    pub enum PurchaseOption {
        /// On-Demand.
        OnDemand = "on-demand",
        /// Spot: EC2 may interrupt the instance.
        Spot = "spot",
    }
}

/// The observed state of the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ASGMachineStatus {
    /// Whether the instance is provisioned, as the contract of Cluster API defines it.
    #[serde(default)]
    pub initialization: InitializationStatus,

    /// The metadata.generation that this status was computed for.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub observed_generation: i64,

    /// Addresses of the instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub addresses: Vec<MachineAddress>,

    /// Availability Zone of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,

    /// Whether EC2 may interrupt the instance (Spot). Core Cluster API sets the label cluster.x-k8s.io/interruptible on
    /// its Node.
    #[serde(default)]
    pub interruptible: bool,

    /// Type of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub instance_type: Option<String>,

    /// Purchase option of the instance: `on-demand` or `spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_option: Option<PurchaseOption>,

    /// Time at which EC2 launched the instance, or last started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_time: Option<DateTime<Utc>>,

    /// Launch template version that the instance was launched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub launch_template_version: Option<i64>,

    /// Lifecycle state of the instance in its Auto Scaling group, such as `InService` or `Terminating:Wait`.
    /// `Pending:Wait` and `Pending:Proceed` are reported as `Pending`, `EnteringStandby` as `Standby`, and `Detaching`
    /// as `Detached`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub lifecycle_state: Option<String>,

    /// Health of the instance as its Auto Scaling group reports it: `Healthy` or `Unhealthy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub health_status: Option<String>,

    /// Conditions of the instance. `Ready` summarizes `InstanceReady` and `Deleting`. The others are `UpToDate`,
    /// `TerminationPending` and `Paused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "shapes::conditions")]
    pub conditions: Vec<Condition>,
}

impl ASGMachineStatus {
    /// Whether AWS terminates the instance in an instance refresh. Read back from the condition `TerminationPending`.
    #[must_use]
    pub fn is_replaced_by_refresh(&self) -> bool {
        let pending = conditions::get(&self.conditions, conditions::TERMINATION_PENDING);
        pending.is_some_and(|pending| pending.reason == termination_pending::INSTANCE_REFRESH)
    }
}

/// An address of an instance, in the format of Cluster API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineAddress {
    /// Type of the address: `Hostname`, `InternalIP`, `ExternalIP`, `InternalDNS` or `ExternalDNS`.
    #[serde(rename = "type")]
    pub address_type: AddressType,
    /// The address.
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
}
