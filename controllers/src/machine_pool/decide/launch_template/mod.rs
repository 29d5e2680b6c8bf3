//! Decides about the launch template: versions that are found by their content and pinned by number, and their
//! deletion.

mod pin;
mod prune;
mod renewal;

use std::collections::BTreeMap;

use capasg_api::pool::ChangePolicy;
use capasg_cloud::{LaunchTemplateData, LaunchTemplateVersion, MixedInstances, TemplateRef, Write};

use crate::machine_pool::model::memory::unknown_versions::Missing;
use crate::machine_pool::model::ownership::template_not_owned;
use crate::machine_pool::model::revision::desired_stamp;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::template_versions::{pinned_version, previous_stamp, record, unread_version};
use crate::machine_pool::model::{
    Desired, DesiredLaunch, Input, Known, Needs, Observed, ObservedTemplate, Part, retry_key, stamp,
};
use crate::names::template_tags;

pub use pin::Pin;
pub use prune::prune;
pub use renewal::{launched, renewed};

/// Decides which version the group is to launch, and creates it if it is missing.
#[must_use]
pub fn decide(input: &Input<'_>) -> (Pin, Part) {
    let Input { desired, observed, .. } = *input;
    // Another manager may have created the version that the group is pinned to: an identical one would change the group.
    if let Some(missing) = input.memory.unknown_versions.missing(observed, input.now) {
        return (Pin::Unchanged, read_versions(missing));
    }
    if rests_on_records(input) {
        return (Pin::Unchanged, read_versions(Missing::Read));
    }
    // What the spec names may be missing, not fit, or be rejected: the group continues to launch, with tokens that are valid.
    let is_unknown = matches!(desired.launch, DesiredLaunch::Unknown);
    let previous = if is_unknown { Some(renewed(input)) } else { instead_of_rejected(input) };
    let DesiredLaunch::Known { data, stamp, has_user_data } = previous.as_ref().unwrap_or(&desired.launch)
    else {
        return (Pin::Unchanged, Part::default());
    };
    let is_rejected = !is_unknown && previous.is_some();
    let unchanged = if is_rejected { Pin::Previous(None) } else { Pin::Unchanged };
    let create = |write: &dyn Fn() -> Write| {
        if *has_user_data {
            Part::of(write())
        } else {
            Part::needing(Needs { user_data: true, ..Needs::default() })
        }
    };
    let part = match &observed.template {
        Known::Unread(_) => Part::default(),
        // Not changed; terminations, lifecycle actions and remediation go on.
        Known::Present(_) if template_not_owned(desired, observed).is_some() => Part::default(),
        Known::Absent => create(&|| Write::CreateLaunchTemplate {
            name: desired.template.clone(),
            data: data.clone(),
            description: stamp.to_string(),
            tags: template_tags(&desired.tags),
            client_token: client_token(desired, observed, stamp),
        }),
        Known::Present(ObservedTemplate { id, versions, has_all_versions, .. }) => {
            let stamp = stamp.clone().following(previous_stamp(observed).as_ref());
            if let Some(number) = version_with(observed, versions, data, &stamp) {
                let version = TemplateRef { id: id.clone(), version: Some(number) };
                let pin = if is_rejected { Pin::Previous(Some(version)) } else { Pin::Version(version) };
                return (pin, Part::default());
            }
            if !has_all_versions {
                return (unchanged, read_versions(Missing::Read));
            }
            let latest = versions.keys().next_back();
            create(&|| Write::CreateLaunchTemplateVersion {
                id: id.clone(),
                data: data.clone(),
                description: stamp.to_string(),
                // The pinned version is included, so that AWS creates a version again that another actor deleted.
                client_token: stamp::hash(&(id, latest, pinned_version(observed), stamp.to_string())),
            })
        }
    };
    (unchanged, part)
}

/// The previous content with the current bootstrap data, while AWS rejects the content of the spec: each new token would only
/// be in another version that the group cannot be pinned to. The content of the spec is tried again when its retry is due, or
/// a user changes something.
fn instead_of_rejected(input: &Input<'_>) -> Option<DesiredLaunch> {
    let Input { objects, desired, observed, memory, now } = *input;
    let DesiredLaunch::Known { stamp: of_spec, .. } = &desired.launch else { return None };
    // A preview tries nothing of the spec, and lists it.
    let is_preview = objects.pool.spec.change_policy() == ChangePolicy::Preview;
    let key = || retry_key::user_key(objects, memory);
    if is_preview || !memory.failed_calls.rejects_launch_content(key, now) {
        return None;
    }
    let previous = renewed(input);
    let DesiredLaunch::Known { stamp, .. } = &previous else { return None };
    // With the same content and the same types, the same call would be rejected.
    let policy_differs = observed.group.present().is_some_and(|group| {
        group.settings.launch.mixed.as_ref().map(MixedInstances::without_other_members)
            != desired.settings.mixed
    });
    (policy_differs || stamp.content != of_spec.content).then_some(previous)
}

/// Whether instances are outdated by what their ASGMachines record alone, while not all versions were read: nothing is
/// replaced before the versions that they were launched from are.
fn rests_on_records(input: &Input<'_>) -> bool {
    let Input { desired, observed, .. } = *input;
    let Known::Present(ObservedTemplate { has_all_versions: false, .. }) = &observed.template else {
        return false;
    };
    let Some(wanted) = desired_stamp(desired, observed) else { return false };
    observed.instances.values().any(|instance| {
        unread_version(observed, instance).is_some()
            && record(instance).is_some_and(|record| record.stamp().outdated_under(&wanted))
    })
}

/// Reads the launch template, at once or once reads show all versions.
fn read_versions(missing: Missing) -> Part {
    match missing {
        Missing::Read => Part::needing(Needs { fresh_template: true, ..Needs::default() }),
        Missing::Time(wait) => Part::requeue(wait),
    }
}

/// The client token of a new launch template. A repeated call must not create a second one; but AWS answers a known
/// token with what it created then, even if that was deleted. The group names a deleted launch template until it is
/// replaced.
fn client_token(desired: &Desired, observed: &Observed, stamp: &Stamp) -> String {
    let stamp = stamp.to_string();
    match observed.group.present().map(|group| &group.settings.launch.template.id) {
        None => stamp::hash(&(&desired.owner_id, &desired.template, stamp)),
        Some(deleted) => stamp::hash(&(&desired.owner_id, &desired.template, stamp, deleted)),
    }
}

/// The version that holds exactly the content of `stamp`, with the same record of its bootstrap spec. If there are several,
/// it is the one that the group is pinned to, since another would change the group, or else the newest. A version of an
/// earlier release does not encrypt the other volumes of the image: the group is not pinned to it again. Nor is it to one that
/// tags Spot Instance requests, which EC2 accepts only if it makes one, or does not, although the pool launches nothing else.
fn version_with(
    observed: &Observed,
    versions: &BTreeMap<i64, LaunchTemplateVersion>,
    data: &LaunchTemplateData,
    stamp: &Stamp,
) -> Option<i64> {
    let description = stamp.to_string();
    let holds = |number: &i64| {
        versions.get(number).is_some_and(|version| version.description.as_deref() == Some(&description))
    };
    let content = |number: &i64| versions.get(number).and_then(|version| version.content.as_deref());
    let is_same = |number: &i64| {
        content(number).is_none_or(|content| content.encrypts_as(data) && content.spot == data.spot)
    };
    let fails = |number: &i64| content(number).is_some_and(|content| content.spot && !data.spot);
    let mut newest_first = versions.keys().rev().copied();
    let pinned = pinned_version(observed).filter(|number| holds(number) && !fails(number));
    pinned.or_else(|| newest_first.find(|number| holds(number) && is_same(number)))
}
