//! Decides about a group that exists under the name of a pool with `adoptionPolicy: Adopt`: whether it can become the
//! pool's, what that changes, which is shown first, and the one write that does it, the tags. All else follows from the
//! view that shows them.

mod blockers;
mod changes;

use std::collections::BTreeSet;

use capasg_api::{names::tags::ADOPTED_FROM, pool::PendingChange};
use capasg_cloud::{Group, GroupTag, Write};
use chrono::TimeDelta;

use crate::machine_pool::model::adoption::origin;
use crate::machine_pool::model::{Blocker, Desired, DesiredLaunch, Input, Part};

/// Another actor may have read the group without an owner and tag it after us: it is believed to be ours from a read this
/// much later on.
const CONTENDED: TimeDelta = TimeDelta::seconds(10);
/// The status that shows what changes may be read back this much later.
const SHOWN: TimeDelta = TimeDelta::seconds(1);
/// Longest tag value that AWS takes.
const MAX_TAG_VALUE: usize = 256;

/// Whether the group that is not ours may become the pool's: one that the pool had already and that lost its tag may not,
/// since another actor took it away.
#[must_use]
pub fn is_requested(desired: &Desired, blocker: &Blocker) -> bool {
    desired.adopts && desired.provider_id.is_none() && matches!(blocker, Blocker::GroupNotOwned { .. })
}

/// Plans what the adoption comes to next: a blocker, the difference, or the tags. With it comes what it would change.
#[must_use]
pub fn decide(input: &Input<'_>, group: &Group) -> (Part, Vec<PendingChange>) {
    let Input { desired, observed, .. } = *input;
    if let Some(why) = blockers::blocker(desired, group) {
        return (Part { blocker: Some(Blocker::NotAdoptable { why }), ..Part::default() }, Vec::new());
    }
    let mut part = Part { blocker: Some(Blocker::Adopting), ..Part::default() };
    if matches!(desired.launch, DesiredLaunch::Unknown) || desired.settings.subnets.is_empty() {
        // A group that could not be corrected afterwards is left alone.
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

/// What is waited for if this process tagged the group so lately that another actor may still do so, too.
#[must_use]
pub fn contended(input: &Input<'_>) -> Option<Part> {
    let at = input.memory.ownership.adopted_at()?;
    if input.observed.group.as_of().is_some_and(|as_of| as_of >= at + CONTENDED) {
        return None;
    }
    let left = at + CONTENDED - input.now;
    let wait = if left > TimeDelta::zero() { Part::requeue(left) } else { Part::needing_group() };
    Some(Part { blocker: Some(Blocker::Adopting), ..wait })
}

/// The record: the group's template and those of its instances, as many as a tag takes.
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
