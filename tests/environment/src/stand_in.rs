//! Definitions that stand in for those of providers that are not here, so that clusterctl can look for their objects.

use serde_json::{Value, json};

/// A definition of this kind that takes every object: `kind` in `group` at `version`.
fn definition(group: &str, version: &str, kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "labels": {"cluster.x-k8s.io/v1beta1": version}},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "scope": "Namespaced",
            "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": open}}],
        },
    })
}

/// Those that classes of clusters on AWS name beside kubeadm's: of the network, and of control plane machines.
#[must_use]
pub fn of_the_aws_provider() -> Vec<Value> {
    ["AWSClusterTemplate", "AWSMachineTemplate"]
        .map(|kind| definition("infrastructure.cluster.x-k8s.io", "v1beta2", kind))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_what_core_computes() {
        let definition = definition("infrastructure.cluster.x-k8s.io", "v1beta2", "AWSMachineTemplate");
        assert_eq!(definition["metadata"]["name"], "awsmachinetemplates.infrastructure.cluster.x-k8s.io");
    }
}
