//! What the status reports about who manages the replicas.

use crate::machine_pool::model::ReplicaOwner;

impl ReplicaOwner {
    /// Whether the status reports that another actor manages the replicas; `before` is what this process reported last.
    #[must_use]
    pub fn is_reported_external(self, handed_back: bool, before: bool) -> bool {
        match self {
            Self::External(_) | Self::ExternalUnreported => true,
            Self::ExternalPending => before,
            Self::MachinePoolPending => !handed_back,
            Self::MachinePool => false,
        }
    }
}
