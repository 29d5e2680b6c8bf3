//! The order of `HelmChartProxies` on a Cluster.

use std::collections::BTreeSet;

use capasg_api::conditions::{READY, is_true};
use kube::ResourceExt as _;

use crate::{HelmChartProxy, HelmReleaseProxy, names};

/// The `HelmChartProxies` that one names in its annotation, without itself.
#[must_use]
pub fn dependencies(proxy: &HelmChartProxy) -> BTreeSet<String> {
    let value = proxy.annotations().get(names::DEPENDS_ON).map(String::as_str).unwrap_or_default();
    let named = value.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != proxy.name_any());
    named.map(str::to_owned).collect()
}

/// Those of them whose release on a Cluster is not ready, or does not exist. A release is ready for its current spec alone.
#[must_use]
pub fn not_ready(
    dependencies: &BTreeSet<String>,
    cluster: &str,
    releases: &[HelmReleaseProxy],
) -> Vec<String> {
    let is_ready = |name: &&String| {
        releases.iter().any(|release| {
            release.labels().get(names::CHART_PROXY_LABEL) == Some(*name)
                && release.spec.cluster_ref.name == cluster
                && is_ready(release)
        })
    };
    dependencies.iter().filter(|name| !is_ready(name)).cloned().collect()
}

fn is_ready(release: &HelmReleaseProxy) -> bool {
    let status = release.status.as_ref();
    release.metadata.deletion_timestamp.is_none()
        && status.is_some_and(|status| {
            status.observed_generation == release.metadata.generation && is_true(&status.conditions, READY)
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn proxy(annotation: &str) -> HelmChartProxy {
        let mut proxy = HelmChartProxy::new("csi", crate::HelmChartProxySpec::default());
        proxy.annotations_mut().insert(names::DEPENDS_ON.to_owned(), annotation.to_owned());
        proxy
    }

    fn release(chart: &str, cluster: &str, generation: i64, ready: &str) -> HelmReleaseProxy {
        serde_json::from_value(json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
            "metadata": {"name": "a", "generation": 2, "labels": {names::CHART_PROXY_LABEL: chart}},
            "spec": {"clusterRef": {"name": cluster}, "chartName": "a", "repoURL": "b", "namespace": "c"},
            "status": {"observedGeneration": generation, "conditions": [{
                "type": "Ready", "status": ready, "reason": "a", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        }))
        .unwrap()
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_are_separated_by_commas_and_a_proxy_does_not_wait_for_itself() {
        assert_eq!(dependencies(&proxy(" cni, ccm,,csi , cni")), set(&["ccm", "cni"]));
        assert_eq!(dependencies(&proxy("")), set(&[]));
        assert_eq!(dependencies(&HelmChartProxy::new("a", crate::HelmChartProxySpec::default())), set(&[]));
    }

    #[test]
    fn a_release_is_ready_on_its_cluster_for_its_current_spec() {
        let wanted = set(&["cni"]);
        assert_eq!(not_ready(&wanted, "prod", &[release("cni", "prod", 2, "True")]), Vec::<String>::new());
        for other in [
            release("cni", "prod", 1, "True"),
            release("cni", "prod", 2, "False"),
            release("cni", "dev", 2, "True"),
            release("ccm", "prod", 2, "True"),
        ] {
            assert_eq!(not_ready(&wanted, "prod", &[other]), ["cni"]);
        }
        let mut deleted = serde_json::to_value(release("cni", "prod", 2, "True")).unwrap();
        deleted["metadata"]["deletionTimestamp"] = Value::from("2026-01-01T00:00:00Z");
        assert_eq!(not_ready(&wanted, "prod", &[serde_json::from_value(deleted).unwrap()]), ["cni"]);
        assert_eq!(not_ready(&wanted, "prod", &[]), ["cni"]);
    }
}
