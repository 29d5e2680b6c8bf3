//! `status.replicasManagedBy` and `status.desiredReplicas`: who manages the replicas. Pure.

use capasg_api::{ASGMachinePoolStatus, capi::MachinePool};

use crate::machine_pool::model::{Desired, ReplicaOwner};

/// `status.replicasManagedBy` and `status.desiredReplicas`.
///
/// The number changes only when MachinePool and group agree, and the name stays until the MachinePool manages the
/// replicas again (`handed_back`): together they show whether a user edited the replicas during the hand-over.
pub fn replica_owner(
    status: &mut ASGMachinePoolStatus,
    owner: &MachinePool,
    desired: Option<&Desired>,
    handed_back: bool,
) {
    let agreed = |desired: &Desired| desired.replicas == owner.replicas();
    match desired.map(|desired| (&desired.owner, desired)) {
        // Unknown: it stays as it was.
        None if owner.replicas_managed_by().is_some() || status.replicas_managed_by.is_some() => {}
        Some((ReplicaOwner::External(_) | ReplicaOwner::ExternalUnreported, desired)) => {
            status.replicas_managed_by = owner.replicas_managed_by().map(name_of);
            if agreed(desired) {
                status.desired_replicas = desired.replicas;
            }
        }
        // A view that equals the replicas may be older than the last change of desired capacity.
        Some((ReplicaOwner::MachinePoolPending, _)) if !handed_back => {}
        // The cached status may still name an actor whose hand-over is complete.
        _ => {
            status.replicas_managed_by = None;
            status.desired_replicas = owner.replicas();
        }
    }
}

/// The annotation's value, truncated to the length that the status allows; an empty one counts as well.
fn name_of(by: &str) -> String {
    if by.is_empty() { "true".to_owned() } else { by.chars().take(256).collect() }
}
