//! Decides about capacity (G1): up at once, down by exact victims that are drained before they are terminated.

mod change;
pub mod replica_owner;
#[cfg(test)]
mod replica_owner_tests;
mod scale_in;

use capasg_cloud::{Capacity, Group};

use crate::machine_pool::decide::capacity::change::{Aim, Behind};
use crate::machine_pool::decide::rollout::instance_refresh::Refresh;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Desired, Input, Outdated, Part, ReplicaOwner};

/// What is decided about capacity.
#[derive(Debug, Default)]
pub struct Sizing {
    /// Bounds and desired capacity, or the MachinePool's replicas.
    pub capacity: Part,
    /// The victims of a scale-in.
    pub scale_in: Part,
    /// Whether the MachinePool sizes the group again.
    pub handed_back: bool,
    /// Whether capacity is as it should be, so that outdated and unhealthy instances may be replaced.
    pub is_right: bool,
}

/// The number of instances to aim at: the replicas of the owner, and the surge of a rollout.
#[must_use]
pub fn target(desired: &Desired, surge: i32) -> i32 {
    desired.replicas.saturating_add(surge)
}

/// Plans bounds and desired capacity, and chooses and releases victims.
#[must_use]
pub fn decide(
    input: &Input<'_>,
    group: &Group,
    target: i32,
    outdated: &Outdated,
    refresh: &Refresh<'_>,
) -> Sizing {
    let Input { desired, observed, .. } = *input;
    let have = group.capacity;
    if !observed.group.is_settled() {
        return Sizing { capacity: change::grow_unsettled(input, have), ..Sizing::default() };
    }
    let live = instances::live_count(observed);
    let (excess, mut capacity) = match excess(input, have, live, target, refresh) {
        (None, capacity) => return Sizing { capacity, ..Sizing::default() },
        (Some(excess), capacity) => (excess, capacity),
    };
    let mut handed_back = false;
    match desired.owner {
        ReplicaOwner::External(bounds) => {
            capacity.merge(replica_owner::bounds_and_replicas(input, bounds, have));
            capacity.in_transition |= is_starting(input, have);
            let (scale_in, is_right) = scale_in::decide(input, excess, outdated);
            return Sizing { capacity, scale_in, handed_back, is_right };
        }
        // The report wakes the pool.
        ReplicaOwner::ExternalUnreported => return Sizing { capacity, ..Sizing::default() },
        ReplicaOwner::MachinePoolPending => {
            let (is_done, part) = replica_owner::hand_back(input, have);
            capacity.merge(part);
            handed_back = is_done;
            if !handed_back {
                return Sizing { capacity, ..Sizing::default() };
            }
        }
        ReplicaOwner::MachinePool | ReplicaOwner::ExternalPending => {}
    }
    // Nothing terminates by this: what was launched stays counted, launches that never happened are given up.
    let wanted = if target >= have.desired { target } else { have.desired.min(target.max(live)) };
    if let Some(behind) = change::reads_behind_raise(input, have, wanted) {
        match behind {
            Behind::Still(wait) => capacity.requeue_within(wait),
            Behind::TheView => capacity.needs.fresh_group = true,
        }
        capacity.in_transition = true;
        return Sizing { capacity, handed_back, ..Sizing::default() };
    }
    let to = change::bounds(observed, have, Aim { target, wanted, refreshed: refresh.active.is_some() });
    if (wanted < have.desired || to.max < have.max) && !input.fresh_group() {
        // What is in flight at the last poll may run by now, or another actor may have brought some back: lowering past it
        // would let the group pick.
        capacity.needs.fresh_group = true;
        return Sizing { capacity, handed_back, ..Sizing::default() };
    }
    capacity.merge(Part::of_all(change::write(desired, have, to)));
    if wanted != have.desired {
        capacity.in_transition = true;
        return Sizing { capacity, handed_back, ..Sizing::default() };
    }
    // An instance that is launched but not in service is waited for, too.
    capacity.in_transition |= is_starting(input, have);
    let (scale_in, is_right) = scale_in::decide(input, excess, outdated);
    Sizing { capacity, scale_in, handed_back, is_right }
}

/// How many of the live instances are too many, those already leaving included; `None` while that is not known. More may
/// live than are desired, if another actor lowered desired capacity while all were protected.
fn excess(
    input: &Input<'_>,
    have: Capacity,
    live: i32,
    target: i32,
    refresh: &Refresh<'_>,
) -> (Option<usize>, Part) {
    // While launches are under way (live below desired) nothing is chosen: their end settles that.
    let excess = if live < have.desired { 0 } else { usize::try_from(live - target).unwrap_or(0) };
    let of_desired = usize::try_from(have.desired - target).unwrap_or(0);
    if excess <= of_desired {
        return (Some(excess), Part::default());
    }
    // A refresh launches instances before it terminates others: those are its own to terminate.
    let (is_none, part) = refresh.is_known_to_be_none(input);
    let excess = match refresh.active {
        _ if is_none => Some(excess),
        Some(_) => Some(of_desired),
        None => None,
    };
    (excess, part)
}

/// Whether instances are on their way into service. Those that AWS fails to launch are not: they are read seldom.
fn is_starting(input: &Input<'_>, have: Capacity) -> bool {
    let in_service = instances::in_service_count(input.observed);
    let missing = in_service < have.desired && in_service == instances::live_count(input.observed);
    in_service != have.desired && !(missing && input.memory.launches.are_failing())
}
