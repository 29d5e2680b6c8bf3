//! How the tags that identify the pool of a resource differ from those of a pool.

use capasg_api::names::tags::{IDENTITY, OWNER_ID};

/// The tags that identify the pool of a resource, as far as they are not those of this pool. Values are not kept, so that
/// no user reads the owner ID, the namespace or the name of another user's pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherTags {
    /// Keys that the resource does not have.
    pub missing: Vec<&'static str>,
    /// Keys with the value of another pool.
    pub different: Vec<&'static str>,
}

impl OtherTags {
    /// Whether nothing says that a pool owns the resource.
    #[must_use]
    pub fn is_untagged(&self) -> bool {
        self.missing.len() == IDENTITY.len()
    }

    /// Whether the resource has the owner ID of this pool and names no other pool: another actor removed tags.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.different.is_empty() && !self.missing.contains(&OWNER_ID)
    }
}
