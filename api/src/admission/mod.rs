//! Admission rules that CEL in a CRD cannot express: rules over several objects, and warnings. Pure functions from an object
//! and related objects to messages for the user.
//!
//! No rule may reject a deletion (M6), and nothing depends on a rule: the webhook may be unavailable.

mod access;
mod deletion;
mod disruption;
mod group;

use std::borrow::Cow;

pub use access::{is_access_validated, new_identity, validate_access};
pub use deletion::{machine_deletion_warning, pool_deletion_warning};
pub use disruption::validate_times;
pub use group::validate_group_name;

/// A field that is invalid, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path, for example `spec.group.name`.
    pub field: Cow<'static, str>,
    /// What is invalid and what to do, without the path.
    pub message: String,
}
