//! Decides about Spot instances that EC2 takes back, and about machines that are dead before their group knows: the
//! Machine is deleted at once. What leaves time (a rebalance recommendation, a retirement) makes an instance outdated.

use chrono::TimeDelta;

use crate::kubernetes::DeletionReason;
use crate::machine_pool::decide::machines::{deletion, facts};
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, Part, PoolInstance, ReplicaOwner};

/// A report takes no longer than this.
const REPORTED_WITHIN: TimeDelta = TimeDelta::seconds(1);

/// Deletes the Machines of instances that EC2 takes back, so that core drains their Nodes now, and of machines that are
/// dead, without a drain. That they terminate is not ours to decide, so that no budget holds it up.
///
/// An interruption is reported before anything is done about it: a new leader would otherwise not know of it until its
/// message comes again, and take what was launched in its place for one too many.
#[must_use]
pub fn decide(input: &Input<'_>) -> Part {
    let mut part = Part::default();
    for (id, instance) in instances::live(input.observed).filter(|(_, m)| !m.is_paused()) {
        if instance.notice_is_unverified {
            part.needs.merge(facts::of(id));
        }
        let dead = instance.is_terminated();
        if !dead && !instance.is_interrupted() {
            continue;
        }
        part.in_transition = true;
        if !dead && !instance.notice_is_reported {
            // The report wakes the pool; this is for one that could not be written.
            part.requeue_within(REPORTED_WITHIN);
            continue;
        }
        // One that core has not made yet is waited for: without it nothing would be drained (D9).
        if dead || instance.machine.is_some() {
            part.merge(deletion::delete(input, instance, dead, DeletionReason::Terminated));
        }
    }
    part
}

/// Instances beyond the replicas that take over from those which EC2 takes back: they are launched while the others are
/// drained, and each stays in its place when it has terminated. Outdated ones have `rolled`, the surge of the rollout, as
/// far as that suffices: none where it is paused, closed or stopped.
#[must_use]
pub fn surge(input: &Input<'_>, outdated: &Outdated, rolled: i32) -> i32 {
    let desired = input.desired;
    // Desired capacity that another actor writes is never ours to raise (G2).
    if desired.owner != ReplicaOwner::MachinePool || desired.replicas == 0 {
        return 0;
    }
    let leaves = |instance: &PoolInstance| {
        let still_works = !instance.is_drained() && !instance.is_terminated() && !instance.is_paused();
        instance.is_interrupted() && instance.notice_is_reported && still_works
    };
    let leaving = instances::live(input.observed).filter(|(_, instance)| leaves(instance));
    let (old, new): (Vec<_>, Vec<_>) = leaving.partition(|(id, _)| outdated.is_outdated(id));
    instances::count(new.iter()) + (instances::count(old.iter()) - rolled).max(0)
}
