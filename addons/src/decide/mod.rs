//! What follows from the kinds, as pure functions: no IO, no clock, no client.

mod archive;
mod constraint;
mod deletion_policy;
mod depends_on;
mod fan_out;
mod kubernetes;
mod local_reference;
mod phases;
pub mod release;
mod release_spec;
mod values_from;
mod versions;
mod waves;

pub use archive::{ArchivedChart, Chart, archive_digest, archive_reference};
pub use deletion_policy::is_orphaned;
pub use depends_on::{dependencies, installed_first, is_ready, not_ready, selects, uninstalled_first};
pub use fan_out::{Deletion, FanOut, Selected, Step, Values, fan_out};
pub use kubernetes::Kubernetes;
pub use local_reference::{LocalKind, LocalReference};
pub use phases::{asks_for, phases};
pub use values_from::{ValuesSource, merge, values_from};
pub use waves::is_changing;
