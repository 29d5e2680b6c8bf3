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

/// Deletes the launch template, the last resource, once nothing runs.
pub(super) fn delete_template(input: &Input<'_>) -> Plan {
    let Input { desired, observed, .. } = *input;
    let mut part = Part::default();
    let phase = match &observed.template {
        Known::Unread(_) => DeletionPhase::DeletingLaunchTemplate,
        Known::Present(ObservedTemplate { id, .. }) if template_not_owned(desired, observed).is_none() => {
            let absent_since = input.memory.ownership.absent_since();
            let absent_for = absent_since.map_or(TimeDelta::zero(), |since| input.now - since);
            if desired.provider_id.is_none() && absent_for < LISTING_LAG {
                part.requeue_within(LISTING_LAG - absent_for);
            } else {
                part.push(Write::DeleteLaunchTemplate { id: id.clone() });
            }
            DeletionPhase::DeletingLaunchTemplate
        }
        Known::Absent | Known::Present(_) => DeletionPhase::Done,
    };
    let mut plan = Plan::of_deletion(phase);
    plan.add(Phase::Removal, part);
    plan
}
