//! Instances, as their group lists them and as EC2 describes them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

/// An instance as its group lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// `InstanceId`.
    pub id: String,
    /// `InstanceType`.
    pub instance_type: Option<String>,
    /// `AvailabilityZone`.
    pub zone: String,
    /// `LifecycleState`.
    pub lifecycle: LifecycleState,
    /// `HealthStatus`.
    pub health: HealthStatus,
    /// Id and version of the launch template that it was launched from.
    pub template: Option<(String, i64)>,
    /// `ProtectedFromScaleIn`.
    pub protected: bool,
}

/// `HealthStatus` of an instance in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthStatus {
    /// Healthy.
    Healthy,
    /// Unhealthy: the group replaces it.
    Unhealthy,
}

/// `LifecycleState` of an instance in its group. Unknown values are kept, since AWS adds states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifecycleState {
    /// `Pending`, `Pending:Wait`, `Pending:Proceed`: counted in desired, not yet in service.
    Pending,
    /// `InService`.
    InService,
    /// `Terminating`: before a hook holds it.
    Terminating,
    /// `Terminating:Wait`: held by a hook.
    TerminatingWait,
    /// `Terminating:Proceed`: the hook is done.
    TerminatingProceed,
    /// `Terminated`.
    Terminated,
    /// `EnteringStandby`, `Standby`: listed, not counted in desired.
    Standby,
    /// `Detaching`, `Detached`: leaves the group, keeps running.
    Detached,
    /// `Terminating:Retained`: its termination was abandoned, and the group keeps it: it runs, is replaced, and is
    /// terminated by a call alone.
    Retained,
    /// Any other state (`Warmed:*`, `Quarantined`, ...).
    Other(String),
}

impl LifecycleState {
    /// Reads AWS's value.
    #[must_use]
    pub fn parse(value: &str) -> Self {
        match value {
            "Pending" | "Pending:Wait" | "Pending:Proceed" => Self::Pending,
            "InService" => Self::InService,
            "Terminating" => Self::Terminating,
            "Terminating:Wait" => Self::TerminatingWait,
            "Terminating:Proceed" => Self::TerminatingProceed,
            "Terminated" => Self::Terminated,
            "Terminating:Retained" => Self::Retained,
            "EnteringStandby" | "Standby" => Self::Standby,
            "Detaching" | "Detached" => Self::Detached,
            other => Self::Other(other.to_owned()),
        }
    }

    /// AWS's value (the plain form of the pending, standby and detached families).
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "Pending",
            Self::InService => "InService",
            Self::Terminating => "Terminating",
            Self::TerminatingWait => "Terminating:Wait",
            Self::TerminatingProceed => "Terminating:Proceed",
            Self::Terminated => "Terminated",
            Self::Retained => "Terminating:Retained",
            Self::Standby => "Standby",
            Self::Detached => "Detached",
            Self::Other(value) => value,
        }
    }

    /// Counted in desired capacity: in service or about to be.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Pending | Self::InService)
    }

    /// Terminating: no longer counted in desired capacity, cannot return.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        matches!(
            self,
            Self::Terminating | Self::TerminatingWait | Self::TerminatingProceed | Self::Terminated
        )
    }
}

/// An instance as `DescribeInstances` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFacts {
    /// `InstanceId`.
    pub id: String,
    /// `State.Name`.
    pub state: InstanceState,
    /// `PrivateIpAddress`.
    pub private_ip: Option<String>,
    /// The IPv6 addresses of its network interfaces (`Ipv6Address`, `NetworkInterfaces.Ipv6Addresses`).
    pub ipv6: BTreeSet<String>,
    /// `PrivateDnsName`.
    pub private_dns: Option<String>,
    /// `PublicIpAddress`.
    pub public_ip: Option<String>,
    /// `PublicDnsName`.
    pub public_dns: Option<String>,
    /// How it is paid for (`InstanceLifecycle`).
    pub purchase: PurchaseOption,
    /// `LaunchTime`.
    pub launched_at: Option<DateTime<Utc>>,
    /// Tags by key.
    pub tags: BTreeMap<String, String>,
}

/// State of an EC2 instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    /// `pending`.
    Pending,
    /// `running`.
    Running,
    /// `shutting-down` or `terminated`: it cannot run again.
    Terminated,
    /// `stopping` or `stopped`.
    Stopped,
}

/// How an instance is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurchaseOption {
    /// On demand.
    OnDemand,
    /// Spot.
    Spot,
    /// A capacity block or another scheduled kind.
    Scheduled,
}
