//! The order of `HelmChartProxies` on a Cluster.

use std::collections::{BTreeMap, BTreeSet};

use capasg_api::{
    conditions::{READY, is_true},
    names::addons::Phase,
    time::from_kubernetes,
};
use chrono::{DateTime, TimeDelta, Utc};
use kube::{
    ResourceExt as _,
    core::{Selector, SelectorExt as _},
};

use super::phases::asks_for;
use crate::{HelmChartProxy, HelmReleaseProxy, names};

/// Objects that are deleted together are not deleted at the same moment: one by one, or each by its own reconcile.
const DELETED_TOGETHER: TimeDelta = TimeDelta::seconds(10);

/// The `HelmChartProxies` that one names in its annotation, without itself.
#[must_use]
pub fn dependencies(proxy: &HelmChartProxy) -> BTreeSet<String> {
    let value = proxy.annotations().get(names::DEPENDS_ON).map(String::as_str).unwrap_or_default();
    let named = value.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != proxy.name_any());
    named.map(str::to_owned).collect()
}

/// The `HelmChartProxies` that are installed before one on Clusters that have no release of it: those that ask for the phase
/// after the initialization of the control plane, unless it asks for the phase as well, or they depend on it. `proxies` are
/// those of the namespace.
#[must_use]
pub fn installed_first<'a>(proxy: &HelmChartProxy, proxies: &'a [HelmChartProxy]) -> Vec<&'a HelmChartProxy> {
    let asks = |proxy: &HelmChartProxy| asks_for(proxy, Phase::AfterControlPlaneInitialized);
    if asks(proxy) {
        return Vec::new();
    }
    let graph = graph(proxies);
    let depends =
        |other: &HelmChartProxy| reachable(&graph, &other.name_any()).contains(proxy.name_any().as_str());
    let is_first = |other: &&HelmChartProxy| {
        asks(other) && other.metadata.deletion_timestamp.is_none() && !depends(other)
    };
    proxies.iter().filter(is_first).collect()
}

/// Whether a `HelmChartProxy` selects a Cluster with these labels.
#[must_use]
pub fn selects(proxy: &HelmChartProxy, labels: &BTreeMap<String, String>) -> bool {
    let selector = Selector::try_from(proxy.spec.cluster_selector.clone());
    selector.is_ok_and(|selector| selector.matches(labels))
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

/// Whether a release is ready for its current spec.
#[must_use]
pub fn is_ready(release: &HelmReleaseProxy) -> bool {
    let status = release.status.as_ref();
    release.metadata.deletion_timestamp.is_none()
        && status.is_some_and(|status| {
            status.observed_generation == release.metadata.generation && is_true(&status.conditions, READY)
        })
}

/// The releases that are uninstalled before one that is being deleted, by the names of their `HelmReleaseProxies`: those on
/// its Cluster that depend on it and are being deleted as well, or that may be in a moment. Of two that depend on each other,
/// neither waits. `proxies` and `releases` are those of the namespace.
#[must_use]
pub fn uninstalled_first(
    own: &HelmReleaseProxy,
    proxies: &[HelmChartProxy],
    releases: &[HelmReleaseProxy],
    now: DateTime<Utc>,
) -> Vec<String> {
    let of = |release: &HelmReleaseProxy| release.labels().get(names::CHART_PROXY_LABEL).cloned();
    let (Some(chart), Some(deleted)) = (of(own), own.metadata.deletion_timestamp.as_ref()) else {
        return Vec::new();
    };
    let may_follow = now - from_kubernetes(deleted) < DELETED_TOGETHER;
    let graph = graph(proxies);
    let below = reachable(&graph, &chart);
    let depends = |other: &str| !below.contains(other) && reachable(&graph, other).contains(chart.as_str());
    let is_first = |release: &&HelmReleaseProxy| {
        release.spec.cluster_ref.name == own.spec.cluster_ref.name
            && (may_follow || release.metadata.deletion_timestamp.is_some())
            && of(release).is_some_and(|other| depends(&other))
    };
    releases.iter().filter(is_first).map(kube::ResourceExt::name_any).collect()
}

fn graph(proxies: &[HelmChartProxy]) -> BTreeMap<String, BTreeSet<String>> {
    proxies.iter().map(|proxy| (proxy.name_any(), dependencies(proxy))).collect()
}

/// What one depends on, directly or through others.
fn reachable<'a>(graph: &'a BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = graph.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(name) = next.pop() {
        if found.insert(name) {
            next.extend(graph.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    found
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

    fn chart(name: &str, annotation: &str) -> HelmChartProxy {
        let mut proxy = proxy(annotation);
        proxy.metadata.name = Some(name.to_owned());
        proxy
    }

    #[test]
    fn those_that_depend_on_a_release_are_uninstalled_before_it() {
        let charts = [chart("cni", ""), chart("ccm", "cni"), chart("csi", "ccm"), chart("log", "")];
        let of = |chart: &str, cluster: &str, deleted: bool| {
            let mut release = serde_json::to_value(release(chart, cluster, 2, "True")).unwrap();
            release["metadata"]["name"] = Value::from(format!("{chart}-{cluster}"));
            if deleted {
                release["metadata"]["deletionTimestamp"] = Value::from("2026-01-01T00:00:00Z");
            }
            serde_json::from_value::<HelmReleaseProxy>(release).unwrap()
        };
        let at = |seconds: i64| DateTime::from_timestamp(1_767_225_600 + seconds, 0).unwrap();
        let first = |chart: &str, others: &[HelmReleaseProxy], seconds| {
            uninstalled_first(&of(chart, "prod", true), &charts, others, at(seconds))
        };
        let deleted = [of("cni", "prod", true), of("csi", "prod", true), of("log", "prod", true)];
        assert_eq!(first("cni", &deleted, 60), ["csi-prod"], "through another one");
        assert_eq!(first("csi", &deleted, 60), Vec::<String>::new());
        assert_eq!(first("cni", &[of("csi", "dev", true)], 60), Vec::<String>::new(), "another Cluster");
        let stays = [of("ccm", "prod", false)];
        assert_eq!(first("cni", &stays, 9), ["ccm-prod"], "it may be deleted next");
        assert_eq!(first("cni", &stays, 10), Vec::<String>::new());
        let cycle = [chart("cni", "ccm"), chart("ccm", "cni")];
        let both = uninstalled_first(&of("cni", "prod", true), &cycle, &[of("ccm", "prod", true)], at(60));
        assert_eq!(both, Vec::<String>::new());
    }

    #[test]
    fn those_of_the_first_phase_are_installed_before_others_and_not_before_what_they_depend_on() {
        let first = |name: &str, depends_on: &str| {
            let mut proxy = chart(name, depends_on);
            let phase = Phase::AfterControlPlaneInitialized.as_str().to_owned();
            proxy.annotations_mut().insert(names::PHASES.to_owned(), phase);
            proxy
        };
        let charts = [first("cni", "crds"), chart("crds", ""), chart("csi", ""), first("policy", "")];
        let of = |proxy: &HelmChartProxy| -> Vec<String> {
            installed_first(proxy, &charts).iter().map(|proxy| proxy.name_any()).collect()
        };
        assert_eq!(of(&charts[2]), ["cni", "policy"]);
        assert_eq!(of(&charts[1]), ["policy"], "cni depends on it");
        assert_eq!(of(&charts[0]), [""; 0], "both are first");
    }
}
