//! What a report says about who sizes the group.

use crate::machine_pool::model::ReplicaOwner;

impl ReplicaOwner {
    /// Whether a report says that another actor manages replicas; `before` is what this process reported until then.
    #[must_use]
    pub fn is_reported_external(self, handed_back: bool, before: bool) -> bool {
        match self {
            Self::External(_) | Self::Announced => true,
            Self::Awaited => before,
            Self::Returning => !handed_back,
            Self::MachinePool => false,
        }
    }
}
