//! Why AWS terminates an instance without a call of this controller. For users: no decision depends on it.

use capasg_cloud::LifecycleState;

use crate::machine_pool::model::{PoolInstance, PoolMemory};

/// Whether AWS terminates an instance without our call, as far as the group shows it.
#[must_use]
pub fn is_by_aws(id: &str, instance: &PoolInstance, memory: &PoolMemory) -> bool {
    let is_terminating = instance.lifecycle().is_some_and(LifecycleState::is_terminating);
    let is_unrequested = instance.asg_machine.as_ref().is_some_and(|machine| {
        machine.termination_requested_at.is_none() && memory.terminations.requested_at(id).is_none()
    });
    is_terminating && is_unrequested
}
