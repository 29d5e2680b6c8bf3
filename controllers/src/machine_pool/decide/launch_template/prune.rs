//! Deletes launch template versions that nothing uses.

use std::collections::BTreeSet;

use capasg_cloud::Write;

use crate::machine_pool::decide::launch_template::pin::Pin;
use crate::machine_pool::model::template_versions::pinned_version;
use crate::machine_pool::model::{Known, Observed, ObservedTemplate, Part};

/// The number of unused versions to keep, newest first, so that users can inspect the last changes.
const KEEP_UNUSED: usize = 3;
/// The number of unused versions at which one call deletes them: token rotations create one every few minutes.
const PRUNE_AT: usize = 10;
/// `DeleteLaunchTemplateVersions` accepts at most this many.
const PRUNE_AT_MOST: usize = 200;

/// Deletes versions that nothing uses, in one call once there are enough.
///
/// Never deletes a version that the group is pinned to or about to be, that an instance was launched from, that an
/// instance refresh launches, or that is the default, whose deletion AWS rejects.
#[must_use]
pub fn prune(observed: &Observed, pin: &Pin) -> Part {
    let Known::Present(ObservedTemplate { id, default_version, versions, .. }) = &observed.template else {
        return Part::default();
    };
    let mut used: BTreeSet<i64> = BTreeSet::from([*default_version]);
    used.extend(pinned_version(observed));
    used.extend(observed.instances.values().filter_map(|m| {
        let (template, version) = m.listed.as_ref()?.template.as_ref()?;
        (template == id).then_some(*version)
    }));
    match pin {
        Pin::Version(version) | Pin::Previous(Some(version)) => used.extend(version.version),
        Pin::Previous(None) | Pin::Unchanged => return Part::default(),
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
