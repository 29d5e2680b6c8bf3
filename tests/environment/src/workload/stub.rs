//! A control plane that is there from the start: a kind that says so, and a kubeconfig that points anywhere.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::{conditions::is_crd_established, wait::Condition as _},
};
use serde_json::{Value, json};

use super::objects::{dynamic, list};
use crate::{
    api_server::ApiServer,
    management::Management,
    wait::{Look, wait_for_object},
};

const GROUP: &str = "controlplane.cluster.x-k8s.io";
const KIND: &str = "StubControlPlane";

/// The name that Cluster API computes for the kind.
const DEFINITION: &str = "stubcontrolplanes.controlplane.cluster.x-k8s.io";

/// Installs the kind. Core may act on it without further rights: its role names the whole group.
pub(super) async fn install(management: &Management, client: &Client) -> Result<()> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": DEFINITION,
            // The contract that the kind fulfils, and what makes `clusterctl move` take its objects along.
            "labels": {"cluster.x-k8s.io/v1beta2": "v1alpha1", "clusterctl.cluster.x-k8s.io": ""},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": KIND, "plural": "stubcontrolplanes", "singular": "stubcontrolplane"},
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything.clone(), "status": anything},
                }},
            }],
        },
    });
    // On the server: tests that start at the same time would both find it absent and both create it.
    let apply = ["apply", "--server-side", "-f", "-"];
    management.api().kubectl().feed(apply, &definition.to_string()).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    wait_for_object(&definitions, DEFINITION, Duration::from_secs(30), |definition| {
        Look::when(is_crd_established().matches_object(Some(definition)), "it is not established")
    })
    .await
}

/// The Secrets of a cluster whose control plane is `api`: the kubeconfig, and the certificate of its authority.
///
/// # Errors
/// When the kubeconfig cannot be written.
pub fn control_plane_secrets(namespace: &str, name: &str, api: &ApiServer) -> Result<[Value; 2]> {
    let secret = |suffix: &str, data: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "namespace": namespace,
                "name": format!("{name}-{suffix}"),
                // Core's cache holds only Secrets with this label; the other lets `clusterctl move` take it along.
                "labels": {"cluster.x-k8s.io/cluster-name": name, "clusterctl.cluster.x-k8s.io/move": ""},
            },
            "type": "cluster.x-k8s.io/secret",
            "stringData": data,
        })
    };
    Ok([
        secret("kubeconfig", json!({"value": api.access().kubeconfig()?})),
        // What the kubeadm bootstrap provider tells nodes to trust. Nobody signs with it: the key only has to be there.
        secret("ca", json!({"tls.crt": api.access().authority, "tls.key": "none"})),
    ])
}

/// Makes the `Cluster`, its control plane, and the kubeconfig Secret.
pub(super) async fn apply(
    management: &Management,
    client: &Client,
    namespace: &str,
    name: &str,
    api: &ApiServer,
    kubernetes_version: &str,
) -> Result<()> {
    let (host, port) = api.access().server.trim_start_matches("https://").split_once(':').unwrap_or_default();
    let [kubeconfig, authority] = control_plane_secrets(namespace, name, api)?;
    let objects = list(&[
        kubeconfig,
        authority,
        json!({
            "apiVersion": format!("{GROUP}/v1alpha1"),
            "kind": KIND,
            "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "version": kubernetes_version,
                "controlPlaneEndpoint": {"host": host, "port": port.parse::<u16>()?},
            },
        }),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "controlPlaneRef": {"apiGroup": GROUP, "kind": KIND, "name": name},
                "controlPlaneEndpoint": {"host": host, "port": port.parse::<u16>()?},
            },
        }),
    ]);
    management.api().kubectl().feed(["apply", "-f", "-"], &objects.to_string()).await?;
    report(client, namespace, name, kubernetes_version).await
}

/// Says that the control plane is up. A move drops status, so this is needed again on its target.
pub(super) async fn report(
    client: &Client,
    namespace: &str,
    name: &str,
    kubernetes_version: &str,
) -> Result<()> {
    let condition = |kind: &str| -> Value {
        json!({
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let status = json!({"status": {
        "initialization": {"controlPlaneInitialized": true},
        "externalManagedControlPlane": true,
        "version": kubernetes_version,
        "conditions": [condition("Available"), condition("Initialized")],
    }});
    let stubs = dynamic(client, namespace, GROUP, "v1alpha1", KIND);
    stubs.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}
