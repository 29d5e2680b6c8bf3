//! Deletes launch template versions that nothing uses.

use std::collections::BTreeSet;

use capasg_cloud::Write;

use crate::machine_pool::decide::launch_template::pin::Pin;
use crate::machine_pool::model::template_versions::pinned_version;
use crate::machine_pool::model::{Observed, Part, TemplateView};

/// Unused versions to keep, newest first: enough to look up the last changes.
const KEEP_UNUSED: usize = 3;
/// Unused versions that pile up before one call prunes them all: token rotations make one every few minutes.
const PRUNE_AT: usize = 10;
/// `DeleteLaunchTemplateVersions` takes at most this many.
const PRUNE_AT_MOST: usize = 200;

/// Deletes versions that nothing uses, in one call once enough have piled up.
///
/// Never one that the group is pinned to, that an instance was launched from, that a refresh launches, that is the default
/// (AWS refuses) or that is about to be pinned.
#[must_use]
pub fn prune(observed: &Observed, pin: &Pin) -> Part {
    let TemplateView::Present { id, default_version, versions, .. } = &observed.template else {
        return Part::default();
    };
    let mut used: BTreeSet<i64> = BTreeSet::from([*default_version]);
    used.extend(pinned_version(observed));
    used.extend(observed.instances.values().filter_map(|m| {
        let (template, version) = m.listed.as_ref()?.template.as_ref()?;
        (template == id).then_some(*version)
    }));
    match pin {
        Pin::Version(version) => used.extend(version.version),
        Pin::Unchanged => return Part::default(),
    }
    let refreshes = observed.refreshes.iter().flat_map(|view| view.refreshes.iter());
    let launched =
        refreshes.filter(|refresh| !refresh.status.is_finished()).filter_map(|it| it.desired.as_ref());
    used.extend(launched.filter(|it| it.template.id == *id).filter_map(|it| it.template.version));
    let unused: Vec<i64> = versions.keys().rev().filter(|v| !used.contains(v)).copied().collect();
    if unused.len() < PRUNE_AT {
        return Part::default();
    }
    let versions: BTreeSet<i64> = unused.into_iter().skip(KEEP_UNUSED).take(PRUNE_AT_MOST).collect();
    Part::of(Write::DeleteLaunchTemplateVersions { id: id.clone(), versions })
}
