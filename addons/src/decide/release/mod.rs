//! What happens next to the release of one `HelmReleaseProxy` (X4, X5, X7, X8).
//!
//! [`decide`] is a pure function of what is requested, what was observed, what is remembered and the time. After a record, it is
//! decided again; after an operation, everything is observed again. Two records make each step safe to repeat: the ID of the release,
//! which is written to the `HelmReleaseProxy` before the first installation and is a label of the release, and the revision
//! that an operation is to create, which is a label as well.

mod backoff;
mod change;
mod claims;
mod drift;
mod input;
mod next;
mod ownership;
mod report;
mod step;

pub use backoff::Memory;
pub use change::{Change, is_equal, is_exact, is_same_version, options_hash};
pub use claims::claimed_by;
pub use drift::{Drift, DriftFindings, DriftMemory, DriftSettings, Drifted};
pub use input::{Cluster, ClusterDeletion, Desired, Found, Fresh};
pub use next::{decide, decide_operation};
pub use ownership::{Conflict, labels};
pub use step::{Decision, Removal, Step, Wait};

#[cfg(test)]
mod tests;
