//! Why AWS terminates an instance that this controller did not terminate. For users: no decision depends on it.

use capasg_cloud::{HealthStatus, LifecycleState, TerminationCause};

use crate::machine_pool::model::{Member, PoolMemory};

/// Why a member ends that we did not end, as far as the group itself shows it; `None` if it does not end, or by our call.
#[must_use]
pub fn shown(id: &str, member: &Member, memory: &PoolMemory) -> Option<Option<TerminationCause>> {
    let ending = member.lifecycle().is_some_and(LifecycleState::is_terminating);
    let machine = member.asg_machine.as_ref()?;
    let by_us = machine.end_requested_at.is_some() || memory.terminations.requested_at(id).is_some();
    if !ending || by_us {
        return None;
    }
    let unhealthy = member.instance.as_ref().is_some_and(|one| one.health == HealthStatus::Unhealthy);
    Some(unhealthy.then_some(TerminationCause::Unhealthy))
}
