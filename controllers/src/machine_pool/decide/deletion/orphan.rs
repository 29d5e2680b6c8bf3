//! `deletionPolicy: Orphan`: instances keep running. ASGMachines are deleted directly, since core does not drain a
//! Machine whose infrastructure object is being deleted, and our hook is deleted so that later terminations are not
//! held.

use capasg_api::pool::RolloutType;
use capasg_cloud::{RefreshStatus, Write};
use chrono::TimeDelta;

use crate::machine_pool::decide::deletion::remaining::draining;
use crate::machine_pool::decide::deletion::unconfirmed;
use crate::machine_pool::decide::group::confirm_absence;
use crate::machine_pool::decide::machines::deletion;
use crate::machine_pool::decide::rollout::instance_refresh;
use crate::machine_pool::decide::termination::lifecycle_actions;
use crate::machine_pool::model::ownership::{is_owned, not_owned};
use crate::machine_pool::model::{DeletionPhase, GroupView, Input, Known, Needs, Part, Phase, Plan};

/// How often instance refreshes are read while one is being cancelled.
const REFRESHES: TimeDelta = TimeDelta::seconds(10);

/// Cancels an instance refresh, releases the ASGMachines, deletes our hook.
pub(super) fn decide(input: &Input<'_>) -> Plan {
    let observed = input.observed;
    if observed.group.present().is_none() {
        let (is_absent, confirmation) = confirm_absence(input);
        if !is_absent {
            let mut plan = Plan::of_deletion(DeletionPhase::DeletingGroup);
            plan.add(Phase::Removal, confirmation);
            return plan;
        }
    }
    if let Some(plan) = stop_refresh(input) {
        return plan;
    }
    let mut plan = Plan::default();
    if observed.instances.values().any(|m| m.asg_machine.is_some()) {
        plan.deletion = Some(draining(observed));
        plan.add(Phase::Departures, release(input));
        return plan;
    }
    let blocker = observed.group.present().and_then(|group| not_owned(input.desired, group));
    if let Some(plan) = blocker.and_then(|blocker| unconfirmed::decide(input, &blocker)) {
        return plan;
    }
    let (phase, part) = delete_hook(input);
    plan.deletion = phase;
    plan.add(Phase::Removal, part);
    plan
}

/// Releases ASGMachines, or deletes them directly.
fn release(input: &Input<'_>) -> Part {
    let machines = input.observed.instances.values().filter_map(|m| m.asg_machine.as_ref());
    Part::of_all(machines.filter(|machine| !machine.paused).map(|machine| {
        if machine.deleting_since.is_some() {
            deletion::release(input, machine)
        } else {
            deletion::delete_asg_machine(input, machine)
        }
    }))
}

fn delete_hook(input: &Input<'_>) -> (Option<DeletionPhase>, Part) {
    let Input { desired, observed, .. } = *input;
    match (&observed.group, &observed.hook) {
        // The group of another pool has a hook of the same name.
        (GroupView::Present { group, .. }, _) if !is_owned(desired, group) => {
            (Some(DeletionPhase::Done), Part::default())
        }
        (GroupView::Present { group, .. }, Known::Unread(_)) if !group.is_deleting() => {
            let needs = Needs { hook: true, ..Needs::default() };
            (Some(DeletionPhase::DeletingGroup), Part::needing(needs))
        }
        (GroupView::Present { .. }, Known::Present(hook)) => {
            let write = Write::DeleteLifecycleHook { group: desired.group.clone(), hook: hook.name.clone() };
            (Some(DeletionPhase::DeletingGroup), Part::of(write))
        }
        _ => (Some(DeletionPhase::Done), Part::default()),
    }
}

/// Cancels an instance refresh first, also one of an earlier strategy, and waits for the replacements that it has
/// started: without our hook, AWS would terminate instances that are not drained. `None` once there is none.
fn stop_refresh(input: &Input<'_>) -> Option<Plan> {
    let Input { desired, observed, memory, now, .. } = *input;
    if !observed.group.present().is_some_and(|group| is_owned(desired, group)) {
        return None;
    }
    let mut plan = Plan::of_deletion(draining(observed));
    let Some(view) = observed.refreshes.as_ref().filter(|view| now - view.as_of < REFRESHES) else {
        plan.needs.refreshes = true;
        return Some(plan);
    };
    let active = view.refreshes.iter().find(|refresh| !refresh.status.is_finished())?;
    if active.status != RefreshStatus::Cancelling {
        // The status reports none any more once the deletion has begun.
        let is_used = desired.rollout.type_ == RolloutType::InstanceRefresh
            || instance_refresh::was_reported(input)
            || memory.refreshes.stop_requested_at().is_some();
        if !is_used {
            return None;
        }
        let cancel = Write::CancelInstanceRefresh { group: desired.group.clone() };
        plan.add(Phase::StopLaunches, Part::of(cancel));
    }
    plan.add(Phase::LifecycleActions, lifecycle_actions::decide(input));
    plan.requeue_within(REFRESHES);
    Some(plan)
}
