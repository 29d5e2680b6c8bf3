//! Calls of Amazon EC2 Auto Scaling, by resource.

pub(crate) mod activities;
pub(crate) mod capacity;
pub(crate) mod groups;
pub(crate) mod hooks;
mod launch;
pub(crate) mod processes;
pub(crate) mod refreshes;
mod reply;
pub(crate) mod tags;
