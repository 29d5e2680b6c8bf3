//! Decides about the launch template: content-addressed versions, pinned by number, and their pruning.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{LaunchTemplateVersion, TemplateRef, Write};

use super::super::{
    stamp::{self, Stamp},
    state::{Desired, LaunchWish, Observed, Obstacle, Plan, TemplateView},
};
use crate::names::template_tags;

/// Unused versions to keep, newest first: enough to look back at the last changes.
const KEEP_UNUSED: usize = 3;
/// Unused versions that pile up before one call prunes them all: token rotations make one every few minutes.
const PRUNE_AT: usize = 10;
/// `DeleteLaunchTemplateVersions` takes at most this many.
const PRUNE_AT_MOST: usize = 200;

/// What the group is to be pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// This version.
    Version(TemplateRef),
    /// Whatever it is pinned to now: the wish is not known, or its version is about to be made.
    Unchanged,
}

/// Decides which version the group is to launch from, and plans making it.
pub fn decide(desired: &Desired, observed: &Observed, plan: &mut Plan) -> Pin {
    let LaunchWish::Known { data, stamp, has_user_data } = &desired.launch else { return Pin::Unchanged };
    match &observed.template {
        TemplateView::Unknown => Pin::Unchanged,
        TemplateView::Absent => {
            if !has_user_data {
                plan.needs.user_data = true;
                return Pin::Unchanged;
            }
            plan.cloud(Write::CreateLaunchTemplate {
                name: desired.template.clone(),
                data: data.clone(),
                description: stamp.to_string(),
                tags: template_tags(&desired.tags),
                client_token: token_of_a_new_one(desired, observed, stamp),
            });
            Pin::Unchanged
        }
        TemplateView::Present { owner_id, .. } if owner_id.as_ref() != Some(&desired.owner_id) => {
            plan.obstacle = Some(Obstacle::ForeignTemplate { found: owner_id.clone() });
            Pin::Unchanged
        }
        TemplateView::Present { id, versions, .. } => {
            let stamp = stamp.clone().following(pinned_stamp(observed).as_ref());
            if let Some(number) = version_with(versions, &stamp) {
                return Pin::Version(TemplateRef { id: id.clone(), version: Some(number) });
            }
            if !has_user_data {
                plan.needs.user_data = true;
                return Pin::Unchanged;
            }
            let latest = versions.keys().next_back();
            plan.cloud(Write::CreateLaunchTemplateVersion {
                id: id.clone(),
                data: data.clone(),
                description: stamp.to_string(),
                // With the pin, so that the version which somebody deleted is not taken for made again.
                client_token: stamp::hash(&(id, latest, pinned_version(observed), stamp.to_string())),
            });
            Pin::Unchanged
        }
    }
}

/// A repeated call must not make a second template, and one that was deleted must not be taken for made: AWS answers a
/// known token with what it made then. While the deleted one is not replaced, the group names it.
fn token_of_a_new_one(desired: &Desired, observed: &Observed, stamp: &Stamp) -> String {
    let stamp = stamp.to_string();
    match observed.group.present().map(|group| &group.settings.launch.template.id) {
        None => stamp::hash(&(&desired.owner_id, &desired.template, stamp)),
        Some(deleted) => stamp::hash(&(&desired.owner_id, &desired.template, stamp, deleted)),
    }
}

/// The newest version that holds exactly the content of `stamp`, with the same record of its bootstrap spec.
fn version_with(versions: &BTreeMap<i64, LaunchTemplateVersion>, stamp: &Stamp) -> Option<i64> {
    let description = stamp.to_string();
    versions
        .iter()
        .rev()
        .find(|(_, v)| v.description.as_deref() == Some(description.as_str()))
        .map(|(number, _)| *number)
}

/// The stamps of the template's versions; versions of another scheme or origin are left out.
#[must_use]
pub fn stamps(observed: &Observed) -> BTreeMap<i64, Stamp> {
    let TemplateView::Present { versions, .. } = &observed.template else { return BTreeMap::new() };
    versions
        .iter()
        .filter_map(|(number, v)| Some((*number, Stamp::parse(v.description.as_deref()?)?)))
        .collect()
}

/// The stamp of the version that the group is pinned to.
#[must_use]
pub fn pinned_stamp(observed: &Observed) -> Option<Stamp> {
    let version = pinned_version(observed)?;
    stamps(observed).remove(&version)
}

/// The number that the group is pinned to; without a group, the newest version.
#[must_use]
pub fn pinned_version(observed: &Observed) -> Option<i64> {
    match (observed.group.present(), &observed.template) {
        (Some(group), TemplateView::Present { id, .. }) if group.settings.launch.template.id == *id => {
            group.settings.launch.template.version
        }
        (None, TemplateView::Present { versions, .. }) => versions.keys().next_back().copied(),
        _ => None,
    }
}

/// Plans the deletion of versions that nothing uses, in one call once enough have piled up.
///
/// Never one that the group is pinned to, that an instance was launched from, that a refresh launches, that is the default
/// (AWS refuses) or that is about to be pinned.
pub fn prune(observed: &Observed, pin: &Pin, plan: &mut Plan) {
    let TemplateView::Present { id, default_version, versions, .. } = &observed.template else { return };
    let mut used: BTreeSet<i64> = BTreeSet::from([*default_version]);
    used.extend(pinned_version(observed));
    used.extend(observed.members.values().filter_map(|m| {
        let (template, version) = m.instance.as_ref()?.template.as_ref()?;
        (template == id).then_some(*version)
    }));
    match pin {
        Pin::Version(version) => used.extend(version.version),
        Pin::Unchanged => return,
    }
    let refreshes = observed.refreshes.iter().flat_map(|view| view.refreshes.iter());
    let launched = refreshes.filter(|refresh| !refresh.status.is_over()).filter_map(|it| it.desired.as_ref());
    used.extend(launched.filter(|it| it.template.id == *id).filter_map(|it| it.template.version));
    let unused: Vec<i64> = versions.keys().rev().filter(|v| !used.contains(v)).copied().collect();
    if unused.len() >= PRUNE_AT {
        let versions: BTreeSet<i64> = unused.into_iter().skip(KEEP_UNUSED).take(PRUNE_AT_MOST).collect();
        plan.cloud(Write::DeleteLaunchTemplateVersions { id: id.clone(), versions });
    }
}
