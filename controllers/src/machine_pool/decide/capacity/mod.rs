//! Decides about capacity (G1): an increase at once, a decrease by chosen victims that are drained before their
//! termination. `termination/requests.rs` writes desired capacity as well: it decrements it with the termination of a
//! victim.

pub mod replica_handover;
#[cfg(test)]
mod replica_handover_tests;
mod scale_in;
mod set_capacity;

use capasg_cloud::{Capacity, Group};
use chrono::TimeDelta;

use crate::machine_pool::decide::capacity::set_capacity::{Goal, Stale};
use crate::machine_pool::decide::rollout::instance_refresh::Refresh;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Desired, Input, Outdated, Part, ReplicaOwner};

/// What a report has to precede is decided again after this, whether or not writing the status wakes the pool.
const REPORTED: TimeDelta = TimeDelta::seconds(1);

/// The decision about capacity.
#[derive(Debug, Default)]
pub struct Sizing {
    /// Bounds and desired capacity, or the MachinePool's replicas.
    pub capacity: Part,
    /// The victims of a scale-in.
    pub scale_in: Part,
    /// Whether the MachinePool manages the replicas again.
    pub handed_back: bool,
    /// Whether capacity is as desired, so that outdated and unhealthy instances may be replaced.
    pub is_as_desired: bool,
}

/// The target number of instances: the replicas, and the surge of a rollout.
#[must_use]
pub fn target(desired: &Desired, surge: i32) -> i32 {
    let target = desired.replicas.saturating_add(surge);
    desired.ceiling.map_or(target, |most| target.min(most.max(desired.replicas)))
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
        return Sizing { capacity: set_capacity::increase_unsettled(input, have), ..Sizing::default() };
    }
    let live = instances::live_count(observed);
    let (excess, mut capacity) = match excess(input, have, live, target, refresh) {
        (None, capacity) => return Sizing { capacity, ..Sizing::default() },
        (Some(excess), capacity) => (excess, capacity),
    };
    let mut handed_back = false;
    match desired.owner {
        ReplicaOwner::External(bounds) => {
            capacity.merge(replica_handover::bounds_and_replicas(input, bounds, have));
            capacity.in_transition |= is_starting(input, have);
            let (scale_in, is_as_desired) = scale_in::decide(input, excess, outdated);
            return Sizing { capacity, scale_in, handed_back, is_as_desired };
        }
        // Writing the status wakes the pool, unless a write whose reply was lost has reported it already.
        ReplicaOwner::ExternalUnreported => {
            capacity.requeue_within(REPORTED);
            return Sizing { capacity, ..Sizing::default() };
        }
        ReplicaOwner::MachinePoolPending => {
            let (is_done, part) = replica_handover::hand_back(input);
            capacity.merge(part);
            handed_back = is_done;
            if !handed_back {
                return Sizing { capacity, ..Sizing::default() };
            }
        }
        // Nothing else wakes the pool once reads show the last write.
        ReplicaOwner::ExternalPending => {
            if let Some(wait) = replica_handover::own_write_is_hidden(input) {
                capacity.requeue_within(wait);
            }
        }
        ReplicaOwner::MachinePool => {}
    }
    // Lowers desired capacity to cancel pending launches, never below the live instances.
    let wanted = if target >= have.desired { target } else { have.desired.min(target.max(live)) };
    if let Some(behind) = set_capacity::reads_behind_raise(input, have, wanted) {
        match behind {
            Stale::AnyRead(wait) => capacity.requeue_within(wait),
            Stale::CurrentView => capacity.needs.fresh_group = true,
        }
        capacity.in_transition = true;
        return Sizing { capacity, handed_back, ..Sizing::default() };
    }
    if let Some(wait) = set_capacity::launches_may_be_hidden(input, have, wanted) {
        capacity.requeue_within(wait);
        capacity.in_transition = true;
        return Sizing { capacity, handed_back, ..Sizing::default() };
    }
    let to = set_capacity::bounds(
        observed,
        have,
        Goal { target, wanted, refresh_active: refresh.active.is_some() },
    );
    if (wanted < have.desired || to.max < have.max) && !input.fresh_group() {
        // Instances that were launching at the last poll may run by now, or another actor may have ended a standby:
        // with a lower desired capacity the group would choose victims itself.
        capacity.needs.fresh_group = true;
        return Sizing { capacity, handed_back, ..Sizing::default() };
    }
    capacity.merge(Part::of_all(set_capacity::write(desired, have, to)));
    if wanted != have.desired {
        capacity.in_transition = true;
        return Sizing { capacity, handed_back, ..Sizing::default() };
    }
    // The pool also waits for instances that are launched but not in service.
    capacity.in_transition |= is_starting(input, have);
    let (scale_in, is_as_desired) = scale_in::decide(input, excess, outdated);
    // AWS is about to terminate an instance: the surplus is no room for a rollout.
    let is_as_desired = is_as_desired && left_to_aws(input).is_none();
    Sizing { capacity, scale_in, handed_back, is_as_desired }
}

/// For how much longer a surplus over desired capacity is left to AWS, unless another actor manages the replicas.
fn left_to_aws(input: &Input<'_>) -> Option<TimeDelta> {
    input.memory.surplus.wait(input.now).filter(|_| input.desired.owner == ReplicaOwner::MachinePool)
}

/// How many live instances exceed the target, including those that are being deleted; `None` while that is unknown.
/// More can be live than are desired if another actor lowered desired capacity while all instances were protected, or if
/// AWS launches a replacement before it terminates an instance: if no other actor manages the replicas, such a surplus is
/// left to AWS at first, or a replacement that has not joined yet would be chosen.
fn excess(
    input: &Input<'_>,
    have: Capacity,
    live: i32,
    target: i32,
    refresh: &Refresh<'_>,
) -> (Option<usize>, Part) {
    // While launches are in progress (fewer live than desired) no victims are chosen.
    let excess = if live < have.desired { 0 } else { usize::try_from(live - target).unwrap_or(0) };
    let of_desired = usize::try_from(have.desired - target).unwrap_or(0);
    if excess <= of_desired {
        return (Some(excess), Part::default());
    }
    // An instance refresh launches instances before it terminates others, which it does itself.
    let (is_none, part) = refresh.is_known_to_be_none(input);
    match (refresh.active, left_to_aws(input)) {
        (None, _) if !is_none => (None, part),
        (None, None) => (Some(excess), part),
        (None, Some(wait)) => (Some(of_desired), Part::requeue(wait)),
        (Some(_), _) => (Some(of_desired), part),
    }
}

/// Whether instances are about to enter service. Those that AWS fails to launch are not: the group is read rarely for
/// them.
fn is_starting(input: &Input<'_>, have: Capacity) -> bool {
    let in_service = instances::in_service_count(input.observed);
    let missing = in_service < have.desired && in_service == instances::live_count(input.observed);
    in_service != have.desired && !(missing && input.memory.launches.are_failing())
}
