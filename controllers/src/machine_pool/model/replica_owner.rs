//! What the status reports about who manages the replicas.

use crate::machine_pool::model::ReplicaOwner;

impl ReplicaOwner {
    /// Whether the status reports that another actor manages the replicas.
    #[must_use]
    pub fn is_reported_external(self, handed_back: bool) -> bool {
        match self {
            Self::External(_) | Self::ExternalUnreported => true,
            Self::MachinePoolPending => !handed_back,
            Self::ExternalPending | Self::MachinePool => false,
        }
    }
}
