//! Whether a change of the group is in progress, so that it is read often.

use capasg_cloud::LifecycleState;

use crate::machine_pool::model::instances;
use crate::machine_pool::model::{GroupView, Observed, Plan, PoolInstance};

/// Whether no change of the group is in progress, by itself or by a step: the pool waits for something in Kubernetes (a
/// drain, a Node that joins) or for something that is read rarely, so that the group need not be read often.
#[must_use]
pub fn is_at_rest(observed: &Observed, plan: &Plan) -> bool {
    let GroupView::Present { group, settled: true, .. } = &observed.group else { return false };
    let acts = plan.writes().next().is_some();
    let stays = |instance: &PoolInstance| match instance.lifecycle() {
        Some(LifecycleState::InService | LifecycleState::Standby) => !instance.is_drained(),
        Some(_) => false,
        None => instance.asg_machine.is_none(),
    };
    !acts
        && plan.needs.is_empty()
        && !group.is_deleting()
        && instances::in_service_count(observed) == group.capacity.desired
        && observed.instances.values().all(stays)
}
