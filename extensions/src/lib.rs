//! The Runtime Extension: what core Cluster API calls at points of a Cluster's lifecycle, and what is answered.
//!
//! * [`protocol`]: the hooks, their requests and responses.
//! * [`settings`]: the settings, typed.
//! * [`Extension`]: finds and calls the handler of a hook, whatever happens in it.
//! * [`gates`]: what the lifecycle hooks wait for.
//! * [`lookups`]: what gates ask AWS.
//! * [`why`]: what was answered to the hooks of one Cluster, for users.
//! * [`ports`]: what is needed of the outside; [`client`] implements it with the Kubernetes API.
//!
//! Add a hook: a variant of [`protocol::Hook`], its types in [`protocol`], and a file with its handler in `hooks`.

pub mod blocks;
pub mod client;
pub mod gates;
pub mod lookups;
pub mod names;
pub mod ports;
pub mod protocol;
pub mod settings;
pub mod why;

mod call;
mod claims;
mod extension;
mod handler;
mod hooks;
mod topology;
mod upgrade_plan;
mod version;

#[cfg(test)]
mod testing;

pub use call::{Call, Limits, Services};
pub use extension::{DEFAULT_BUDGET, Extension, LONGEST_BUDGET, Reply};
pub use handler::Handler;
pub use version::{InvalidVersion, Version};
