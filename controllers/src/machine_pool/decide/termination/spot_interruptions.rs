//! Decides about Spot instances that EC2 reclaims, and about instances that are terminated before the group shows it:
//! their Machines are deleted at once. AWS events that leave time (a rebalance recommendation, a retirement) make
//! instances outdated.

use chrono::TimeDelta;

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::machines::{deletion, facts};
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, Part, PoolInstance, ReplicaOwner};

/// Writing a status takes at most this long.
const REPORTED_WITHIN: TimeDelta = TimeDelta::seconds(1);

/// Deletes the Machines of instances that EC2 reclaims, so that core drains their Nodes now, and of terminated
/// instances, without a drain. The budget does not apply, since this controller does not decide about their
/// termination.
///
/// An interruption is reported before anything is done about it: otherwise a new leader would not know it until its
/// message is received again, and would consider the replacement surplus.
#[must_use]
pub fn decide(input: &Input<'_>) -> Part {
    let mut part = Part::default();
    for (id, instance) in instances::live(input.observed).filter(|(_, m)| !m.is_paused()) {
        if instance.notice_is_unverified {
            part.needs.merge(facts::of(id));
        }
        let is_terminated = instance.is_terminated();
        if !is_terminated && !instance.is_interrupted() {
            continue;
        }
        part.in_transition = true;
        if !is_terminated && !instance.notice_is_reported {
            // Writing the status wakes the pool; this is for a status that could not be written.
            part.requeue_within(REPORTED_WITHIN);
            continue;
        }
        // A Machine that core has not created yet is waited for: without it nothing would be drained (D9).
        if is_terminated || instance.machine.is_some() {
            part.merge(deletion::delete(input, instance, is_terminated, DeletionReason::Terminated));
        }
    }
    part
}

/// The number of instances beyond the replicas that replace those that EC2 reclaims: they are launched while the others
/// are drained, and stay after the others are terminated. `rolled` is the surge of the rollout, which already replaces
/// that many outdated instances.
#[must_use]
pub fn surge(input: &Input<'_>, outdated: &Outdated, rolled: i32) -> i32 {
    let desired = input.desired;
    // Desired capacity is not increased if another actor manages it (G2).
    if desired.owner != ReplicaOwner::MachinePool || desired.replicas == 0 {
        return 0;
    }
    let is_replaced = |instance: &PoolInstance| {
        let still_works = !instance.is_drained() && !instance.is_terminated() && !instance.is_paused();
        instance.is_interrupted() && instance.notice_is_reported && still_works
    };
    let replaced = instances::live(input.observed).filter(|(_, instance)| is_replaced(instance));
    let (old, new): (Vec<_>, Vec<_>) = replaced.partition(|(id, _)| outdated.is_outdated(id));
    instances::count(new.iter()) + (instances::count(old.iter()) - rolled).max(0)
}
