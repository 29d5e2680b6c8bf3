//! What is reported of one instance; core copies the contract's part to the Machine (D6).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions, crd::shapes, pool::InitializationStatus, reasons::termination_pending, values::string_enum,
};

string_enum! {
    /// Kinds of address that core knows.
    pub enum AddressType {
        /// The machine's host name.
        Hostname = "Hostname",
        /// An address inside the VPC.
        InternalIp = "InternalIP",
        /// An address reachable from outside.
        ExternalIp = "ExternalIP",
        /// A name inside the VPC.
        InternalDns = "InternalDNS",
        /// A name reachable from outside.
        ExternalDns = "ExternalDNS",
    }
}

string_enum! {
    /// How an instance is paid for.
    pub enum PurchaseOption {
        /// On-Demand.
        OnDemand = "on-demand",
        /// Spot: AWS may take it back.
        Spot = "spot",
    }
}

/// What was observed of one instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ASGMachineStatus {
    /// Whether the instance runs, as the contract names it.
    #[serde(default)]
    pub initialization: InitializationStatus,

    /// The metadata.generation that this status was computed for.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub observed_generation: i64,

    /// The instance's addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub addresses: Vec<MachineAddress>,

    /// The availability zone that the instance is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,

    /// Whether AWS may take the instance back (Spot). Core Cluster API labels the Node with it.
    #[serde(default)]
    pub interruptible: bool,

    /// The instance's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub instance_type: Option<String>,

    /// How the instance is paid for: `on-demand` or `spot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_option: Option<PurchaseOption>,

    /// The launch template version that the instance was launched from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub launch_template_version: Option<i64>,

    /// The instance's state in its Auto Scaling group, in AWS's words, such as `InService` or Terminating:Wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub lifecycle_state: Option<String>,

    /// The instance's health as its Auto Scaling group sees it: Healthy or Unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub health_status: Option<String>,

    /// What holds of the instance: Ready sums `InstanceReady` and Deleting; beside them `UpToDate`, `TerminationPending` and
    /// Paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "shapes::conditions")]
    pub conditions: Vec<Condition>,
}

impl ASGMachineStatus {
    /// Whether AWS ends the instance by an instance refresh.
    #[must_use]
    pub fn is_refreshed(&self) -> bool {
        let ends = conditions::get(&self.conditions, conditions::TERMINATION_PENDING);
        ends.is_some_and(|ends| ends.reason == termination_pending::INSTANCE_REFRESH)
    }
}

/// One address of an instance, as core spells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineAddress {
    /// What kind of address: Hostname, `InternalIP`, `ExternalIP`, `InternalDNS` or `ExternalDNS`.
    #[serde(rename = "type")]
    pub address_type: AddressType,
    /// The address.
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
}
