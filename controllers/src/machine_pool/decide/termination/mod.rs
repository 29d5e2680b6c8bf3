//! Decides about terminations: those that this controller requests, those that AWS starts, and the lifecycle actions of
//! our hook.

pub mod in_flight;
pub mod lifecycle_actions;
pub mod requests;
pub mod spot_interruptions;
