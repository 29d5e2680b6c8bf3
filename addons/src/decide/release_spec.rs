//! The `HelmReleaseProxy` that a `HelmChartProxy` asks for on one Cluster.

use capasg_api::names::{hash, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource as _, ResourceExt as _};

use crate::kinds::{ObjectReference, SecretReference};
use crate::{HelmChartProxy, HelmReleaseProxy, HelmReleaseProxySpec, names};

/// The longest readable part of a name: with the hash it is within the API server's limit, and readable in columns.
const READABLE: usize = 200;

/// The object for a Cluster that has none.
pub(super) fn new(proxy: &HelmChartProxy, cluster: &str, version: &str, values: &str) -> HelmReleaseProxy {
    let spec = HelmReleaseProxySpec {
        cluster_ref: cluster_ref(proxy, cluster),
        chart_name: proxy.spec.chart_name.clone(),
        repo_url: proxy.spec.repo_url.clone(),
        release_name: proxy.spec.release_name.clone(),
        release_namespace: proxy.spec.namespace().to_owned(),
        reconcile_strategy: proxy.spec.reconcile_strategy,
        ..HelmReleaseProxySpec::default()
    };
    let mut release = updated(&HelmReleaseProxy::new(&name(proxy, cluster), spec), proxy, version, values);
    release.metadata.namespace = proxy.namespace();
    release.metadata.finalizers = Some(vec![names::RELEASE_FINALIZER.to_owned()]);
    let owner = proxy.controller_owner_ref(&());
    release.metadata.owner_references =
        owner.map(|owner| vec![OwnerReference { block_owner_deletion: Some(true), ..owner }]);
    release.metadata.labels = Some(
        [
            (labels::CLUSTER_NAME.to_owned(), cluster.to_owned()),
            (names::CHART_PROXY_LABEL.to_owned(), proxy.name_any()),
        ]
        .into(),
    );
    release
}

/// The Cluster, as users and core refer to it.
pub(super) fn cluster_ref(proxy: &HelmChartProxy, cluster: &str) -> ObjectReference {
    ObjectReference {
        api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
        kind: "Cluster".to_owned(),
        name: cluster.to_owned(),
        namespace: proxy.namespace().unwrap_or_default(),
    }
}

/// The annotations that a `HelmReleaseProxy` has from its `HelmChartProxy`.
const PASSED_ON: [&str; 4] = [names::CHART_ARCHIVE, names::DRIFT, names::DRIFT_IGNORED, names::VALUES_FROM];

/// The same object with what applies in place.
pub(super) fn updated(
    known: &HelmReleaseProxy,
    proxy: &HelmChartProxy,
    version: &str,
    values: &str,
) -> HelmReleaseProxy {
    let mut release = known.clone();
    release.spec = updated_spec(&known.spec, proxy, version, values);
    for name in PASSED_ON {
        match proxy.annotations().get(name) {
            Some(value) => drop(release.annotations_mut().insert(name.to_owned(), value.clone())),
            None if known.annotations().contains_key(name) => drop(release.annotations_mut().remove(name)),
            None => {}
        }
    }
    release
}

/// The same spec with what applies in place (X9: options, credentials and certificates as well). References to Secrets name
/// their namespace and key.
fn updated_spec(
    known: &HelmReleaseProxySpec,
    proxy: &HelmChartProxy,
    version: &str,
    values: &str,
) -> HelmReleaseProxySpec {
    let namespace = proxy.namespace().unwrap_or_default();
    let in_namespace = |secret: &mut SecretReference| {
        if secret.namespace.is_empty() {
            secret.namespace.clone_from(&namespace);
        }
    };
    let mut spec = HelmReleaseProxySpec {
        version: version.to_owned(),
        values: values.to_owned(),
        options: proxy.spec.options.clone(),
        credentials: proxy.spec.credentials.clone(),
        tls_config: proxy.spec.tls_config.clone(),
        ..known.clone()
    };
    if let Some(credentials) = &mut spec.credentials {
        in_namespace(&mut credentials.secret);
        if credentials.key.is_empty() {
            names::DEFAULT_CREDENTIALS_KEY.clone_into(&mut credentials.key);
        }
    }
    if let Some(secret) = spec.tls_config.as_mut().and_then(|tls| tls.ca_secret.as_mut()) {
        in_namespace(secret);
    }
    spec
}

/// Whether the release has to be uninstalled and installed again: what identifies it has changed (X4).
pub(super) fn is_another_release(release: &HelmReleaseProxy, proxy: &HelmChartProxy) -> bool {
    let is_generated =
        release.annotations().get(names::RELEASE_NAME_GENERATED).is_some_and(|it| it == "true");
    let (known, wanted) = (&release.spec, &proxy.spec);
    let has_other_name = if is_generated {
        !wanted.release_name.is_empty()
    } else {
        known.release_name != wanted.release_name
    };
    known.chart_name != wanted.chart_name
        || known.repo_url != wanted.repo_url
        || known.release_namespace != wanted.namespace()
        || has_other_name
}

/// The name of the object: chart, Cluster, and a hash of the `HelmChartProxy` and the Cluster. It does not change, so that an
/// object that a cache does not show yet is not created twice.
fn name(proxy: &HelmChartProxy, cluster: &str) -> String {
    let readable = format!("{}-{cluster}", proxy.spec.chart_name).to_ascii_lowercase().replace('_', "-");
    // Charts and Clusters have names of ASCII letters, digits, dots and dashes.
    let mut name: String = readable.chars().take(READABLE).collect();
    name.truncate(name.trim_end_matches(['-', '.']).len());
    name.push('-');
    name.push_str(&hash(&format!("{}\0{cluster}", proxy.name_any())));
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HelmChartProxySpec;

    // Rules: X1
    #[test]
    fn the_owner_is_the_controller_and_is_deleted_last() {
        let mut proxy = HelmChartProxy::new("cni", HelmChartProxySpec::default());
        proxy.metadata.uid = Some("uid".to_owned());
        let release = new(&proxy, "prod", "", "");
        let owner = &release.owner_references()[0];
        assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
    }

    #[test]
    fn names_are_stable_valid_and_differ() {
        let proxy = |name: &str, chart: &str| {
            HelmChartProxy::new(
                name,
                HelmChartProxySpec { chart_name: chart.to_owned(), ..HelmChartProxySpec::default() },
            )
        };
        let one = name(&proxy("cni", "Cilium_Chart"), "prod");
        assert!(
            one.starts_with("cilium-chart-prod-") && one.len() == "cilium-chart-prod-".len() + 8,
            "{one}"
        );
        assert_eq!(one, name(&proxy("cni", "Cilium_Chart"), "prod"));
        assert_ne!(one, name(&proxy("other", "Cilium_Chart"), "prod"), "two proxies with one chart");
        let long = name(&proxy("cni", &"c".repeat(190)), "a.b.c.d.e-----------f");
        assert!(long.len() <= 253 && !long.contains("--c"), "{long}");
    }
}
