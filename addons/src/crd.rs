//! The `CustomResourceDefinition`s of the add-on provider.

use capasg_api::crd::{MOVE_HIERARCHY, refine};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{HelmChartProxy, HelmReleaseProxy};

/// All CRDs, by name.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![HelmChartProxy::crd(), HelmReleaseProxy::crd()];
    for crd in &mut crds {
        refine(crd);
        let label = (MOVE_HIERARCHY.to_owned(), String::new());
        crd.metadata.labels.get_or_insert_default().extend([label]);
    }
    crds
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    /// The fields of a schema and their types, without what is below labels, conditions and items of lists.
    fn fields(schema: &Value, path: &str, all: &mut BTreeMap<String, String>) {
        let Some(properties) = schema["properties"].as_object() else { return };
        for (name, property) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            all.insert(path.clone(), property["type"].as_str().unwrap_or_default().to_owned());
            fields(property, &path, all);
        }
    }

    fn fields_of(crd: &CustomResourceDefinition) -> BTreeMap<String, String> {
        let root = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let mut all = BTreeMap::new();
        fields(&root["openAPIV3Schema"]["properties"]["spec"], "spec", &mut all);
        fields(&root["openAPIV3Schema"]["properties"]["status"], "status", &mut all);
        all
    }

    // Rules: X1
    #[test]
    fn both_kinds_have_the_fields_of_the_published_api() {
        // Name and type of each field of v0.6.4, as its definitions list them.
        let options = "\
            disableHooks boolean, wait boolean, waitForJobs boolean, dependencyUpdate boolean, timeout string, \
            skipCRDs boolean, options boolean, disableOpenAPIValidation boolean, atomic boolean, install object, \
            install.createNamespace boolean, install.includeCRDs boolean, upgrade object, upgrade.force boolean, \
            upgrade.resetValues boolean, upgrade.reuseValues boolean, upgrade.resetThenReuseValues boolean, \
            upgrade.recreate boolean, upgrade.maxHistory integer, upgrade.cleanupOnFail boolean, uninstall object, \
            uninstall.keepHistory boolean, uninstall.description string, enableClientCache boolean, takeOwnership boolean";
        let common = "\
            chartName string, repoURL string, releaseName string, namespace string, version string, \
            reconcileStrategy string, options object, credentials object, credentials.secret object, \
            credentials.secret.name string, credentials.secret.namespace string, credentials.key string, \
            tlsConfig object, tlsConfig.caSecret object, tlsConfig.caSecret.name string, \
            tlsConfig.caSecret.namespace string, tlsConfig.insecureSkipTLSVerify boolean";
        let chart = "\
            clusterSelector object, clusterSelector.matchLabels object, clusterSelector.matchExpressions array, \
            valuesTemplate string";
        let release = "\
            clusterRef object, clusterRef.apiVersion string, clusterRef.kind string, clusterRef.name string, \
            clusterRef.namespace string, values string";
        let status = "conditions array, observedGeneration integer";
        let expected = |own: &str, status_of_own: &str| {
            let groups = [
                ("spec", common),
                ("spec", own),
                ("spec.options", options),
                ("status", status),
                ("status", status_of_own),
            ];
            let mut all = BTreeMap::new();
            for (prefix, list) in groups {
                for field in list.split(", ") {
                    let (name, kind) = field.trim().split_once(' ').unwrap();
                    all.insert(format!("{prefix}.{name}"), kind.to_owned());
                }
            }
            all
        };
        let [charts, releases] = &crds()[..] else { panic!("two kinds") };
        assert_eq!(fields_of(charts), expected(chart, "matchingClusters array"));
        // The Runtime Extension writes one more. It requests again what the definition of the other provider drops.
        let of_release = "status string, revision integer, nextKubernetesVersion string";
        assert_eq!(fields_of(releases), expected(release, of_release));
    }

    #[test]
    fn clusterctl_finds_and_moves_both_kinds() {
        for crd in crds() {
            let labels = crd.metadata.labels.unwrap();
            assert_eq!(labels[capasg_api::names::labels::CONTRACT], "v1alpha1");
            assert_eq!(labels[MOVE_HIERARCHY], "");
            assert_eq!(crd.spec.group, "addons.cluster.x-k8s.io");
        }
    }
}
