//! Where a deletion stands.

/// Where a deletion stands, and what it waits for (E5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionPhase {
    /// Machines are being drained; the names still there.
    DrainingMachines(Vec<String>),
    /// The group is being deleted.
    DeletingGroup,
    /// The launch template is being deleted.
    DeletingLaunchTemplate,
    /// Nothing is left: the pool can be released.
    Done,
}
