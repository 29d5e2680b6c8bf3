//! The objects of an in-memory workload cluster.

use serde_json::{Value, json};

use super::objects::list;

/// How long each part of a simulated control plane machine takes to start.
const STARTUP: &str = "1s";

/// `Cluster`, `DevCluster`, `KubeadmControlPlane` with one replica, and its `DevMachineTemplate`.
pub(super) fn in_memory(namespace: &str, name: &str, kubernetes_version: &str) -> Value {
    let control_plane = format!("{name}-control-plane");
    let part = json!({"provisioning": {"startupDuration": STARTUP}});
    list(&[
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {
                "clusterNetwork": {
                    "pods": {"cidrBlocks": ["192.168.0.0/16"]},
                    "services": {"cidrBlocks": ["10.128.0.0/12"]},
                },
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": name,
                },
                "controlPlaneRef": {
                    "apiGroup": "controlplane.cluster.x-k8s.io",
                    "kind": "KubeadmControlPlane",
                    "name": control_plane,
                },
            },
        }),
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "DevCluster",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"backend": {"inMemory": {}}},
        }),
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "DevMachineTemplate",
            "metadata": {"namespace": namespace, "name": control_plane},
            "spec": {"template": {"spec": {"backend": {"inMemory": {
                "vm": part, "node": part, "apiServer": part, "etcd": part,
            }}}}},
        }),
        json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmControlPlane",
            "metadata": {"namespace": namespace, "name": control_plane},
            "spec": {
                "replicas": 1,
                "version": kubernetes_version,
                "machineTemplate": {"spec": {"infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "DevMachineTemplate",
                    "name": control_plane,
                }}},
                // Empty, the webhook refuses it.
                "kubeadmConfigSpec": {"clusterConfiguration": {"apiServer": {"certSANs": ["127.0.0.1"]}}},
            },
        }),
    ])
}
