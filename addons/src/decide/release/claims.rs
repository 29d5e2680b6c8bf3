//! Two `HelmReleaseProxies` for one release: one of them has it, the other one is rejected.

use chrono::{DateTime, Utc};
use kube::ResourceExt as _;

use crate::{HelmReleaseProxy, names};

/// The other `HelmReleaseProxy` that has the release which `own` names, if there is one. `others` are those of the same
/// namespace, with or without `own`.
///
/// The first one that recorded an installation has the release, then the one with an ID, then the oldest one.
#[must_use]
pub fn claimed_by(own: &HelmReleaseProxy, others: &[HelmReleaseProxy]) -> Option<String> {
    let is_same = |other: &&HelmReleaseProxy| {
        let (a, b) = (&own.spec, &other.spec);
        !a.release_name.is_empty()
            && a.release_name == b.release_name
            && a.release_namespace == b.release_namespace
            && a.cluster_ref.name == b.cluster_ref.name
            && own.namespace() == other.namespace()
            && own.name_any() != other.name_any()
    };
    let first = others.iter().filter(is_same).min_by_key(|other| rank(other))?;
    (rank(first) < rank(own)).then(|| first.name_any())
}

/// The lowest rank has the release.
fn rank(release: &HelmReleaseProxy) -> (bool, bool, DateTime<Utc>, String) {
    let annotations = release.annotations();
    let created = release.creation_timestamp().map(|time| capasg_api::time::from_kubernetes(&time));
    (
        !release.is_installed(),
        !annotations.contains_key(names::RELEASE_ID),
        created.unwrap_or_default(),
        release.name_any(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn release(name: &str, created: &str, annotations: &serde_json::Value) -> HelmReleaseProxy {
        serde_json::from_value(json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
            "metadata": {
                "name": name, "namespace": "teams", "creationTimestamp": created, "annotations": annotations,
            },
            "spec": {
                "clusterRef": {"name": "prod"}, "chartName": "cilium", "repoURL": "https://charts.example",
                "releaseName": "cni", "namespace": "kube-system",
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_older_one_has_the_release() {
        let older = release("b", "2026-01-01T00:00:00Z", &json!({}));
        let younger = release("a", "2026-01-02T00:00:00Z", &json!({}));
        let all = [older.clone(), younger.clone()];
        assert_eq!((claimed_by(&older, &all), claimed_by(&younger, &all)), (None, Some("b".to_owned())));
    }

    #[test]
    fn an_installed_one_keeps_the_release() {
        let older = release("b", "2026-01-01T00:00:00Z", &json!({names::RELEASE_ID: "1"}));
        let installed = release("a", "2026-01-02T00:00:00Z", &json!({names::RELEASE_INSTALLED: "true"}));
        let all = [older.clone(), installed.clone()];
        assert_eq!((claimed_by(&older, &all), claimed_by(&installed, &all)), (Some("a".to_owned()), None));
    }

    #[test]
    fn another_cluster_namespace_or_name_is_no_conflict() {
        let own = release("b", "2026-01-02T00:00:00Z", &json!({}));
        let changes: [fn(&mut HelmReleaseProxy); 4] = [
            |other| other.spec.cluster_ref.name = "dev".into(),
            |other| other.spec.release_namespace = "default".into(),
            |other| other.spec.release_name = "other".into(),
            |other| other.metadata.namespace = Some("others".into()),
        ];
        for change in changes {
            let mut other = release("a", "2026-01-01T00:00:00Z", &json!({}));
            assert_eq!(claimed_by(&own, std::slice::from_ref(&other)), Some("a".to_owned()));
            change(&mut other);
            assert_eq!(claimed_by(&own, &[other]), None);
        }
        let mut unnamed = own.clone();
        unnamed.spec.release_name.clear();
        assert_eq!(claimed_by(&unnamed, &[release("a", "2026-01-01T00:00:00Z", &json!({}))]), None);
    }
}
