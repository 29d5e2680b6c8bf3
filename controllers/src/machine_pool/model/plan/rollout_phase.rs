//! The phases of a rollout, for conditions and `status.rollout`.

use chrono::{DateTime, Utc};

/// What stopped a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// No new instance became available in time.
    ProgressDeadline,
    /// New instances were outdated on arrival.
    OutdatedOnArrival,
    /// An instance refresh did not succeed.
    RefreshFailed,
    /// AWS rolled an instance refresh back.
    RolledBack,
}

/// The phase of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutPhase {
    /// Outdated instances wait until a user deletes their Machines.
    OnDelete,
    /// The desired state changed too recently to be rolled out.
    Settling,
    /// What is to be launched is unknown, or the group does not launch it yet.
    Held,
    /// Instance refreshes were not read, or the view of the group does not show the end of the last one.
    Unread,
    /// As many instances are disrupted as the budget allows, so that no instance refresh is started.
    OutOfBudget,
    /// AWS rejects the desired launch template version: nothing can be rolled out.
    Rejected,
    /// The spec pauses rollouts.
    Paused {
        /// Machines of outdated instances whose drain continues.
        draining: Vec<String>,
    },
    /// No window is open.
    Closed {
        /// As above.
        draining: Vec<String>,
        /// When the next one opens, and the name of its time zone; `None` if none does.
        next: Option<(DateTime<Utc>, &'static str)>,
    },
    /// It does not succeed: a user has to correct something.
    Stopped {
        /// As above.
        draining: Vec<String>,
        /// Why, for users.
        reason: String,
        /// What stopped it.
        cause: StopCause,
    },
    /// Instance refreshes do not support windows with bootstrap data that rotate.
    WindowsUnsupported {
        /// As above.
        draining: Vec<String>,
    },
    /// AWS replaces instances in an instance refresh.
    Refreshing {
        /// Its status in AWS.
        status: String,
        /// Its progress in percent.
        percentage: Option<i32>,
        /// AWS's message.
        message: Option<String>,
        /// Machines whose Nodes are drained.
        draining: Vec<String>,
        /// Why it is cancelled, if it is.
        cancelled_for: Option<&'static str>,
        /// Whether the spec requests a rollback that is not possible.
        no_rollback: bool,
    },
    /// Instances are being replaced.
    Rolling {
        /// Machines of outdated instances whose Nodes are drained.
        draining: Vec<String>,
        /// New instances that are not available yet.
        starting: Vec<String>,
        /// Whether it waits for new instances, launched or not.
        awaits_new: bool,
        /// Whether as many instances are disrupted as the budget allows.
        out_of_budget: bool,
        /// Outdated instances that are not available and are not replaced, if nothing else is in progress and no other
        /// instance can be replaced.
        kept: Vec<String>,
    },
}
