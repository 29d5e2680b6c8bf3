//! The launch template version that a group is to launch.

use capasg_cloud::TemplateRef;

/// The version that the group is to be pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// This version.
    Version(TemplateRef),
    /// The version that it is pinned to now: the desired one is unknown, or about to be created.
    Unchanged,
}
