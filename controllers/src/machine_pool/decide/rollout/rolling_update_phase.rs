//! The phase of a rolling update, for conditions.

use capasg_cloud::LifecycleState;

use crate::machine_pool::decide::availability::{becomes_available, is_available};
use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::rollout::candidates::blocking;
use crate::machine_pool::decide::rollout::outdated::to_replace;
use crate::machine_pool::decide::rollout::permission::Permission;
use crate::machine_pool::decide::rollout::stopped;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, PoolInstance, RolloutPhase};

/// The phase of the rollout; `None` if there is nothing to replace.
pub(super) fn phase(input: &Input<'_>, outdated: &Outdated, permission: Permission) -> Option<RolloutPhase> {
    let old: Vec<&PoolInstance> = to_replace(input, outdated).map(|(_, m)| m).collect();
    if old.is_empty() {
        let waits = instances::live(input.observed).any(|(id, m)| outdated.is_outdated(id) && !m.is_paused());
        return waits.then_some(RolloutPhase::OnDelete);
    }
    let draining: Vec<String> = old
        .iter()
        .filter(|m| m.is_deleting())
        .filter_map(|m| Some(m.machine.as_ref()?.name.clone()))
        .collect();
    Some(match permission {
        Permission::Paused => RolloutPhase::Paused { draining },
        Permission::Stopped => stopped::phase(input, outdated, draining, None),
        Permission::Closed(next) => RolloutPhase::Closed { draining, next },
        Permission::Settling(_) => RolloutPhase::Settling,
        Permission::Held | Permission::Stalled | Permission::Refreshing => RolloutPhase::Held,
        Permission::Rejected => RolloutPhase::Rejected,
        Permission::Open => {
            let new = instances::live(input.observed)
                .filter(|(id, m)| !outdated.is_outdated(id) && !m.is_deleting() && !is_available(input, m));
            let starting = new.map(|(id, _)| id.clone()).collect();
            let awaits_new = awaits_new(input, outdated);
            let out_of_budget = Budget::of(input).room_of_rollouts() == 0;
            let kept = blocking(input, outdated);
            RolloutPhase::Rolling { draining, starting, awaits_new, out_of_budget, kept }
        }
    })
}

/// Whether a rollout waits for instances that are up to date: launched but not available, or not launched.
fn awaits_new(input: &Input<'_>, outdated: &Outdated) -> bool {
    let Some(group) = input.observed.group.present() else { return false };
    let new = |id: &String| !outdated.is_outdated(id);
    let starting = instances::live(input.observed)
        .any(|(id, m)| new(id) && !is_available(input, m) && !becomes_available(input, m));
    // One that terminates before it was available is waited for as well: its replacement is no progress. One that was
    // available takes room of the budget until it is terminated.
    let terminating = input.observed.instances.iter().any(|(id, m)| {
        let is_terminating = m.lifecycle().is_some_and(LifecycleState::is_terminating);
        new(id) && is_terminating && m.is_deleting() && input.memory.rollout_progress.awaits(id)
    });
    starting || terminating || instances::live_count(input.observed) < group.capacity.desired
}
