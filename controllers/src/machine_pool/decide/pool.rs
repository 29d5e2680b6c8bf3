//! Decides for a pool that is not being deleted: calls the deciders, and adds the part of each to a phase. The module
//! above adds the creation of ASGMachines and the annotation `block-move`.

use capasg_cloud::Group;

use crate::machine_pool::decide::group::Readiness;
use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::machines::{departures, time_limits};
use crate::machine_pool::decide::rollout::follow::{Followed, follow};
use crate::machine_pool::decide::rollout::instance_refresh::{self, Refresh};
use crate::machine_pool::decide::rollout::permission::Permission;
use crate::machine_pool::decide::rollout::surge::surge;
use crate::machine_pool::decide::rollout::{outdated, rolling_update, zone_balance};
use crate::machine_pool::decide::settings::{hook_audit, suspended_processes};
use crate::machine_pool::decide::termination::{lifecycle_actions, requests, spot_interruptions};
use crate::machine_pool::decide::{capacity, group, launch_template, remediation, settings};
use crate::machine_pool::model::ownership::not_owned;
use crate::machine_pool::model::{GroupView, Input, Outdated, Part, Phase, Plan};

/// Decides what to do for a pool that is not being deleted.
#[must_use]
pub fn plan(input: &Input<'_>) -> Plan {
    let Input { desired, observed, .. } = *input;
    let outdated = outdated::outdated(desired, observed, input.now);
    let (replaced, zone_balance) = zone_balance::decide(input, &outdated);
    let outdated = zone_balance::with_replaced(outdated, input, replaced.as_ref());
    let mut plan = Plan::with_outdated(outdated.clone());
    plan.zone_replacement = replaced;
    plan.add(Phase::Replacements, zone_balance);
    let (pin, launch_source) = launch_template::decide(input);
    plan.launches_previous = matches!(pin, Pin::Previous(_));
    let group = match group::decide(input, &pin) {
        Readiness::Ready(group) => group,
        Readiness::Wait(wait) => {
            // A version must exist before the group; terminations and Machines require the group.
            let is_known = !matches!(observed.group, GroupView::Unknown);
            let may_create = is_known && wait.group.blocker.is_none();
            let needs = launch_source.needs.clone();
            plan.add(Phase::LaunchSource, if may_create { launch_source } else { Part::needing(needs) });
            plan.add(Phase::Group, wait.group);
            plan.pending = wait.pending;
            return plan;
        }
    };
    let settled = observed.group.is_settled();
    let refresh = instance_refresh::assess(input, group, &pin, &outdated);
    let listing = refresh.read(input);
    let rollout = Rollout {
        group,
        pin: &pin,
        outdated: &outdated,
        refresh: &refresh,
        listed: !listing.needs.refreshes,
    };
    plan.add(Phase::RefreshEnd, listing);

    let Followed { record, permission, phase, status, facts } =
        follow(input, group, &pin, &outdated, &refresh);
    plan.add(Phase::RolloutRecord, record);
    (plan.follows_rollout, plan.rollout, plan.rollout_status) = (true, phase, status);
    plan.rollout_facts = facts;
    let rolled = surge(input, group, &outdated, permission);
    let target = capacity::target(desired, rolled + spot_interruptions::surge(input, &outdated, rolled));
    plan.target = Some(target);

    plan.add(Phase::Interruptions, spot_interruptions::decide(input));
    if settled {
        let shrinks = refresh.active.is_none() && !group.launches_before_terminating();
        plan.add(Phase::Terminations, requests::decide(input, group, target, shrinks));
        plan.add(Phase::LifecycleActions, lifecycle_actions::decide(input));
    }
    plan.add(Phase::Departures, departures::decide(input, false));
    plan.add(Phase::MachineTimeouts, time_limits::decide(input));
    plan.add(Phase::LaunchSource, launch_source);
    let compared = settings::compare(input, group, &pin, refresh.holds_launch());
    // The version follows from the launch template, whatever the view lacks: calls that fail again and again would leave no
    // view settled, and new nodes could not join once the token has expired.
    plan.add(Phase::LaunchPin, Part::of_all(compared.launch(&desired.group)));
    if settled {
        plan.add(Phase::Settings, Part::of_all(compared.settings(&desired.group)));
        plan.add(Phase::RefreshEnd, refresh.stop(input, rollout.listed));
    }
    // A termination changes desired capacity and the live instances: bounds and desired capacity from this view would
    // revert the decrement, and the group would launch a replacement. They follow from the view that shows the
    // termination.
    if !plan.terminates_instances() && !refresh.is_to_be_reported(input) {
        plan = size(input, &rollout, target, permission, plan);
    }
    if settled {
        plan.add(Phase::Attachments, Part::of_all(compared.attachments(&desired.group)));
        plan.add(Phase::Attachments, suspended_processes::resume(input, group));
        plan.add(Phase::Attachments, hook_audit::read(input, refresh.takes_over()));
        plan.add(Phase::CleanUp, launch_template::prune(observed, &pin));
    }
    plan.compare(compared.comparison(input));
    plan
}

/// Decides about the instances that terminate, and nothing else: for a pool that no MachinePool refers to.
#[must_use]
pub fn terminations(input: &Input<'_>) -> Plan {
    let Input { desired, observed, .. } = *input;
    let mut plan = Plan::with_outdated(outdated::outdated(desired, observed, input.now));
    let GroupView::Present { group, .. } = &observed.group else { return plan };
    if let Some(blocker) = not_owned(desired, group) {
        plan.blocker = Some(blocker);
        return plan;
    }
    plan.add(Phase::Interruptions, spot_interruptions::decide(input));
    if observed.group.is_settled() {
        plan.add(Phase::Terminations, requests::decide(input, group, group.capacity.desired, false));
        plan.add(Phase::LifecycleActions, lifecycle_actions::decide(input));
    }
    plan.add(Phase::Departures, departures::decide(input, false));
    plan
}

/// The facts that a rollout depends on.
struct Rollout<'a> {
    group: &'a Group,
    pin: &'a Pin,
    outdated: &'a Outdated,
    refresh: &'a Refresh<'a>,
    /// Whether the listing of refreshes is recent enough.
    listed: bool,
}

/// Sets capacity, chooses victims of a scale-in, then replaces unhealthy instances, then outdated ones. Each depends on
/// the one before.
fn size(
    input: &Input<'_>,
    rollout: &Rollout<'_>,
    target: i32,
    permission: Permission,
    mut plan: Plan,
) -> Plan {
    let Rollout { group, pin, outdated, refresh, listed } = *rollout;
    let sizing = capacity::decide(input, group, target, outdated, refresh);
    if input.observed.group.is_settled() {
        plan.compare(settings::bounds::drift(input, group, sizing.capacity.bounds()));
    }
    plan.handed_back = sizing.handed_back;
    let before = group.capacity.desired;
    let raises = sizing.capacity.writes().any(|write| write.desired_capacity().is_some_and(|to| to > before));
    plan.add(if raises { Phase::ScaleOut } else { Phase::Capacity }, sizing.capacity);
    plan.add(Phase::ScaleIn, sizing.scale_in);
    if !sizing.is_as_desired {
        return plan;
    }
    let (remediation, remediates) = remediation::decide(input, target, outdated);
    plan.add(Phase::Replacements, remediation);
    if !remediates {
        plan.add(Phase::Replacements, rolling_update::decide(input, outdated, permission));
        plan.add(Phase::Replacements, refresh.start(input, group, pin, listed));
    }
    plan
}
