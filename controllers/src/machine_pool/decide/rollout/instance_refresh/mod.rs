//! The strategy `InstanceRefresh`: AWS replaces the outdated instances, our hook holds each until its Node is drained, and
//! this starts, follows and stops the refreshes.
//!
//! All of its state is AWS's own, but for one fact that AWS does not report: which refresh we stopped ourselves. The status
//! says so before the call is made. Which refresh is for which desired state follows from the configuration that it names,
//! or from when it started. With bootstrap data that stay as they are, a refresh names the desired configuration, and the
//! group's own is left alone until AWS takes it over on success; so there is a rollback. Data that rotate need a template
//! that can be updated at any time, which AWS rejects alongside such a refresh: then the group's own configuration is
//! refreshed.

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
pub use phase::phase;
pub use refresh::Refresh;
