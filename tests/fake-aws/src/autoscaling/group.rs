//! A group and what it knows of its instances.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{activity::Activity, hook::Hook, refresh::Refresh, source::LaunchSource};
use crate::Tree;

/// Why a member is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// A health check, or somebody, found it unhealthy.
    Unhealthy,
    /// EC2 recommends it.
    AtRisk,
}

/// An Auto Scaling group.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) arn: String,
    pub(crate) created: DateTime<Utc>,
    pub(crate) source: LaunchSource,
    pub(crate) min: i64,
    pub(crate) max: i64,
    pub(crate) desired: i64,
    pub(crate) subnets: Vec<String>,
    /// Members that are kept and echoed, by name; see [`super::attributes`].
    pub(crate) attributes: BTreeMap<String, Tree>,
    pub(crate) tags: BTreeMap<String, GroupTag>,
    /// Suspended processes with the reason.
    pub(crate) suspended: BTreeMap<String, String>,
    pub(crate) hooks: BTreeMap<String, Hook>,
    pub(crate) members: BTreeSet<String>,
    /// By sequence number; the newest is last.
    pub(crate) activities: BTreeMap<u64, Activity>,
    /// The newest is last.
    pub(crate) refreshes: Vec<Refresh>,
    pub(crate) status: Option<String>,
    /// Launches that failed since the last that did not.
    pub(crate) failures: u32,
    /// When the first launch failed since the last that did not.
    pub(crate) failing_since: Option<DateTime<Utc>>,
    pub(crate) launch_after: DateTime<Utc>,
    /// When the cooldown began.
    pub(crate) scaled: Option<DateTime<Utc>>,
    /// The launch by which zones are being balanced; until it serves nobody ends for it.
    pub(crate) rebalancing: Option<String>,
    /// Members that go once what was launched in their place serves.
    pub(crate) replacing: BTreeMap<String, Why>,
    /// When the zones will be looked at.
    pub(crate) rebalance_at: Option<DateTime<Utc>>,
    /// The desired capacity that protection was last reported to prevent.
    pub(crate) blocked_at: Option<i64>,
}

/// A tag of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupTag {
    pub(crate) value: String,
    pub(crate) propagate: bool,
}

impl Group {
    pub(crate) fn deleting(&self) -> bool {
        self.status.is_some()
    }

    pub(crate) fn is_suspended(&self, process: &str) -> bool {
        self.suspended.contains_key(process)
    }

    /// A numeric attribute.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.attributes.get(name).and_then(Tree::text).and_then(|text| text.parse().ok())
    }

    /// A boolean attribute.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.attributes.get(name).and_then(Tree::text) == Some("true")
    }
}

/// Where an instance is in its life, as its group sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    Pending,
    PendingWait,
    PendingProceed,
    InService,
    Terminating,
    TerminatingWait,
    TerminatingProceed,
    EnteringStandby,
    Standby,
    Detaching,
}

impl Lifecycle {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::PendingWait => "Pending:Wait",
            Self::PendingProceed => "Pending:Proceed",
            Self::InService => "InService",
            Self::Terminating => "Terminating",
            Self::TerminatingWait => "Terminating:Wait",
            Self::TerminatingProceed => "Terminating:Proceed",
            Self::EnteringStandby => "EnteringStandby",
            Self::Standby => "Standby",
            Self::Detaching => "Detaching",
        }
    }

    /// Counts toward desired capacity.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Pending | Self::PendingWait | Self::PendingProceed | Self::InService)
    }

    /// On its way out by an end.
    pub(crate) fn ending(self) -> bool {
        matches!(self, Self::Terminating | Self::TerminatingWait | Self::TerminatingProceed)
    }
}

/// A version of a launch template that an instance was launched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateVersion {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) number: u64,
}

/// What a group knows of an instance.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    pub(crate) group: String,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) healthy: bool,
    pub(crate) protected: bool,
    /// `None`: it was attached.
    pub(crate) template: Option<TemplateVersion>,
    pub(crate) in_service: Option<DateTime<Utc>>,
    /// Open lifecycle actions.
    pub(crate) actions: Vec<Action>,
    /// The running activity, by sequence number.
    pub(crate) activity: Option<u64>,
    /// Why it ends.
    pub(crate) cause: Option<String>,
    /// Since when hooks hold its end, and which.
    pub(crate) held: Option<(DateTime<Utc>, Vec<String>)>,
    /// A hook let it go because its time had passed.
    pub(crate) timed_out: bool,
}

/// An open lifecycle action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) hook: String,
    pub(crate) token: String,
    pub(crate) deadline: DateTime<Utc>,
    /// The end that no heartbeat can move.
    pub(crate) latest: DateTime<Utc>,
}
