//! Decides about what AWS announces before it happens, and about machines that are dead before their group knows: the
//! Machine goes at once. What leaves time (a rebalance recommendation, a retirement) makes an instance outdated.

use capasg_api::capi::MachineDeletion;
use capasg_cloud::{InstanceFacts, NoticeKind, PurchaseOption};
use chrono::TimeDelta;

use super::super::state::{Case, Member, MemberFacts, Plan, ReplicaOwner};
use super::{endings::retire, members, rollout::Outdated};
use crate::kubernetes::DeletionReason;

/// EC2 takes a Spot instance back two minutes after it said so: nothing waits for a drain longer than that.
const SPOT_WARNING_SECONDS: i32 = 120;
/// A report takes no longer than this.
const REPORTED_WITHIN: TimeDelta = TimeDelta::seconds(1);

/// What of an instance's announcements is believed, and whether more may be once its machine is known.
///
/// Whoever may write to the queue can say anything, so that what EC2 tells of Spot instances alone is believed for those
/// that EC2 itself calls so; nothing of it is taken back once it was `reported`, but a retirement that AWS closes.
#[must_use]
pub fn believed(
    heard: Option<NoticeKind>,
    reported: Option<NoticeKind>,
    machine: Option<&MemberFacts>,
) -> (Option<NoticeKind>, bool) {
    match heard {
        None => (reported, false),
        Some(NoticeKind::AllClear) => (reported.filter(|kind| *kind != NoticeKind::Retirement), false),
        Some(NoticeKind::Retirement) => (heard.max(reported), false),
        Some(NoticeKind::Rebalance | NoticeKind::SpotInterruption) => {
            let is_spot = |facts: &InstanceFacts| facts.purchase == PurchaseOption::Spot;
            match machine {
                _ if reported >= heard => (reported, false),
                None => (reported, true),
                Some(known) if known.facts.as_ref().is_some_and(is_spot) => (heard, false),
                Some(_) => (reported, false),
            }
        }
    }
}

/// Deletes the Machines of instances that EC2 takes back, so that core drains their Nodes now, and of machines that are
/// dead, without a drain. That they end is not ours to decide, so that no budget holds it up.
///
/// An interruption is reported before anything is done about it: a process that takes over in the middle would otherwise
/// not know of it until its message comes again, and take what was launched in its place for one too many.
pub fn decide(case: &Case<'_>, plan: &mut Plan) {
    for (id, member) in members::live(case.observed).filter(|(_, m)| !m.is_paused()) {
        if member.rumoured {
            plan.needs.facts.insert(id.clone());
        }
        let dead = member.is_dead();
        if !dead && !member.is_interrupted() {
            continue;
        }
        plan.in_transition = true;
        if !dead && !member.notice_is_told {
            // The report wakes the pool; this is for one that could not be written.
            plan.look_again_within(REPORTED_WITHIN);
            continue;
        }
        // One that core has not made yet is waited for: without it nothing would be drained (D9).
        if dead || member.machine.is_some() {
            retire(case, member, dead, DeletionReason::Ended, plan);
        }
    }
}

/// Instances beyond the replicas that take over from those which EC2 takes back: they are launched while the others are
/// drained, and each stays in its place when it has ended. Outdated ones have `rolled`, the surge of the rollout, as far
/// as that goes: none where it is paused, closed or stopped.
#[must_use]
pub fn surge(case: &Case<'_>, outdated: &Outdated, rolled: i32) -> i32 {
    let desired = case.desired;
    // Desired capacity that somebody else writes is never ours to raise (design section 4, "External owner").
    if desired.owner != ReplicaOwner::MachinePool || desired.replicas == 0 {
        return 0;
    }
    let leaves = |member: &Member| {
        let still_works = !member.is_drained() && !member.is_dead() && !member.is_paused();
        member.is_interrupted() && member.notice_is_told && still_works
    };
    let leaving = members::live(case.observed).filter(|(_, member)| leaves(member));
    let (old, new): (Vec<_>, Vec<_>) = leaving.partition(|(id, _)| outdated.is_outdated(id));
    members::count(new.iter()) + (members::count(old.iter()) - rolled).max(0)
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
