//! Decides about rollouts: which instances are outdated, whether the controller or AWS replaces them, and how many at
//! once.

pub mod arrivals;
pub mod follow;
pub mod instance_refresh;
pub mod outdated;
mod phase;
pub mod progress;
pub mod rolling_update;
mod status;
pub mod stopped;
pub mod surge;
