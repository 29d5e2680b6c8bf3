//! Decides about rollouts: which instances are outdated, who replaces them, and how far that may go.

pub mod follow;
pub mod instance_refresh;
pub mod outdated;
mod phase;
pub mod progress;
pub mod rolling_update;
mod status;
pub mod stopped;
pub mod surge;
