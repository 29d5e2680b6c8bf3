//! Decides about what AWS announces before it happens, and about machines that are dead before their group knows: the
//! Machine goes at once. What leaves time (a rebalance recommendation, a retirement) makes an instance outdated.

use capasg_api::capi::MachineDeletion;

use super::super::state::{Case, Member, Plan, ReplicaOwner};
use super::{endings::retire, members, rollout::Outdated};
use crate::kubernetes::DeletionReason;

/// EC2 takes a Spot instance back two minutes after it said so: nothing waits for a drain longer than that.
const SPOT_WARNING_SECONDS: i32 = 120;

/// Deletes the Machines of instances that EC2 takes back, so that core drains their Nodes now, and of machines that are
/// dead, without a drain. That they end is not ours to decide, so that no budget holds it up.
pub fn decide(case: &Case<'_>, plan: &mut Plan) {
    for (_, member) in members::live(case.observed).filter(|(_, m)| !m.is_paused()) {
        let dead = member.is_dead();
        if !dead && !member.is_interrupted() {
            continue;
        }
        plan.in_transition = true;
        // One that core has not made yet is waited for: without it nothing would be drained (D9).
        if dead || member.machine.is_some() {
            retire(case, member, dead, DeletionReason::Ended, plan);
        }
    }
}

/// Instances beyond the replicas that take over from those which EC2 takes back: they are launched while the others are
/// drained, and each stays in its place when it has ended. Outdated ones are counted by the rollout.
#[must_use]
pub fn surge(case: &Case<'_>, outdated: &Outdated) -> i32 {
    let desired = case.desired;
    // Desired capacity that somebody else writes is never ours to raise (design section 4, "External owner").
    if desired.owner != ReplicaOwner::MachinePool || desired.replicas == 0 {
        return 0;
    }
    let leaves = |id: &str, member: &Member| {
        let still_works = !member.is_drained() && !member.is_dead() && !member.is_paused();
        member.is_interrupted() && still_works && !outdated.is_outdated(id)
    };
    members::count(members::live(case.observed).filter(|(id, member)| leaves(id, member)))
}

/// The limits on how the Machine of an interrupted instance goes: a drain that takes longer would outlive the machine.
#[must_use]
pub fn timeouts(member: &Member, wanted: MachineDeletion) -> MachineDeletion {
    if !member.is_interrupted() {
        return wanted;
    }
    // 0 is no limit.
    let shorter = |seconds: Option<i32>| {
        Some(
            seconds
                .filter(|seconds| *seconds > 0)
                .map_or(SPOT_WARNING_SECONDS, |own| own.min(SPOT_WARNING_SECONDS)),
        )
    };
    MachineDeletion {
        node_drain_timeout_seconds: shorter(wanted.node_drain_timeout_seconds),
        node_volume_detach_timeout_seconds: shorter(wanted.node_volume_detach_timeout_seconds),
        ..wanted
    }
}
