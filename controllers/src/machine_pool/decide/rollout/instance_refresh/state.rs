//! Where AWS's replacement of instances stands.

use capasg_api::pool::Opening;
use chrono::TimeDelta;

use crate::machine_pool::decide::rollout::instance_refresh::failure::RefreshFailure;

/// Where AWS's replacement of instances stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is for AWS to replace.
    Idle,
    /// A refresh is under way that is for the desired state, or none of our business.
    Active,
    /// One is under way that is to replace nothing more.
    ToStop(StopReason),
    /// One is under way for another desired state, and the group's own configuration is desired again.
    RollBack,
    /// What there is was not read, or a view does not show the end of the last refresh yet.
    Unread,
    Paused,
    Closed(Opening),
    Settling(TimeDelta),
    Held,
    Rejected,
    OutOfBudget,
    /// One was just requested, and a listing may not show it yet.
    Requested,
    /// The last refresh for the desired state did not succeed; that was reported.
    Stopped(Option<RefreshFailure>),
    /// It did not succeed, and that is new.
    Failed(RefreshFailure),
    Start,
}

/// Why a refresh is to replace nothing more.
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
