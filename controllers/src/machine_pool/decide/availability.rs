//! Whether an instance is available, and whether its termination disrupts anything.

use capasg_cloud::{HealthStatus, LifecycleState};

use crate::machine_pool::model::{Input, PoolInstance};

/// Whether an instance is available: in service, healthy, with a Node that has been ready for `minReadySeconds`, and
/// not being deleted.
#[must_use]
pub fn is_available(input: &Input<'_>, instance: &PoolInstance) -> bool {
    let in_service = instance
        .listed
        .as_ref()
        .is_some_and(|i| i.lifecycle == LifecycleState::InService && i.health == HealthStatus::Healthy);
    let ready = instance.machine.as_ref().is_some_and(|machine| {
        machine.has_node
            && machine.ready
            && machine.ready_since.is_none_or(|since| input.now - since >= input.desired.min_ready)
    });
    in_service && ready && !instance.is_deleting()
}

/// Whether an instance is ready, but not yet for `minReadySeconds`.
#[must_use]
pub fn becomes_available(input: &Input<'_>, instance: &PoolInstance) -> bool {
    let machine = instance.machine.as_ref().filter(|machine| machine.has_node && machine.ready);
    let ready_since = machine.and_then(|machine| machine.ready_since);
    ready_since.is_some_and(|since| input.now - since < input.desired.min_ready) && !instance.is_deleting()
}

/// Whether the termination of an instance disrupts anything: its Node has joined, or that is unknown.
#[must_use]
pub fn disrupts(instance: &PoolInstance) -> bool {
    instance.machine.as_ref().is_none_or(|machine| machine.has_node)
}
