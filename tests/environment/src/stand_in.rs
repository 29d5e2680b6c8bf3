//! Definitions of providers that do not run here. clusterctl looks for their objects and moves them, and core makes them of
//! their templates; tests report in their statuses what a controller would.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::{
    api_server::ApiServer,
    say,
    tools::{Tools, capa_definitions},
};

/// The kinds of Cluster API Provider AWS: those of the network, of control plane machines, and of identities.
const OF_THE_AWS_PROVIDER: [&str; 7] = [
    "AWSCluster",
    "AWSClusterTemplate",
    "AWSMachine",
    "AWSMachineTemplate",
    "AWSClusterControllerIdentity",
    "AWSClusterRoleIdentity",
    "AWSClusterStaticIdentity",
];

/// The label that clusterctl sets, without which `clusterctl move` leaves the objects of a kind.
const MOVED: &str = "clusterctl.cluster.x-k8s.io";

/// A definition of this kind that takes every object: `kind` in `group` at `version`, which fulfils `contract`.
pub(crate) fn definition(group: &str, contract: &str, version: &str, kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            // The contract that the kind fulfils, and what makes `clusterctl move` take its objects along.
            "labels": {format!("cluster.x-k8s.io/{contract}"): version, MOVED: ""},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "scope": "Namespaced",
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything.clone(), "status": anything},
                }},
            }],
        },
    })
}

/// Installs the kinds of Cluster API Provider AWS that clusters on AWS name beside kubeadm's, with its own definitions, and waits
/// until they are served. The first time, its Go module is downloaded.
///
/// # Errors
/// When the module cannot be downloaded, or the API server refuses a definition.
pub async fn install_aws_provider(tools: &Tools, api: &ApiServer) -> Result<()> {
    let tools = tools.clone();
    let file = spawn_blocking(move || capa_definitions(&tools, &say)).await??;
    let mut list: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let mut wanted = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    wanted.retain(|one| OF_THE_AWS_PROVIDER.iter().any(|kind| one["spec"]["names"]["kind"] == *kind));
    ensure!(wanted.len() == OF_THE_AWS_PROVIDER.len(), "{} of {OF_THE_AWS_PROVIDER:?}", wanted.len());
    for one in &mut wanted {
        let is_identity = one["spec"]["scope"] == "Cluster";
        let Some(labels) = one["metadata"]["labels"].as_object_mut() else { continue };
        if is_identity {
            // Moves of other tests would take these along, to a management cluster without their definitions.
            labels.retain(|key, _| !key.starts_with(MOVED));
        } else {
            labels.insert(MOVED.to_owned(), "".into());
        }
    }
    install(api, &wanted).await
}

/// Installs definitions, and waits until they are served.
///
/// # Errors
/// When the API server refuses one.
pub(crate) async fn install(api: &ApiServer, definitions: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions}).to_string();
    // On the server: tests that start at the same time would both find them absent and both create them.
    api.kubectl().feed(["apply", "--server-side", "--filename=-"], &list).await?;
    let mut wait =
        vec!["wait".to_owned(), "--for=condition=Established".to_owned(), "--timeout=30s".to_owned()];
    let names = definitions.iter().filter_map(|one| one["metadata"]["name"].as_str());
    wait.extend(names.map(|name| format!("crd/{name}")));
    api.kubectl().run(wait).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_what_core_computes() {
        let group = "infrastructure.cluster.x-k8s.io";
        let definition = definition(group, "v1beta1", "v1beta2", "AWSMachineTemplate");
        assert_eq!(definition["metadata"]["name"], "awsmachinetemplates.infrastructure.cluster.x-k8s.io");
    }
}
