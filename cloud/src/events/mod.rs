//! What AWS tells by itself, through EventBridge and a queue in each region. An event is only ever a hint to look: late,
//! doubled, out of order or lost it changes nothing but the delay. Warnings about single instances are facts as well,
//! since no read tells them.

mod envelope;
mod feed;
mod notices;
mod queue;
#[cfg(test)]
mod tests;

pub(crate) use feed::Feed;
pub use notices::{Notice, NoticeKind};
pub(crate) use notices::{Notices, Ticket};
pub use queue::{Queue, QueueMessage, QueueName};

use chrono::{DateTime, Utc};

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
    /// `EC2 Spot Instance Interruption Warning`: the machine ends in two minutes.
    SpotInterruption,
    /// `EC2 Instance Rebalance Recommendation`: a Spot instance is likelier than others to be interrupted.
    RebalanceRecommendation,
    /// An AWS Health event: AWS will stop or retire the machine.
    ScheduledRetirement,
    /// An AWS Health event: AWS does not, or not any more.
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

    /// What it announces for the instances that it names.
    #[must_use]
    pub fn notice(self) -> Option<NoticeKind> {
        match self {
            Self::SpotInterruption => Some(NoticeKind::SpotInterruption),
            Self::RebalanceRecommendation => Some(NoticeKind::Rebalance),
            Self::ScheduledRetirement => Some(NoticeKind::Retirement),
            Self::RetirementClosed => Some(NoticeKind::AllClear),
            _ => None,
        }
    }
}

/// What became of a message of the queue, for metrics and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventOutcome {
    /// It concerns a pool, which was woken or whose group is read.
    Taken,
    /// It concerns nothing that a pool has.
    NotOurs,
    /// It comes from another account or region.
    Foreign,
    /// It is no event of EventBridge, or lacks what its kind promises.
    Unreadable,
    /// No pool took note of it, however often it came.
    GivenUp,
}

impl EventOutcome {
    /// The bounded label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "Taken",
            Self::NotOurs => "NotOurs",
            Self::Foreign => "Foreign",
            Self::Unreadable => "Unreadable",
            Self::GivenUp => "GivenUp",
        }
    }
}
