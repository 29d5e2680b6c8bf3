//! The strategy `InstanceRefresh`: AWS replaces the outdated instances, our hook holds each until its Node is drained,
//! and this module starts, follows and stops the instance refreshes.
//!
//! All state is in AWS, except one fact that AWS does not report: which instance refresh this controller stopped
//! itself. The status reports it before the call is made. The desired state of an instance refresh follows from the
//! configuration that it names, or from its start. If bootstrap data does not rotate, an instance refresh names the
//! desired configuration, and AWS sets the group's own on success, so that a rollback is possible. Bootstrap data that
//! rotate require a launch template that can be updated at any time, which AWS rejects during such an instance refresh:
//! then it uses the group's own configuration.

mod assess;
mod failure;
mod listing;
mod outcome;
mod phase;
mod preferences;
mod refresh;
mod state;

pub use assess::assess;
pub use failure::RefreshFailure;
pub use listing::{may_be_missing, was_reported};
pub(super) use outcome::requested_at;
pub use phase::phase;
pub use refresh::Refresh;
