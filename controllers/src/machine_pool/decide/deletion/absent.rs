//! A deletion once the group is deleted: the remaining ASGMachines are released, then the launch template is deleted.

use capasg_cloud::Write;
use chrono::TimeDelta;

use crate::machine_pool::decide::deletion::remaining::{Waiting, draining, release};
use crate::machine_pool::decide::group::confirm_absence;
use crate::machine_pool::decide::timing::LISTING_LAG;
use crate::machine_pool::model::ownership::template_not_owned;
use crate::machine_pool::model::{DeletionPhase, Input, Known, ObservedTemplate, Part, Phase, Plan};

/// Releases the ASGMachines, then deletes the template.
pub(super) fn decide(input: &Input<'_>, waiting: Waiting) -> Plan {
    let (is_absent, confirmation) = confirm_absence(input);
    let mut plan = if !is_absent {
        Plan::of_deletion(DeletionPhase::DeletingGroup)
    } else if input.observed.instances.values().any(|m| m.asg_machine.is_some()) {
        let mut plan = Plan::of_deletion(draining(input.observed));
        plan.add(Phase::Departures, release(input, waiting));
        plan
    } else {
        delete_template(input)
    };
    plan.add(Phase::Removal, confirmation);
    plan
}

/// A creation that was requested by a process that died takes effect, and is listed, no later than this: the client waits 20
/// seconds for an answer.
const UNANSWERED: TimeDelta = TimeDelta::seconds(45);

/// Deletes the launch template, the last resource, once nothing runs.
pub(super) fn delete_template(input: &Input<'_>) -> Plan {
    let Input { desired, observed, .. } = *input;
    let mut part = Part::default();
    // A group of another owner is not about to be created.
    let absent_since = input.memory.ownership.absent_since();
    let absent_for = absent_since.map_or(TimeDelta::MAX, |since| input.now - since);
    // A pool that recorded its group knows its launch template.
    let is_unrecorded = desired.provider_id.is_none();
    let waits = |lag| Some(lag - absent_for).filter(|left| is_unrecorded && *left > TimeDelta::zero());
    let is_ours = template_not_owned(desired, observed).is_none();
    let phase = match &observed.template {
        Known::Unread(_) => DeletionPhase::DeletingLaunchTemplate,
        Known::Present(ObservedTemplate { id, .. }) if is_ours => {
            match waits(LISTING_LAG) {
                Some(left) => part.requeue_within(left),
                None => part.push(Write::DeleteLaunchTemplate { id: id.clone() }),
            }
            DeletionPhase::DeletingLaunchTemplate
        }
        Known::Absent if is_unrecorded => match waits(UNANSWERED) {
            Some(left) => {
                part.requeue_within(left);
                DeletionPhase::DeletingLaunchTemplate
            }
            None if !observed.template_was_read => {
                part.needs.fresh_template = true;
                DeletionPhase::DeletingLaunchTemplate
            }
            None => DeletionPhase::Done,
        },
        Known::Absent | Known::Present(_) => DeletionPhase::Done,
    };
    let mut plan = Plan::of_deletion(phase);
    plan.add(Phase::Removal, part);
    plan
}
