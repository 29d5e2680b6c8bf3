//! On how many Clusters a `HelmChartProxy` changes its release at the same time.

use std::collections::BTreeSet;

use capasg_api::conditions::{Status, get};
use kube::ResourceExt as _;

use super::depends_on::is_ready;
use crate::{
    HelmChartProxy, HelmReleaseProxy,
    kinds::conditions::{CLUSTER_AVAILABLE, reasons},
    names,
};

/// The Clusters on which the release may change now.
#[derive(Debug)]
pub(super) struct Slots {
    /// At most so many; `None` without a limit.
    pub limit: Option<usize>,
    /// The Clusters on which it changes: the release is not ready for its current spec. One whose change fails stays among
    /// them, so that a change that fails reaches no others.
    pub changing: BTreeSet<String>,
}

impl Slots {
    /// Reads the annotation: a number, or a percentage of the `selected` Clusters, rounded down. At least one may change.
    /// `open` are those that are neither paused nor being deleted: on others nothing changes, for as long as that lasts.
    ///
    /// # Errors
    /// What is wrong with the annotation.
    pub(super) fn of(
        proxy: &HelmChartProxy,
        selected: usize,
        open: &BTreeSet<&str>,
        releases: &[HelmReleaseProxy],
    ) -> Result<Self, String> {
        let Some(value) = proxy.annotations().get(names::MAX_CHANGING) else {
            return Ok(Self { limit: None, changing: BTreeSet::new() });
        };
        let limit = match value.strip_suffix('%') {
            Some(percent) => {
                percent.parse().ok().map(|percent: usize| selected.saturating_mul(percent) / 100)
            }
            None => value.parse().ok(),
        };
        let limit = limit.ok_or_else(|| {
            format!("annotation {} is {value:?}, and not a number or a percentage", names::MAX_CHANGING)
        })?;
        let clusters = releases.iter().filter(|release| is_changing(release));
        let clusters = clusters.map(|release| release.spec.cluster_ref.name.as_str());
        let changing = clusters.filter(|name| open.contains(name)).map(str::to_owned).collect();
        Ok(Self { limit: Some(limit.max(1)), changing })
    }

    /// Whether the release may change on a Cluster, which counts from now on. A change that is not complete may be changed
    /// again: that corrects it.
    pub(super) fn take(&mut self, cluster: &str) -> bool {
        let may =
            self.changing.contains(cluster) || self.limit.is_none_or(|limit| self.changing.len() < limit);
        if may {
            self.changing.insert(cluster.to_owned());
        }
        may
    }
}

/// Whether a release is not ready for its current spec. On a new Cluster it changes once the API server responds, and no other
/// Cluster waits for that.
#[must_use]
pub fn is_changing(release: &HelmReleaseProxy) -> bool {
    let conditions = release.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let unavailable = get(conditions, CLUSTER_AVAILABLE)
        .filter(|condition| condition.status == Status::False.as_str())
        .map(|condition| condition.reason.as_str());
    let is_new = match unavailable {
        Some(
            reasons::GET_CLUSTER_FAILED
            | reasons::CONTROL_PLANE_NOT_AVAILABLE
            | reasons::GET_KUBECONFIG_FAILED,
        ) => true,
        // A change may be the reason.
        Some(reasons::CLUSTER_UNREACHABLE) => !release.is_installed(),
        _ => false,
    };
    !is_ready(release) && !is_new
}
