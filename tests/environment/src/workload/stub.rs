//! A control plane that is there from the start: a kind that says so, and a kubeconfig that points anywhere.

use anyhow::Result;
use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::objects::{dynamic, list};
use crate::{api_server::ApiServer, management::Management, stand_in};

const GROUP: &str = "controlplane.cluster.x-k8s.io";
const KIND: &str = "StubControlPlane";

/// Installs the kind, and that of its templates for classes. Core may act on them without further rights: its role names the
/// whole group.
pub(super) async fn install(management: &Management) -> Result<()> {
    let definition = |kind: &str| stand_in::definition(GROUP, "v1beta2", "v1alpha1", kind);
    stand_in::install(management.api(), &[definition(KIND), definition(&format!("{KIND}Template"))]).await
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

/// Reports that the control plane is up with this version. A move drops status, so this is needed again on its target.
///
/// # Errors
/// When the API server refuses.
pub async fn report(client: &Client, namespace: &str, name: &str, kubernetes_version: &str) -> Result<()> {
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
