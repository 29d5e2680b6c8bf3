//! Observe: gathers the facts about one pool from the caches, the inventory and, where a decision needs it, live reads.
//! It changes nothing.

mod bootstrap;
mod ends;
mod gather;
mod members;
mod notices;
mod references;
mod scene;
mod wanted;

pub use bootstrap::{Bootstrap, BootstrapDigest, BootstrapProblem};
pub use ends::{EndCause, causes, shown as shown_cause};
pub use gather::{cached_machines, machines, observe, pinned_image, template, was_read};
pub use members::{Machines, join};
pub use references::{NamedImage, References, ResolvedImage, image_source, named_before};
pub use scene::Scene;
pub use wanted::Wanted;
