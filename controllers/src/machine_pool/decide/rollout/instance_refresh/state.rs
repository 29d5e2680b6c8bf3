//! The state of the replacement of instances by AWS.

use capasg_api::pool::Opening;
use chrono::TimeDelta;

use crate::machine_pool::decide::rollout::instance_refresh::failure::RefreshFailure;

/// The state of the replacement of instances by AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// AWS has nothing to replace.
    Idle,
    /// An instance refresh is in progress that is for the desired state, or that does not concern the pool.
    Active,
    /// One is in progress that is to be cancelled.
    ToStop(StopReason),
    /// One is in progress for another desired state, and the group's own configuration is desired again.
    RollBack,
    /// Instance refreshes were not read, or the view of the group does not show the end of the last one yet.
    Unread,
    Paused,
    Closed(Opening),
    Settling(TimeDelta),
    Held,
    Rejected,
    /// The pool has windows, and bootstrap data that rotates: each refresh would first replace the instances that the
    /// previous window replaced.
    WindowsUnsupported,
    OutOfBudget,
    /// One was just requested, and a listing may not show it yet.
    Requested,
    /// The last refresh for the desired state failed, and the failure is recorded.
    Stopped(Option<RefreshFailure>),
    /// The last refresh for the desired state failed, and the failure is not recorded yet.
    Failed(RefreshFailure),
    Start,
}

/// Why an instance refresh is to be cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StopReason {
    /// It is for another desired state.
    Obsolete,
    /// It replaces more at once than the budget allows by now.
    Budget,
    /// The spec pauses rollouts.
    Paused,
    /// No window is open any more.
    Closed(Opening),
}
