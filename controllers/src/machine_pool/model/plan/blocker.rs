//! What prevents the group or the launch template from being made or changed.

/// Something that only a person or time can clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// The group of our name belongs to somebody else.
    ForeignGroup {
        /// The owner id found, if any.
        found: Option<String>,
    },
    /// The group of our name is not ours, and cannot become ours as it is.
    NotAdoptable {
        /// Why, and what to do.
        why: String,
    },
    /// The group of our name is about to become ours.
    Adopting,
    /// The launch template of our name belongs to somebody else.
    ForeignTemplate {
        /// The owner id found, if any.
        found: Option<String>,
    },
    /// The credentials belong to another account than the group.
    WrongAccount {
        /// The account of the credentials.
        credentials: String,
        /// The account of the group.
        group: String,
    },
    /// The group is gone but its instances still run: nothing is re-created on such a view.
    GroupGoneInstancesRun {
        /// The instances that still run.
        instances: Vec<String>,
    },
    /// Instances run that left the group without ending.
    Detached {
        /// Their ids.
        instances: Vec<String>,
    },
}

impl Blocker {
    /// Whether what stands under our name is not ours, so that nothing of it may be reported as ours.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        match self {
            Self::ForeignGroup { .. }
            | Self::NotAdoptable { .. }
            | Self::Adopting
            | Self::ForeignTemplate { .. }
            | Self::WrongAccount { .. } => true,
            Self::GroupGoneInstancesRun { .. } | Self::Detached { .. } => false,
        }
    }
}
