//! Where a rollout stands, for conditions and `status.rollout`.

use chrono::{DateTime, Utc};

/// Where a rollout stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RolloutPhase {
    /// Outdated instances wait until a user deletes their Machines.
    OnDelete,
    /// The desired state is too new to be rolled out.
    Settling,
    /// What is to be launched is not known or not there yet.
    Held,
    /// AWS has no version of what is desired: nothing can be rolled out.
    Rejected,
    /// The spec pauses rollouts.
    Paused {
        /// Machines of outdated instances that are drained all the same.
        draining: Vec<String>,
    },
    /// No window is open.
    Closed {
        /// As above.
        draining: Vec<String>,
        /// When the next one opens, and the name of its time zone; `None` if none does.
        next: Option<(DateTime<Utc>, &'static str)>,
    },
    /// New instances did not become available in time, or an instance refresh did not succeed.
    Stopped {
        /// As above.
        draining: Vec<String>,
        /// Why, for users.
        reason: String,
        /// Whether AWS took back what an instance refresh had replaced.
        rolled_back: bool,
    },
    /// AWS replaces instances in an instance refresh.
    Refreshing {
        /// As AWS calls it.
        status: String,
        /// How far it is, in percent.
        percentage: Option<i32>,
        /// What AWS says of it.
        message: Option<String>,
        /// Machines of instances that are drained.
        draining: Vec<String>,
        /// Why it is cancelled, if it is.
        cancelled_for: Option<&'static str>,
        /// Whether the spec requests a rollback that is not possible.
        no_rollback: bool,
    },
    /// Instances are being replaced.
    Rolling {
        /// Machines of outdated instances that are drained.
        draining: Vec<String>,
        /// New instances that do not work yet.
        starting: Vec<String>,
        /// Whether it waits for new instances, launched or not.
        awaits_new: bool,
        /// Whether as many instances are disrupted as the budget allows.
        out_of_budget: bool,
    },
}
