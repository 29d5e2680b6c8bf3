//! What happens to releases when a `HelmChartProxy` is deleted, or no longer selects their Clusters.

use std::collections::BTreeMap;

use kube::ResourceExt as _;

use super::depends_on::selects;
use crate::{HelmChartProxy, names};

/// Whether a `HelmChartProxy` leaves its releases in Clusters.
///
/// # Errors
/// If the annotation has another value than `Delete` and `Orphan`: the text says so.
pub(super) fn orphans(proxy: &HelmChartProxy) -> Result<bool, String> {
    match proxy.annotations().get(names::DELETION_POLICY).map(String::as_str) {
        None | Some("Delete") => Ok(false),
        Some("Orphan") => Ok(true),
        Some(other) => {
            Err(format!("annotation {} is {other:?}, and not Delete or Orphan", names::DELETION_POLICY))
        }
    }
}

/// Whether the release on a Cluster with these labels stays there when its `HelmReleaseProxy` is deleted. While the Cluster is
/// selected, the release is installed again, and uninstalled before. With a value that is not valid, it stays: an uninstallation
/// cannot be undone.
#[must_use]
pub fn is_orphaned(proxy: &HelmChartProxy, labels: &BTreeMap<String, String>) -> bool {
    let ends = proxy.metadata.deletion_timestamp.is_some() || !selects(proxy, labels);
    ends && orphans(proxy).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn releases_stay_if_the_policy_says_so_unless_they_are_installed_again() {
        let mut proxy: HelmChartProxy = serde_json::from_value(json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy", "metadata": {"name": "cni"},
            "spec": {
                "clusterSelector": {"matchLabels": {"cni": "demo"}}, "chartName": "cilium", "repoURL": "https://a.example",
            },
        }))
        .unwrap();
        let (selected, other) = ([("cni".to_owned(), "demo".to_owned())].into(), BTreeMap::new());
        for (policy, expected) in
            [(None, false), (Some("Delete"), false), (Some("Orphan"), true), (Some("orphan"), true)]
        {
            let policy = policy.map(|policy| (names::DELETION_POLICY.to_owned(), policy.to_owned()));
            proxy.metadata.annotations = Some(policy.into_iter().collect());
            assert_eq!((is_orphaned(&proxy, &selected), is_orphaned(&proxy, &other)), (false, expected));
        }
        assert!(orphans(&proxy).is_err_and(|why| why.contains("Delete or Orphan")));
        proxy.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert!(is_orphaned(&proxy, &selected));
    }
}
