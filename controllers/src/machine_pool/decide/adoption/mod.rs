//! Decides about the adoption of a group that exists under the name of a pool with `adoptionPolicy: Adopt`: whether it
//! can be adopted, and what that changes, which is reported first. The adoption itself is one write, the tags;
//! everything else follows from the view that shows them.

mod blockers;
mod changes;

use std::collections::BTreeSet;

use capasg_api::{names::tags::ADOPTED_FROM, pool::PendingChange};
use capasg_cloud::{Group, GroupTag, Write};
use chrono::TimeDelta;

use crate::machine_pool::model::adoption::origin;
use crate::machine_pool::model::{Blocker, Desired, DesiredLaunch, Input, Part, unless_set_back};

/// Another controller may have read the group without an owner, and tag it after this one. So a read counts only if it
/// starts this long after the tags were written.
const CONTENDED: TimeDelta = TimeDelta::seconds(10);
/// The status with the changes is read back this long after it was written.
const SHOWN: TimeDelta = TimeDelta::seconds(1);
/// Longest tag value that AWS accepts.
const MAX_TAG_VALUE: usize = 256;

/// Whether the spec requests the adoption of a group that the pool does not own. A group that the pool owned before is
/// not adopted again: another actor removed its tag.
#[must_use]
pub fn is_requested(desired: &Desired, blocker: &Blocker) -> bool {
    desired.adopts && desired.provider_id.is_none() && matches!(blocker, Blocker::GroupNotOwned { .. })
}

/// Plans the next step of an adoption: a blocker, the report of the changes, or the tags. Returns the changes, too.
#[must_use]
pub fn decide(input: &Input<'_>, group: &Group) -> (Part, Vec<PendingChange>) {
    let Input { desired, observed, .. } = *input;
    if let Some(why) = blockers::blocker(desired, group) {
        return (Part { blocker: Some(Blocker::NotAdoptable { why }), ..Part::default() }, Vec::new());
    }
    let mut part = Part { blocker: Some(Blocker::Adopting), ..Part::default() };
    if matches!(desired.launch, DesiredLaunch::Unknown) || desired.settings.subnets.is_empty() {
        // A group that could not be corrected afterwards is not changed.
        return (part, Vec::new());
    }
    if !observed.hook.is_read() {
        // The changes name our hook.
        part.needs.hook = true;
        return (part, Vec::new());
    }
    let changes = changes::changes(input, group);
    if desired.previews {
        return (part, changes);
    }
    if changes != desired.shown {
        part.requeue_within(SHOWN);
    } else if !observed.group.is_settled() || !input.fresh_group() {
        part.needs.fresh_group = true;
    } else {
        part.in_transition = true;
        let mut tags = desired.tags.clone();
        tags.insert(ADOPTED_FROM.to_owned(), GroupTag { value: origins(group), propagate: false });
        part.push(Write::TagGroup { group: desired.group.clone(), tags });
    }
    (part, changes)
}

/// What is waited for if this process tagged the group so recently that another controller may still do so, too.
#[must_use]
pub fn contended(input: &Input<'_>) -> Option<Part> {
    let at = unless_set_back(input.memory.ownership.adopted_at()?, input.now)?;
    if input.observed.group.as_of().is_some_and(|as_of| as_of >= at + CONTENDED) {
        return None;
    }
    let left = at + CONTENDED - input.now;
    let wait = if left > TimeDelta::zero() { Part::requeue(left) } else { Part::needing_group() };
    Some(Part { blocker: Some(Blocker::Adopting), ..wait })
}

/// The record: the launch template of the group and those of its instances, as many as fit into a tag.
fn origins(group: &Group) -> String {
    let mut record = group.settings.launch.template.id.clone();
    let mut known = BTreeSet::from([record.clone()]);
    for instance in &group.instances {
        let from = origin(instance);
        if known.insert(from.to_owned()) && record.len() + from.len() < MAX_TAG_VALUE {
            record.push(' ');
            record.push_str(from);
        }
    }
    record
}
