//! Which objects of a workload cluster have resources in the cloud, which a controller in the cluster deletes with them.

use k8s_openapi::api::core::v1::{PersistentVolume, Service};
use kube::ResourceExt as _;

use crate::helm::ReleaseKey;

/// Whether Helm created a Service with one of these releases.
pub(super) fn is_of(service: &Service, releases: &[ReleaseKey]) -> bool {
    let annotation = |name: &str| service.annotations().get(&format!("meta.helm.sh/{name}"));
    let (Some(name), Some(namespace)) = (annotation("release-name"), annotation("release-namespace")) else {
        return false;
    };
    releases.iter().any(|key| key.name.as_str() == name && key.namespace.as_str() == namespace)
}

/// A Service that has a load balancer, or a controller that deletes one first.
pub(super) fn balanced(service: &Service) -> Option<String> {
    let is_balanced = service.spec.as_ref()?.type_.as_deref() == Some("LoadBalancer");
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let has_address =
        balancer.and_then(|balancer| balancer.ingress.as_ref()).is_some_and(|it| !it.is_empty());
    let has_any = is_balanced && (has_address || !service.finalizers().is_empty());
    has_any.then(|| format!("Service {}/{}", service.namespace().unwrap_or_default(), service.name_any()))
}

/// A volume that is deleted in the cloud with its claim.
pub(super) fn deleted_with_claim(volume: &PersistentVolume) -> Option<String> {
    let spec = volume.spec.as_ref()?;
    if spec.persistent_volume_reclaim_policy.as_deref() != Some("Delete") {
        return None;
    }
    let claim = spec.claim_ref.as_ref();
    let claim = claim.and_then(|claim| Some((claim.namespace.as_deref()?, claim.name.as_deref()?)));
    Some(match claim {
        Some((namespace, name)) => format!("PersistentVolumeClaim {namespace}/{name}"),
        None => format!("PersistentVolume {}", volume.name_any()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn services_count_while_they_have_a_load_balancer() {
        let of = |type_: &str, finalizers: Value, ingress: Value| {
            balanced(
                &serde_json::from_value(json!({
                    "metadata": {"name": "nginx", "namespace": "web", "finalizers": finalizers},
                    "spec": {"type": type_}, "status": {"loadBalancer": {"ingress": ingress}},
                }))
                .unwrap(),
            )
        };
        let named = Some("Service web/nginx".to_owned());
        let cleanup = json!(["service.kubernetes.io/load-balancer-cleanup"]);
        assert_eq!(of("LoadBalancer", json!([]), json!([{"hostname": "a"}])), named);
        assert_eq!(of("LoadBalancer", cleanup.clone(), json!([])), named);
        assert_eq!(of("LoadBalancer", json!([]), json!([])), None, "no controller made one");
        assert_eq!(of("ClusterIP", cleanup, json!([])), None);
        assert_eq!(balanced(&Service::default()), None);
    }

    #[test]
    fn a_service_is_of_the_release_that_helm_names_in_it() {
        use crate::helm::{Namespace, ReleaseName};

        let of = |annotations: Value| {
            let key = ReleaseKey {
                namespace: Namespace::parse("web").unwrap(),
                name: ReleaseName::parse("nginx").unwrap(),
            };
            let metadata = json!({"name": "nginx", "namespace": "web", "annotations": annotations});
            is_of(&serde_json::from_value(json!({"metadata": metadata})).unwrap(), &[key])
        };
        let named = |name: &str, namespace: &str| json!({"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace});
        assert!(of(named("nginx", "web")));
        assert!(!of(named("nginx", "shop")) && !of(named("shop", "web")) && !of(json!({})));
    }

    #[test]
    fn volumes_count_if_they_are_deleted_with_their_claims() {
        let of = |policy: &str, claim: Value| {
            deleted_with_claim(
                &serde_json::from_value(json!({
                    "metadata": {"name": "pv-1"},
                    "spec": {"persistentVolumeReclaimPolicy": policy, "claimRef": claim},
                }))
                .unwrap(),
            )
        };
        let claim = json!({"namespace": "web", "name": "data"});
        assert_eq!(of("Delete", claim.clone()), Some("PersistentVolumeClaim web/data".to_owned()));
        assert_eq!(of("Delete", json!(null)), Some("PersistentVolume pv-1".to_owned()));
        assert_eq!(of("Retain", claim), None);
    }
}
