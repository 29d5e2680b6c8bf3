//! The phases of a deletion.

/// The phase of a deletion, and what it waits for (E5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionPhase {
    /// Machines are drained. With the names of those that remain.
    DrainingMachines(Vec<String>),
    /// The group is being deleted.
    DeletingGroup,
    /// The launch template is being deleted.
    DeletingLaunchTemplate,
    /// Nothing remains: our finalizer can be removed from the pool.
    Done,
}
