//! Creates the group, once its absence is confirmed.

use capasg_cloud::{CreateGroup, Write};

use crate::machine_pool::decide::capacity::replica_handover;
use crate::machine_pool::decide::launch_template::Pin;
use crate::machine_pool::decide::machines::facts;
use crate::machine_pool::decide::timing::MISSING_FOR;
use crate::machine_pool::model::{Blocker, Input, Part};
use crate::names::account_of;

/// Creates a group that is absent. One that existed before is created again only after the account, the group itself
/// and its instances were read, since with wrong credentials or an incomplete answer the group would seem absent.
#[must_use]
pub fn create(input: &Input<'_>, pin: &Pin) -> Part {
    let desired = input.desired;
    let (is_absent, mut part) = confirm_absence(input);
    let Pin::Version(template) = pin else { return part };
    if !is_absent || desired.settings.subnets.is_empty() {
        return part;
    }
    part.push(Write::CreateGroup(Box::new(CreateGroup {
        name: desired.group.clone(),
        capacity: replica_handover::at_creation(desired),
        settings: desired.settings.with_template(template.clone()),
        tags: desired.tags.clone(),
        hooks: desired.hook.clone().into_iter().collect(),
    })));
    if !desired.suspended_processes.is_empty() {
        part.push(Write::SuspendProcesses {
            group: desired.group.clone(),
            processes: desired.suspended_processes.clone(),
        });
    }
    part
}

/// Whether the absence of a group that existed before is confirmed, and what must be read for that.
#[must_use]
pub fn confirm_absence(input: &Input<'_>) -> (bool, Part) {
    let Input { desired, observed, memory, .. } = *input;
    let mut part = Part::default();
    let Some(recorded) = desired.provider_id.as_deref().and_then(account_of) else {
        return (true, part);
    };
    match &observed.account {
        None => {
            part.needs.account = true;
            return (false, part);
        }
        Some(account) if account != recorded => {
            part.blocker =
                Some(Blocker::WrongAccount { credentials: account.clone(), group: recorded.to_owned() });
            return (false, part);
        }
        Some(_) => {}
    }
    if !input.fresh_group() {
        part.needs.fresh_group = true;
        return (false, part);
    }
    let mut running = Vec::new();
    for (id, instance) in &observed.instances {
        let Some(missing_since) = memory.sightings.terminating_since(id) else { continue };
        match instance.is_terminated_since(missing_since) {
            None => part.needs.merge(facts::of(id)),
            Some(false) => {
                part.merge(facts::read(input, id, instance, MISSING_FOR));
                running.push(id.clone());
            }
            Some(true) => {}
        }
    }
    if !running.is_empty() {
        part.blocker = Some(Blocker::GroupAbsentInstancesRun { instances: running });
        return (false, part);
    }
    (part.needs.facts.is_empty(), part)
}
