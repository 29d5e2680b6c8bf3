//! The launch template version that a group is to launch.

use capasg_cloud::TemplateRef;

/// The version that the group is to be pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// This version.
    Version(TemplateRef),
    /// This version has the previous content with the current bootstrap data, since AWS rejects the content of the spec; `None`
    /// until it exists.
    Previous(Option<TemplateRef>),
    /// The version that it is pinned to now: the desired one is unknown, or about to be created.
    Unchanged,
}
