//! The launch template version that a group is to launch.

use capasg_cloud::TemplateRef;

/// What the group is to be pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// This version.
    Version(TemplateRef),
    /// Whatever it is pinned to now: what is desired is not known, or its version is about to be created.
    Unchanged,
}
