//! What prevents the group from being created or changed.

use crate::machine_pool::model::other_tags::OtherTags;

/// A fact that prevents changes until a user acts or time passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// The tags of the group of the pool's name do not identify this pool.
    GroupNotOwned {
        /// How they differ.
        tags: OtherTags,
    },
    /// The group of the pool's name cannot be adopted as it is.
    NotAdoptable {
        /// Why, and what to do.
        why: String,
    },
    /// The group of the pool's name is being adopted.
    Adopting,
    /// The credentials and the group belong to different accounts.
    WrongAccount {
        /// The account of the credentials.
        credentials: String,
        /// The account of the group.
        group: String,
    },
    /// The group does not exist, but its instances still run: the group is not created again.
    GroupAbsentInstancesRun {
        /// The instances that still run.
        instances: Vec<String>,
    },
    /// Instances run that were detached from the group.
    Detached {
        /// Their IDs.
        instances: Vec<String>,
    },
}

impl Blocker {
    /// Whether the pool does not own the group of its name, so that its facts are not reported.
    #[must_use]
    pub fn is_not_owned(&self) -> bool {
        match self {
            Self::GroupNotOwned { .. }
            | Self::NotAdoptable { .. }
            | Self::Adopting
            | Self::WrongAccount { .. } => true,
            Self::GroupAbsentInstancesRun { .. } | Self::Detached { .. } => false,
        }
    }
}
