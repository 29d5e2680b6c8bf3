//! Observe: gathers the facts about one pool from the caches, the inventory and, where a decision needs it, live reads.
//! It changes nothing.

mod bootstrap;
mod members;
mod references;
mod scene;

pub use bootstrap::{Bootstrap, BootstrapDigest, BootstrapProblem};
pub use members::{Machines, join};
pub use references::{References, image_source};
pub use scene::Scene;
