//! The versions of the launch template: their stamps, and the one that the group is pinned to.

use std::collections::BTreeMap;

use capasg_cloud::LaunchTemplateData;

use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::{Known, Observed, ObservedTemplate};

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
        (Some(group), Known::Present(ObservedTemplate { id, .. }))
            if group.settings.launch.template.id == *id =>
        {
            group.settings.launch.template.version
        }
        (None, Known::Present(ObservedTemplate { versions, .. })) => versions.keys().next_back().copied(),
        _ => None,
    }
}

/// The content of the version that the group is pinned to, without user data.
#[must_use]
pub fn pinned_content(observed: &Observed) -> Option<&LaunchTemplateData> {
    let Known::Present(ObservedTemplate { versions, .. }) = &observed.template else { return None };
    versions.get(&pinned_version(observed)?)?.content.as_deref()
}
