//! Decides about rollouts: which instances are outdated, whether the controller or AWS replaces them, and how many at
//! once.

pub mod arrivals;
mod candidates;
pub mod follow;
pub mod instance_refresh;
pub mod outdated;
pub mod permission;
pub mod rolling_update;
mod rolling_update_phase;
mod status;
pub mod stopped;
pub mod surge;
pub mod zone_balance;
