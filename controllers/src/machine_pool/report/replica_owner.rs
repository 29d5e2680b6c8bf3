//! `status.replicasManagedBy` and `status.desiredReplicas`: who sizes the group. Pure.

use capasg_api::{ASGMachinePoolStatus, capi::MachinePool};

use crate::machine_pool::model::{Desired, ReplicaOwner};

/// `status.replicasManagedBy` and `status.desiredReplicas`.
///
/// The number changes only when MachinePool and group agree, and the name stays until the group is `handed_back`: together
/// they show at a hand-over whether a user edited replicas meanwhile.
pub fn replica_owner(
    status: &mut ASGMachinePoolStatus,
    owner: &MachinePool,
    desired: Option<&Desired>,
    handed_back: bool,
) {
    let agreed = |desired: &Desired| desired.replicas == owner.replicas();
    match desired.map(|desired| (&desired.owner, desired)) {
        // Nothing is known now: it stays as it was.
        None if owner.replicas_managed_by().is_some() || status.replicas_managed_by.is_some() => {}
        Some((ReplicaOwner::External(_) | ReplicaOwner::ExternalUnreported, desired)) => {
            status.replicas_managed_by = owner.replicas_managed_by().map(name_of);
            if agreed(desired) {
                status.desired_replicas = desired.replicas;
            }
        }
        Some((ReplicaOwner::ExternalPending, _)) => status.desired_replicas = owner.replicas(),
        // A view that equals replicas may be from before the last number that somebody set.
        Some((ReplicaOwner::MachinePoolPending, _)) if !handed_back => {}
        _ => {
            status.replicas_managed_by = None;
            status.desired_replicas = owner.replicas();
        }
    }
}

/// The annotation's value, as far as status has room for it; an empty one counts as well.
fn name_of(by: &str) -> String {
    if by.is_empty() { "true".to_owned() } else { by.chars().take(256).collect() }
}
