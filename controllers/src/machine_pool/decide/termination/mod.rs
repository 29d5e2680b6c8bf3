//! Decides about terminations: our own exact ones, those that AWS starts, and the completion of what our hook holds.

pub mod in_flight;
pub mod interruptions;
pub mod lifecycle_actions;
pub mod requests;
