//! Events that AWS sends through EventBridge and a queue in each region. An event is only a hint to read: late, duplicated,
//! out of order or lost, it changes nothing but the delay. Notices for single instances are facts as well, since no read
//! shows them.

mod envelope;
mod notice;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};

pub use notice::{Notice, NoticeKind};

/// One event, as far as it concerns pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudEvent {
    /// The account that it comes from, 12 digits.
    pub account: String,
    /// The region that it comes from.
    pub region: String,
    /// When it happened, by AWS's clock.
    pub at: DateTime<Utc>,
    /// What happened.
    pub kind: EventKind,
    /// The Auto Scaling group that it names.
    pub group: Option<String>,
    /// The instances that it names.
    pub instances: Vec<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// `EC2 Instance Launch Successful`.
    Launched,
    /// `EC2 Instance Launch Unsuccessful`.
    LaunchFailed,
    /// `EC2 Instance Terminate Successful`.
    Terminated,
    /// `EC2 Instance Terminate Unsuccessful`.
    TerminationFailed,
    /// `EC2 Instance-launch Lifecycle Action`, `EC2 Instance-terminate Lifecycle Action`.
    LifecycleAction,
    /// `EC2 Auto Scaling Instance Refresh ...`.
    InstanceRefresh,
    /// Anything else of a group.
    Group,
    /// `EC2 Instance State-change Notification`.
    StateChange,
    /// `EC2 Spot Instance Interruption Warning`: EC2 terminates the instance in two minutes.
    SpotInterruption,
    /// `EC2 Instance Rebalance Recommendation`: a Spot instance is at an elevated risk of interruption.
    RebalanceRecommendation,
    /// An AWS Health event: AWS will stop or retire the instance.
    ScheduledRetirement,
    /// An AWS Health event: AWS no longer retires the instance.
    RetirementClosed,
    /// Anything else of AWS Health.
    Health,
    /// A kind that this version does not know.
    Unknown,
}

impl EventKind {
    /// The bounded label of metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launched => "Launched",
            Self::LaunchFailed => "LaunchFailed",
            Self::Terminated => "Terminated",
            Self::TerminationFailed => "TerminationFailed",
            Self::LifecycleAction => "LifecycleAction",
            Self::InstanceRefresh => "InstanceRefresh",
            Self::Group => "Group",
            Self::StateChange => "StateChange",
            Self::SpotInterruption => "SpotInterruption",
            Self::RebalanceRecommendation => "RebalanceRecommendation",
            Self::ScheduledRetirement => "ScheduledRetirement",
            Self::RetirementClosed => "RetirementClosed",
            Self::Health => "Health",
            Self::Unknown => "Unknown",
        }
    }

    /// The notice that it gives for the instances that it names.
    #[must_use]
    pub fn notice_kind(self) -> Option<NoticeKind> {
        match self {
            Self::SpotInterruption => Some(NoticeKind::SpotInterruption),
            Self::RebalanceRecommendation => Some(NoticeKind::RebalanceRecommendation),
            Self::ScheduledRetirement => Some(NoticeKind::ScheduledRetirement),
            Self::RetirementClosed => Some(NoticeKind::RetirementClosed),
            _ => None,
        }
    }
}

/// What became of a message of the queue, for metrics and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventOutcome {
    /// It concerns a pool: the pool was woken, or its group is read.
    Processed,
    /// It concerns nothing that a pool has.
    NotManaged,
    /// It comes from another account or region.
    OtherSource,
    /// It is not an EventBridge event, or misses what its kind promises.
    Unreadable,
    /// No pool acknowledged it, however often it was delivered.
    Discarded,
    /// A defect of ours: processing it panicked.
    Panicked,
}

impl EventOutcome {
    /// The bounded label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processed => "Processed",
            Self::NotManaged => "NotManaged",
            Self::OtherSource => "OtherAccountOrRegion",
            Self::Unreadable => "Unreadable",
            Self::Discarded => "Discarded",
            Self::Panicked => "Panicked",
        }
    }
}
