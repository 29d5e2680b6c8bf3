//! What is refused or warned of at admission where CEL in a definition does not reach: rules over several objects, and
//! warnings. Pure: an object and what was looked up about it in, words for the person out.
//!
//! Nothing here may hold up a deletion (M6), and nothing depends on being asked: the webhook may be away.

mod deletion;
mod disruption;
mod group;

pub use deletion::{warn_of_machine_deletion, warn_of_pool_deletion};
pub use disruption::times_can_be_read;
pub use group::one_pool_per_group;

/// A field that cannot stay as it is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path, for example `spec.group.name`.
    pub field: &'static str,
    /// What is wrong and what to do, without the path.
    pub message: String,
}
