//! The versions of the launch template: their stamps, the one that the group is pinned to, and those that are missing.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{LaunchTemplateData, LaunchTemplateVersion};

use crate::machine_pool::model::launch_content::content_hash;
use crate::machine_pool::model::launch_record::LaunchRecord;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::{Known, Observed, ObservedTemplate, PoolInstance};

/// The stamps of the template's versions; versions without a stamp of the current scheme are left out.
#[must_use]
pub fn stamps(observed: &Observed) -> BTreeMap<i64, Stamp> {
    let Known::Present(ObservedTemplate { versions, .. }) = &observed.template else {
        return BTreeMap::new();
    };
    versions
        .iter()
        .filter_map(|(number, v)| Some((*number, Stamp::parse(v.description.as_deref()?)?)))
        .collect()
}

/// Whether this controller created the version, whatever the scheme of its stamp is.
#[must_use]
pub fn is_ours(version: &LaunchTemplateVersion) -> bool {
    version.description.as_deref().is_some_and(Stamp::is_stamp)
}

/// The stamp of the version that the group is pinned to.
#[must_use]
pub fn pinned_stamp(observed: &Observed) -> Option<Stamp> {
    let version = pinned_version(observed)?;
    stamps(observed).remove(&version)
}

/// The stamp that the next version follows: that of the version that the group is pinned to, or of our newest one if another
/// actor set the version.
#[must_use]
pub fn previous_stamp(observed: &Observed) -> Option<Stamp> {
    pinned_stamp(observed).or_else(|| stamps(observed).pop_last().map(|(_, stamp)| stamp))
}

/// The number that the group is pinned to; without a group, the newest version.
#[must_use]
pub fn pinned_version(observed: &Observed) -> Option<i64> {
    match (observed.group.present(), &observed.template) {
        (Some(group), Known::Present(ObservedTemplate { id, .. }))
            if group.settings.launch.template.id == *id =>
        {
            group.settings.launch.template.version
        }
        (None, Known::Present(ObservedTemplate { versions, .. })) => versions.keys().next_back().copied(),
        _ => None,
    }
}

/// Whether two versions differ in their user data and in nothing else that a hash contains. It is never read back, but the
/// stamps contain a hash of everything.
#[must_use]
pub fn differ_in_user_data_alone(observed: &Observed, one: i64, other: i64) -> bool {
    let Known::Present(ObservedTemplate { versions, .. }) = &observed.template else { return false };
    let parts = |number: i64| {
        let version = versions.get(&number)?;
        Some((Stamp::parse(version.description.as_deref()?)?.content, version.content.as_ref()?))
    };
    let both = parts(one).zip(parts(other));
    both.is_some_and(|((hash, content), (other_hash, other))| {
        hash != other_hash && content_hash(content, "") == content_hash(other, "")
    })
}

/// The content of the version that the group is pinned to, without user data.
#[must_use]
pub fn pinned_content(observed: &Observed) -> Option<&LaunchTemplateData> {
    let Known::Present(ObservedTemplate { versions, .. }) = &observed.template else { return None };
    versions.get(&pinned_version(observed)?)?.content.as_deref()
}

/// The versions that the group is pinned to or that its instances were launched from, and that are not among those that
/// were read. Nothing follows from such a version until it is read. What the ASGMachine of an instance records of the version
/// itself is as good.
#[must_use]
pub fn missing_versions(observed: &Observed) -> BTreeSet<i64> {
    let Some(ObservedTemplate { versions, .. }) = observed.template.present() else { return BTreeSet::new() };
    let pinned = pinned_version(observed).filter(|version| !versions.contains_key(version));
    let is_launched = |instance: &PoolInstance| matches!(record(instance), Some(LaunchRecord::Launched(_)));
    let instances = observed.instances.values().filter(|instance| !is_launched(instance));
    instances.filter_map(|instance| unread_version(observed, instance)).chain(pinned).collect()
}

/// The version of our launch template that an instance was launched from, if it is not among those that were read.
#[must_use]
pub fn unread_version(observed: &Observed, instance: &PoolInstance) -> Option<i64> {
    let versions = &observed.template.present()?.versions;
    version_of(observed, instance).filter(|version| !versions.contains_key(version))
}

/// The version of our launch template that an instance was launched from, while the group keeps the instance.
#[must_use]
pub fn version_of(observed: &Observed, instance: &PoolInstance) -> Option<i64> {
    let listed = instance.listed.as_ref().filter(|listed| !listed.lifecycle.is_terminating())?;
    let (template, version) = listed.template.as_ref()?;
    (*template == observed.template.present()?.id).then_some(*version)
}

/// What the ASGMachine of an instance records of its launch.
#[must_use]
pub fn record(instance: &PoolInstance) -> Option<&LaunchRecord> {
    instance.asg_machine.as_ref()?.launch_record.as_ref()
}

/// Whether an instance was launched from a version of the launch template of the pool that another actor created: its user
/// data and its version of Kubernetes are not known.
#[must_use]
pub fn is_of_foreign_version(observed: &Observed, instance: &PoolInstance) -> bool {
    let versions = observed.template.present().map(|template| &template.versions);
    let version = version_of(observed, instance).zip(versions).and_then(|(number, all)| all.get(&number));
    version.is_some_and(|version| !is_ours(version))
}

/// Whether an instance was launched from a version of our launch template that was not read, and that its ASGMachine does
/// not record: any version, while the launch template itself was not read.
#[must_use]
pub fn has_unknown_version(observed: &Observed, instance: &PoolInstance) -> bool {
    match &observed.template {
        Known::Unread(_) => instance.listed.is_some(),
        Known::Present(_) => record(instance).is_none() && unread_version(observed, instance).is_some(),
        Known::Absent => false,
    }
}

/// Whether an instance in the group was launched from another launch template than that of the pool, or from none: it was
/// attached, or the launch template was deleted and created again.
#[must_use]
pub fn is_of_another_template(observed: &Observed, instance: &PoolInstance) -> bool {
    let Known::Present(ObservedTemplate { id, .. }) = &observed.template else { return false };
    let listed = instance.listed.as_ref().filter(|listed| !listed.lifecycle.is_terminating());
    listed.is_some_and(|listed| listed.template.as_ref().is_none_or(|(template, _)| template != id))
}
