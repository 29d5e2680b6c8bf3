//! Finds the outdated instances, and why they are: by the hashes of launch template versions alone, so that a restart,
//! a failover or a move changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{LaunchTemplateData, LaunchTemplateVersion, NoticeKind};
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::adoption::{adopted_from, origin};
use crate::machine_pool::model::launch_content::launches_the_same;
use crate::machine_pool::model::launch_record::LaunchRecord;
use crate::machine_pool::model::revision::{desired_stamp, identity, revision_of};
use crate::machine_pool::model::stamp::{Stamp, hash};
use crate::machine_pool::model::template_versions::{
    has_unknown_version, is_of_another_template, is_ours, pinned_version, record, stamps, unread_version,
};
use crate::machine_pool::model::{
    Desired, DesiredLaunch, Input, Known, Observed, ObservedTemplate, Outdated, OutdatedReason, PoolInstance,
    instances,
};

/// For how long the desired state has been the same. A new leader waits again, since it does not know what was desired
/// before.
#[must_use]
pub fn desired_age(input: &Input<'_>) -> TimeDelta {
    let identity = identity(input.desired, input.observed);
    let since = input.memory.rollout.desired_since(identity.as_ref());
    since.map_or(TimeDelta::zero(), |since| input.now - since)
}

/// Whether the rolling update replaces an outdated instance: it is not paused, and the strategy allows it.
#[must_use]
pub fn is_to_replace(input: &Input<'_>, outdated: &Outdated, id: &str, instance: &PoolInstance) -> bool {
    let is_replaced = outdated.reason(id).is_some_and(|reason| reason.is_replaced_one_by_one(input.desired));
    is_replaced && !instance.is_paused()
}

/// The live instances that the rolling update replaces.
pub fn to_replace<'a>(
    input: &Input<'a>,
    outdated: &'a Outdated,
) -> impl Iterator<Item = (&'a String, &'a PoolInstance)> + use<'a> {
    let input = *input;
    instances::live(input.observed).filter(move |(id, m)| is_to_replace(&input, outdated, id, m))
}

/// The revision of most of the outdated instances.
#[must_use]
pub fn most_common_revision(desired: &Desired, observed: &Observed, outdated: &Outdated) -> Option<String> {
    let Known::Present(ObservedTemplate { id: template, .. }) = &observed.template else { return None };
    let stamps = stamps(observed);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, instance) in observed.instances.iter().filter(|(id, _)| outdated.is_outdated(id)) {
        if let Some(stamp) = stamp_of(instance, template, &stamps) {
            *counts.entry(revision_of(stamp, desired)).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(revision, _)| revision)
}

/// How long until another instance becomes outdated by its age, or since it is old enough.
#[must_use]
pub fn until_next(input: &Input<'_>) -> Option<TimeDelta> {
    let Input { desired, observed, now, .. } = *input;
    let expiries = instances::live(observed).filter_map(|(id, instance)| expires_at(desired, id, instance));
    let is_recommended = |instance: &PoolInstance| {
        desired.rebalance && instance.notice == Some(NoticeKind::RebalanceRecommendation)
    };
    let recommended = instances::live(observed).filter(|(_, instance)| is_recommended(instance));
    let settled = recommended.filter_map(|(_, instance)| settles_at(instance));
    let next = expiries.chain(settled).chain(desired.rollout.after).filter(|at| *at > now).min()?;
    Some(next - now)
}

/// When an instance exceeds its lifetime: up to a tenth before the limit, depending on its ID, so that instances that
/// were launched together do not expire together.
fn expires_at(desired: &Desired, id: &str, instance: &PoolInstance) -> Option<DateTime<Utc>> {
    let lifetime = desired.rollout.max_instance_lifetime?;
    let spread = u64::from_str_radix(&hash(&id), 16).unwrap_or(0) % 1000;
    let earlier = lifetime.num_seconds() * i64::try_from(spread).unwrap_or(0) / 10_000;
    Some(instance.launched_at()? + lifetime - TimeDelta::seconds(earlier))
}

/// Compares each instance's launch template version with the desired one (H3), then its type, users' requests, and its
/// age. What its ASGMachine records counts for an instance of another launch template. The first reason for which the strategy replaces instances counts, else the first. A version with a stamp of
/// another scheme never makes an instance outdated, unless the group was adopted with it. A version that another actor
/// created has no stamp: its content is compared.
#[must_use]
pub fn outdated(desired: &Desired, observed: &Observed, now: DateTime<Utc>) -> Outdated {
    let all = observed.instances.iter();
    let unknown = all.clone().filter(|(_, instance)| has_unknown_version(observed, instance));
    let unknown = unknown.map(|(id, _)| id.clone()).collect();
    let none = BTreeMap::new();
    let (template, versions) = match &observed.template {
        Known::Present(ObservedTemplate { id, versions, .. }) => (id.as_str(), versions),
        // Another actor deleted it: what the ASGMachines record counts.
        Known::Absent => ("", &none),
        Known::Unread(_) => return Outdated::new(BTreeMap::new(), unknown),
    };
    let stamps = stamps(observed);
    let wanted = desired_stamp(desired, observed);
    let image = match &desired.launch {
        DesiredLaunch::Known { data, .. } => Some(data.image_id.clone()),
        DesiredLaunch::Unknown => {
            pinned_version(observed).and_then(|version| versions.get(&version)?.image_id.clone())
        }
    };
    let foreign = foreign_outdated(desired, versions, &stamps, wanted.as_ref());
    let adopted = adopted_from(observed.group.present());
    // One that was launched from the launch template of the pool before that was deleted has another record.
    let is_found = |instance: &PoolInstance| match record(instance) {
        Some(LaunchRecord::Launched(_)) => false,
        Some(LaunchRecord::Found { .. }) if unread_version(observed, instance).is_some() => true,
        _ => is_of_another_template(observed, instance),
    };
    let made = |instance: &PoolInstance| {
        let listed = instance.listed.as_ref()?;
        // A group that was kept, and is adopted by a pool of the same name, has the launch template of that pool. Another
        // actor may delete that later: what the pool launched from it has a record of its own.
        let is_launched = matches!(record(instance), Some(LaunchRecord::Launched(_)));
        let is_adopted = adopted.contains(origin(listed)) && origin(listed) != template && !is_launched;
        if wanted.is_some() && is_adopted {
            return Some(OutdatedReason::Adopted);
        }
        let from =
            listed.template.as_ref().filter(|(id, _)| id.as_str() == template).map(|(_, version)| version);
        let before = from.and_then(|version| versions.get(version));
        let launched_from = stamp_of(instance, template, &stamps).zip(wanted.as_ref());
        let is_outdated = launched_from.is_some_and(|(stamp, wanted)| stamp.outdated_under(wanted));
        if is_outdated || from.is_some_and(|version| foreign.contains(version)) {
            return Some(changed(before, image.as_ref()));
        }
        // Nobody removed the type of an instance that others launched with another one, as its record tells, until the types
        // of the spec change.
        let has_other_type = match record(instance) {
            Some(record) => record.has_other_type(&desired.instance_types),
            None => is_of_another_template(observed, instance),
        };
        let removed = listed.instance_type.as_ref().filter(|kind| !desired.instance_types.contains(kind));
        let removed = removed.filter(|_| !has_other_type);
        removed.map(|_| OutdatedReason::TypeRemoved)
    };
    let reason = |id: &str, instance: &PoolInstance| {
        instance.listed.as_ref().filter(|i| !i.lifecycle.is_terminating())?;
        match made(instance) {
            Some(reason) if reason.is_replaced_one_by_one(desired) => Some(reason),
            // Users replace instances of another spec themselves, but requested the replacement of this one.
            made => requested_or_aged(desired, id, instance, now)
                .filter(|reason| made.is_none() || reason.is_replaced_one_by_one(desired))
                .or(made),
        }
    };
    Outdated::new(
        all.clone().filter_map(|(id, instance)| Some((id.clone(), reason(id, instance)?))).collect(),
        unknown,
    )
    .with_another_template(all.filter(|(_, instance)| is_found(instance)).map(|(id, _)| id.clone()))
}

/// The stamp of the launch template version that an instance was launched from, or what its ASGMachine records instead if
/// that version was not read or has none, or the pool has another launch template.
fn stamp_of<'a>(
    instance: &'a PoolInstance,
    template: &str,
    stamps: &'a BTreeMap<i64, Stamp>,
) -> Option<&'a Stamp> {
    let from = instance.listed.as_ref()?.template.as_ref().filter(|(id, _)| id == template);
    from.and_then(|(_, version)| stamps.get(version)).or_else(|| record(instance).map(LaunchRecord::stamp))
}

/// EC2 may recommend to rebalance an instance minutes after its launch. It is not replaced before this age: where AWS
/// recommends it for each new instance, replacements would follow each other without a pause.
const LEAST_AGE: TimeDelta = TimeDelta::minutes(15);

/// When a recommendation to rebalance an instance counts.
fn settles_at(instance: &PoolInstance) -> Option<DateTime<Utc>> {
    instance.launched_at().map(|launched| launched + LEAST_AGE)
}

/// Why an instance is outdated, whatever its launch template version is.
fn requested_or_aged(
    desired: &Desired,
    id: &str,
    instance: &PoolInstance,
    now: DateTime<Utc>,
) -> Option<OutdatedReason> {
    if instance.asg_machine.as_ref().is_some_and(|machine| machine.replace_requested) {
        return Some(OutdatedReason::ReplaceRequested);
    }
    match instance.notice {
        Some(NoticeKind::ScheduledRetirement) => return Some(OutdatedReason::RetirementScheduled),
        Some(NoticeKind::RebalanceRecommendation)
            if desired.rebalance && settles_at(instance).is_none_or(|at| at <= now) =>
        {
            return Some(OutdatedReason::RebalanceRecommended);
        }
        _ => {}
    }
    // Before that time no instance is outdated by it: a replacement would be launched too early as well.
    let after = desired.rollout.after.filter(|after| *after <= now);
    if after.is_some_and(|after| instance.launched_at().is_some_and(|launched| launched < after)) {
        return Some(OutdatedReason::LaunchedBefore);
    }
    expires_at(desired, id, instance).filter(|at| *at <= now).map(|_| OutdatedReason::LifetimeExceeded)
}

/// The versions that another actor created and that launch other instances than the desired ones. They are compared with
/// the desired content, and with that of each of our versions whose instances are up to date: those have, for example, the
/// security groups that the spec selected before another one got the tags. While the desired content is unknown, it is
/// that of our newest version.
fn foreign_outdated(
    desired: &Desired,
    versions: &BTreeMap<i64, LaunchTemplateVersion>,
    stamps: &BTreeMap<i64, Stamp>,
    wanted: Option<&Stamp>,
) -> BTreeSet<i64> {
    let mut foreign = versions.iter().filter(|(_, version)| !is_ours(version)).peekable();
    if foreign.peek().is_none() {
        return BTreeSet::new();
    }
    let content = |number: &i64| versions.get(number)?.content.as_deref();
    let current: Vec<&LaunchTemplateData> = match &desired.launch {
        DesiredLaunch::Known { data, .. } => {
            let kept = |stamp: &Stamp| wanted.is_some_and(|wanted| !stamp.outdated_under(wanted));
            let ours =
                stamps.iter().filter(|(_, stamp)| kept(stamp)).filter_map(|(number, _)| content(number));
            ours.chain([&**data]).collect()
        }
        DesiredLaunch::Unknown => stamps.keys().next_back().and_then(content).into_iter().collect(),
    };
    let is_other = |content: &LaunchTemplateData| {
        !current.is_empty() && current.iter().all(|data| !launches_the_same(content, data))
    };
    let others = foreign.filter(|(_, version)| version.content.as_deref().is_some_and(is_other));
    others.map(|(number, _)| *number).collect()
}

fn changed(before: Option<&LaunchTemplateVersion>, image: Option<&String>) -> OutdatedReason {
    let had = before.and_then(|version| version.image_id.as_ref());
    match (had, image) {
        (Some(had), Some(image)) if had != image => OutdatedReason::ImageChanged,
        _ => OutdatedReason::TemplateChanged,
    }
}
