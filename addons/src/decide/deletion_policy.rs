//! What happens to releases when a `HelmChartProxy` is deleted, or no longer selects their Clusters.

use kube::ResourceExt as _;

use crate::{HelmChartProxy, HelmReleaseProxy, names};

use super::release_spec::is_another_release;

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

/// Whether the release of an object stays in the Cluster when the object is deleted. One that is to be installed again, since
/// its name, namespace or chart has changed, is uninstalled. With a value that is not valid, it stays: an uninstallation cannot
/// be undone.
#[must_use]
pub fn is_orphaned(proxy: &HelmChartProxy, release: &HelmReleaseProxy) -> bool {
    orphans(proxy).unwrap_or(true) && !is_another_release(release, proxy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HelmChartProxySpec, HelmReleaseProxySpec};

    #[test]
    fn releases_stay_if_the_policy_says_so_unless_they_are_installed_again() {
        let spec = HelmChartProxySpec { chart_name: "cilium".to_owned(), ..HelmChartProxySpec::default() };
        let mut proxy = HelmChartProxy::new("cni", spec);
        let spec = HelmReleaseProxySpec {
            chart_name: "cilium".to_owned(),
            release_namespace: "default".to_owned(),
            ..HelmReleaseProxySpec::default()
        };
        let release = HelmReleaseProxy::new("cni-prod", spec);
        assert!(!is_orphaned(&proxy, &release));
        for (policy, expected) in [("Delete", false), ("Orphan", true), ("orphan", true)] {
            proxy.annotations_mut().insert(names::DELETION_POLICY.to_owned(), policy.to_owned());
            assert_eq!(is_orphaned(&proxy, &release), expected, "{policy}");
        }
        assert!(orphans(&proxy).is_err_and(|why| why.contains("Delete or Orphan")));
        proxy.spec.chart_name = "calico".to_owned();
        assert!(!is_orphaned(&proxy, &release));
    }
}
