//! The Kubernetes version that a release is for: that of the control plane, or of its next step.

use capasg_api::names::addons::{Phase, Phases};
use semver::Version;

use crate::HelmReleaseProxy;

/// The Kubernetes versions of a Cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kubernetes {
    /// The version that the control plane reports in its status.
    pub actual: Option<String>,
    /// The version that users request, `spec.topology.version`.
    pub requested: Option<String>,
}

/// The version that a release is for. A step of the control plane counts from the request of the Runtime Extension until the
/// control plane reports its version. The request is in the status, which a move to another management cluster drops; what
/// the spec is for already is in an annotation, which is moved.
pub(super) fn version_for<'a>(
    cluster: &'a Kubernetes,
    release: Option<&'a HelmReleaseProxy>,
    phases: &Phases,
) -> Option<&'a str> {
    let next = release.filter(|_| phases.contain(Phase::BeforeControlPlaneUpgrade)).and_then(|release| {
        let status = release.status.as_ref();
        let requested = status.and_then(|status| status.next_kubernetes_version.as_deref());
        [requested, release.kubernetes_version()].into_iter().flatten().find(|next| is_ahead(next, cluster))
    });
    next.or(cluster.actual.as_deref())
}

/// Whether a version is one of an upgrade in progress: newer than that of the control plane, and not newer than the requested
/// one. So a request ends with its step, and with an upgrade that users revert; and no caller of the extension can have
/// releases changed for any other version.
fn is_ahead(next: &str, cluster: &Kubernetes) -> bool {
    let parsed = |version: &Option<String>| version.as_deref().and_then(parse);
    let (Some(next), Some(actual), Some(requested)) =
        (parse(next), parsed(&cluster.actual), parsed(&cluster.requested))
    else {
        return false;
    };
    actual < next && next <= requested
}

/// A Kubernetes version. Some managed control planes report no patch version.
pub(super) fn parse(reported: &str) -> Option<Version> {
    let mut text = reported.trim_start_matches('v').to_owned();
    if text.matches('.').count() == 1 {
        text.push_str(".0");
    }
    Version::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::names;

    fn cluster(actual: &str, requested: &str) -> Kubernetes {
        Kubernetes { actual: Some(actual.to_owned()), requested: Some(requested.to_owned()) }
    }

    fn release(next: Option<&str>, is_for: Option<&str>) -> HelmReleaseProxy {
        let annotations = is_for.map_or(json!({}), |version| json!({names::KUBERNETES_VERSION: version}));
        serde_json::from_value(json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
            "metadata": {"name": "a", "annotations": annotations},
            "spec": {"clusterRef": {"name": "prod"}, "chartName": "a", "repoURL": "b", "namespace": "c"},
            "status": {"nextKubernetesVersion": next},
        }))
        .unwrap()
    }

    #[test]
    fn a_step_counts_from_its_request_until_the_control_plane_reports_it() {
        let phases = Phases::of(Some("before-control-plane-upgrade"));
        let of = |cluster: &Kubernetes, release: HelmReleaseProxy| {
            version_for(cluster, Some(&release), &phases).map(str::to_owned).unwrap()
        };
        let upgrading = cluster("v1.34.2", "v1.36.3");
        assert_eq!(
            of(&upgrading, release(None, None)),
            "v1.34.2",
            "the requested version alone has no effect"
        );
        assert_eq!(of(&upgrading, release(Some("v1.35.9"), Some("v1.34.2"))), "v1.35.9");
        assert_eq!(of(&upgrading, release(None, Some("v1.35.9"))), "v1.35.9", "after a move");
        assert_eq!(of(&cluster("v1.35.9", "v1.36.3"), release(Some("v1.35.9"), Some("v1.35.9"))), "v1.35.9");
        assert_eq!(of(&cluster("v1.35.9", "v1.36.3"), release(Some("v1.36.3"), Some("v1.35.9"))), "v1.36.3");
        assert_eq!(of(&cluster("v1.35", "v1.36.3+a"), release(Some("v1.36.3"), None)), "v1.36.3");
        for (actual, requested, next) in [
            ("v1.35.1", "v1.35.1", "v1.36.3"),
            ("v1.35.1", "v1.36.2", "v1.36.3"),
            ("v1.36.4", "v1.36.4", "v1.36.3"),
            ("v1.35.1", "v1.36.3", "new"),
        ] {
            let of = of(&cluster(actual, requested), release(Some(next), Some(next)));
            assert_eq!(of, actual, "reverted, behind, or no version");
        }
        let without = Kubernetes { requested: None, ..upgrading.clone() };
        assert_eq!(of(&without, release(Some("v1.35.9"), None)), "v1.34.2", "a Cluster without a topology");
        let others = Phases::of(Some("after-control-plane-upgrade"));
        let release = release(Some("v1.35.9"), None);
        assert_eq!(version_for(&upgrading, Some(&release), &others), Some("v1.34.2"));
        assert_eq!(version_for(&Kubernetes::default(), None, &phases), None);
    }
}
