//! Why AWS terminates an instance that this controller did not terminate. For users: no decision depends on it.

use capasg_cloud::{HealthStatus, LifecycleState, TerminationCause};

use crate::machine_pool::model::{PoolInstance, PoolMemory};

/// Why AWS terminates an instance without our call, as far as the group shows it; `None` if it does not.
#[must_use]
pub fn shown(id: &str, instance: &PoolInstance, memory: &PoolMemory) -> Option<Option<TerminationCause>> {
    let is_terminating = instance.lifecycle().is_some_and(LifecycleState::is_terminating);
    let machine = instance.asg_machine.as_ref()?;
    let by_us = machine.termination_requested_at.is_some() || memory.terminations.requested_at(id).is_some();
    if !is_terminating || by_us {
        return None;
    }
    let unhealthy = instance.listed.as_ref().is_some_and(|one| one.health == HealthStatus::Unhealthy);
    Some(unhealthy.then_some(TerminationCause::Unhealthy))
}
