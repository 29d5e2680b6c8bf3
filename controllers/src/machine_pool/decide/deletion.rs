//! Decides about a pool that is being deleted, phase by phase and without waiting inside a worker. What is gone already
//! is not waited for (E2).

use std::collections::BTreeSet;

use capasg_api::{names::TERMINATE_HOOK, pool::RolloutType};
use capasg_cloud::{Group, GroupChange, RefreshStatus, Write};
use chrono::TimeDelta;

use super::super::state::{
    Case, DeletionPhase, Desired, GroupView, Member, Observed, Obstacle, Plan, TemplateView,
};
use super::{adoption, endings, group, machines};
use crate::kubernetes::{DeletionReason, KubeWrite};

/// A listing may lack a group that was made seconds ago and is not recorded yet: before the template, the last trace of
/// it, goes, the group must have been missing for this long.
const LISTING_LAG: TimeDelta = TimeDelta::seconds(15);
/// How often Machines are looked at whose end may wake nobody.
const STRAY_MACHINES: TimeDelta = TimeDelta::seconds(5);

/// How often an instance refresh is looked at that is being cancelled.
const REFRESHES: TimeDelta = TimeDelta::seconds(10);

/// What a deletion may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Machines are drained first.
    ForMachines,
    /// The Cluster object is gone: nobody can drain (E4, E6).
    ForNobody,
}

/// Decides the next steps of a deletion: drain, delete the group, delete the template, done (E1).
#[must_use]
pub fn decide(case: &Case<'_>, waiting: Waiting) -> Plan {
    let Case { desired, observed, .. } = *case;
    let mut plan = Plan { in_transition: true, ..Plan::default() };
    if desired.orphan_on_deletion {
        orphan(case, &mut plan);
        return plan;
    }
    match &observed.group {
        // What the deletion waits for is not known yet.
        GroupView::Unknown => {}
        GroupView::Absent { settled: false, .. } => {
            plan.deletion = Some(DeletionPhase::DeletingGroup);
        }
        GroupView::Present { group, .. } => {
            if let Some(obstacle) = group::foreign(desired, group) {
                if may_be_adopted(case, &obstacle, &mut plan) {
                    return plan;
                }
                foreign(case, obstacle, &mut plan);
                return plan;
            }
            present(case, group, waiting, &mut plan);
        }
        GroupView::Absent { settled: true, .. } => {
            plan.deletion = Some(DeletionPhase::DeletingGroup);
            if group::confirmed_absent(case, &mut plan) {
                without_group(case, waiting, &mut plan);
            }
        }
    }
    plan
}

/// A group that was about to be adopted may carry our tags although this view lacks them.
fn may_be_adopted(case: &Case<'_>, obstacle: &Obstacle, plan: &mut Plan) -> bool {
    if !adoption::is_asked_for(case.desired, obstacle)
        || !matches!(obstacle, Obstacle::ForeignGroup { found: None })
    {
        return false;
    }
    let seen = case.observed.group.as_of().zip(case.memory.unowned_since);
    let unowned_for = seen.map_or(TimeDelta::zero(), |(as_of, since)| as_of - since);
    let group = &case.observed.group;
    if group.is_settled() && case.observed.fresh_group && unowned_for >= LISTING_LAG {
        return false;
    }
    plan.obstacle = Some(Obstacle::Adopting);
    plan.deletion = Some(DeletionPhase::DeletingGroup);
    plan.needs.fresh_group |= !case.observed.fresh_group;
    plan.look_again_within(LISTING_LAG);
    true
}

/// A group of our name that is somebody else's is left alone; a pool that never had one goes with its template.
fn foreign(case: &Case<'_>, obstacle: Obstacle, plan: &mut Plan) {
    let never_ours = matches!(obstacle, Obstacle::ForeignGroup { .. })
        && case.observed.members.values().all(|m| m.asg_machine.is_none());
    if never_ours {
        without_machines(case, plan);
    } else {
        plan.obstacle = Some(obstacle);
        plan.deletion = Some(DeletionPhase::DrainingMachines(names_of(case.observed)));
    }
}

/// The group is there: no more launches, drain, end what is drained, then delete the rest by force.
fn present(case: &Case<'_>, group: &Group, waiting: Waiting, plan: &mut Plan) {
    let Case { desired, observed, .. } = *case;
    if group.is_deleting() {
        plan.deletion = Some(DeletionPhase::DeletingGroup);
        release_all(case, waiting, plan);
        return;
    }
    // A Machine that core never made, or does not know of yet, cannot be waited for: its ASGMachine goes directly. One
    // whose ASGMachine is gone already still takes its Node away.
    let left =
        !observed.stray_machines.is_empty() || observed.members.values().any(|m| m.asg_machine.is_some());
    let waits = waiting == Waiting::ForMachines && left;
    if observed.group.is_settled() {
        stop_launches(desired, group, plan);
    }
    if waits {
        plan.deletion = Some(DeletionPhase::DrainingMachines(names_of(observed)));
        machines::timeouts(case, plan);
        for member in observed.members.values() {
            drain(case, member, plan);
        }
        if observed.group.is_settled() {
            endings::ours(case, group, 0, plan);
            endings::in_the_group(case, plan);
        }
        machines::departed(case, true, plan);
        if !observed.stray_machines.is_empty() {
            // Without its MachinePool, nothing tells whose a Machine was that is gone.
            plan.look_again_within(STRAY_MACHINES);
        }
        return;
    }
    plan.deletion = Some(DeletionPhase::DeletingGroup);
    if observed.group.is_settled() {
        if desired.hook.is_some() && !group.instances.is_empty() {
            // Completes what the hook still holds, so that nothing idles.
            plan.cloud(Write::DeleteLifecycleHook {
                group: desired.group.clone(),
                hook: TERMINATE_HOOK.to_owned(),
            });
        }
        plan.cloud(Write::DeleteGroup { group: desired.group.clone(), force: true });
    }
}

/// Nothing may be launched into a group that is going: Launch suspended, MinSize 0.
fn stop_launches(desired: &Desired, group: &Group, plan: &mut Plan) {
    if !group.suspended_processes.contains_key("Launch") {
        plan.cloud(Write::SuspendProcesses {
            group: desired.group.clone(),
            processes: BTreeSet::from(["Launch".to_owned()]),
        });
    }
    if group.capacity.min != 0 {
        let change =
            GroupChange { min: Some(0), desired: Some(group.capacity.desired), ..GroupChange::default() };
        plan.cloud(Write::UpdateGroup { group: desired.group.clone(), change: Box::new(change) });
    }
}

fn drain(case: &Case<'_>, member: &Member, plan: &mut Plan) {
    if member.asg_machine.is_none() || member.is_paused() {
        return;
    }
    endings::retire(case, member, !case.desired.drain_on_deletion, DeletionReason::PoolDeleted, plan);
}

/// The group is gone: whatever Kubernetes still has is released, then the template goes.
fn without_group(case: &Case<'_>, waiting: Waiting, plan: &mut Plan) {
    let observed = case.observed;
    if observed.members.values().any(|m| m.asg_machine.is_some()) {
        release_all(case, waiting, plan);
        plan.deletion = Some(DeletionPhase::DrainingMachines(names_of(observed)));
        return;
    }
    without_machines(case, plan);
}

/// Nothing runs any more: the template, the last trace, goes.
fn without_machines(case: &Case<'_>, plan: &mut Plan) {
    let Case { desired, observed, .. } = *case;
    match &observed.template {
        TemplateView::Unknown => plan.deletion = Some(DeletionPhase::DeletingLaunchTemplate),
        TemplateView::Present { id, owner_id, .. } if owner_id.as_ref() == Some(&desired.owner_id) => {
            plan.deletion = Some(DeletionPhase::DeletingLaunchTemplate);
            let absent_for = case.memory.absent_since.map_or(TimeDelta::zero(), |since| case.now - since);
            if desired.provider_id.is_none() && absent_for < LISTING_LAG {
                plan.look_again_within(LISTING_LAG - absent_for);
            } else {
                plan.cloud(Write::DeleteLaunchTemplate { id: id.clone() });
            }
        }
        TemplateView::Absent | TemplateView::Present { .. } => plan.deletion = Some(DeletionPhase::Done),
    }
}

/// Lets go of the ASGMachines of a group that is going or gone: those being deleted lose our finalizer, the others are
/// retired without a drain. Where nobody is waited for, no Machine controller works either, so they go directly.
fn release_all(case: &Case<'_>, waiting: Waiting, plan: &mut Plan) {
    for member in case.observed.members.values().filter(|m| m.instance.is_none() && !m.is_paused()) {
        let Some(machine) = &member.asg_machine else { continue };
        if machine.deleting_since.is_some() {
            machines::release_if(case, member, true, plan);
        } else if waiting == Waiting::ForMachines {
            endings::retire(case, member, true, DeletionReason::PoolDeleted, plan);
        } else {
            plan.kubernetes(KubeWrite::DeleteAsgMachine {
                machine: case.key(&machine.name),
                uid: machine.uid.clone(),
            });
        }
    }
}

/// `deletionPolicy: Orphan`: instances keep running. ASGMachines are deleted directly, since core does not drain a
/// Machine whose infrastructure object is going (contract 1.6), and our hook goes so that later ends are not held.
fn orphan(case: &Case<'_>, plan: &mut Plan) {
    let Case { desired, observed, .. } = *case;
    if goes_on_alone(case, plan) {
        plan.deletion = Some(DeletionPhase::DrainingMachines(names_of(observed)));
        return;
    }
    let mut remaining = false;
    for machine in observed.members.values().filter_map(|m| m.asg_machine.as_ref()) {
        remaining = true;
        if machine.paused {
            continue;
        }
        plan.kubernetes(if machine.deleting_since.is_some() {
            machines::release(case, machine)
        } else {
            KubeWrite::DeleteAsgMachine { machine: case.key(&machine.name), uid: machine.uid.clone() }
        });
    }
    if remaining {
        plan.deletion = Some(DeletionPhase::DrainingMachines(names_of(observed)));
        return;
    }
    let foreign = observed.group.present().and_then(|group| group::foreign(desired, group));
    if foreign.is_some_and(|obstacle| may_be_adopted(case, &obstacle, plan)) {
        return;
    }
    match (&observed.group, &observed.hook) {
        (GroupView::Present { group, .. }, None)
            if group::foreign(desired, group).is_none() && !group.is_deleting() =>
        {
            plan.needs.hook = true;
            plan.deletion = Some(DeletionPhase::DeletingGroup);
        }
        (GroupView::Present { .. }, Some(Some(hook))) => {
            plan.cloud(Write::DeleteLifecycleHook { group: desired.group.clone(), hook: hook.name.clone() });
            plan.deletion = Some(DeletionPhase::DeletingGroup);
        }
        (GroupView::Unknown, _) => {}
        _ => plan.deletion = Some(DeletionPhase::Done),
    }
}

/// Whether AWS would go on replacing what stays, undrained without our hook: an instance refresh of ours is cancelled
/// first, and what it has begun is waited for.
fn goes_on_alone(case: &Case<'_>, plan: &mut Plan) -> bool {
    let Case { desired, observed, now, .. } = *case;
    let ours = observed.group.present().is_some_and(|group| group::foreign(desired, group).is_none());
    if desired.rollout.type_ != RolloutType::InstanceRefresh || !ours {
        return false;
    }
    let fresh = observed.refreshes.as_ref().filter(|view| now - view.as_of < REFRESHES);
    let Some(view) = fresh else {
        plan.needs.refreshes = true;
        return true;
    };
    let Some(active) = view.refreshes.iter().find(|refresh| !refresh.status.is_over()) else { return false };
    if active.status != RefreshStatus::Cancelling {
        plan.cloud(Write::CancelInstanceRefresh { group: desired.group.clone() });
    }
    endings::in_the_group(case, plan);
    plan.look_again_within(REFRESHES);
    true
}

/// The names of the Machines (or ASGMachines) that are still there.
fn names_of(observed: &Observed) -> Vec<String> {
    let members = observed.members.values().filter_map(|m| {
        let machine = m.machine.as_ref().map(|machine| machine.name.clone());
        machine.or_else(|| m.asg_machine.as_ref().map(|machine| machine.name.clone()))
    });
    members.chain(observed.stray_machines.iter().map(|machine| machine.name.clone())).collect()
}
