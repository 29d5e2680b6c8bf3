//! The Node of an instance: what a kubelet and the cloud provider's controllers write of it.

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::instance::Instance;
use crate::workload::WorkloadCluster;

/// The taint that the kubeadm bootstrap provider registers workers with, until core has put its labels on them.
const UNINITIALIZED: &str = "node.cluster.x-k8s.io/uninitialized";

/// The Node, as it is registered. Its provider ID is exactly what the AWS cloud provider writes (rule B2).
pub(crate) fn new(instance: &Instance, version: &str, ready: bool) -> Node {
    let region = instance.zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let name = if instance.hostname.is_empty() { &instance.id } else { &instance.hostname };
    let mut addresses = vec![json!({"type": "Hostname", "address": name})];
    if !instance.address.is_empty() {
        addresses.push(json!({"type": "InternalIP", "address": instance.address}));
    }
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": instance.instance_type,
                "topology.kubernetes.io/region": region,
                "topology.kubernetes.io/zone": instance.zone,
            },
        },
        "spec": {
            "providerID": format!("aws:///{}/{}", instance.zone, instance.id),
            "taints": taints(instance),
        },
        "status": {
            "addresses": addresses,
            "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"},
            "capacity": {"cpu": "2", "memory": "8Gi", "pods": "110"},
            "conditions": conditions(ready),
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": instance.id,
                "containerRuntimeVersion": "containerd://2.2.0",
                "kernelVersion": "6.12.0",
                "kubeProxyVersion": "",
                "kubeletVersion": version,
                "machineID": instance.id,
                "operatingSystem": "linux",
                "osImage": instance.image,
                "systemUUID": instance.id,
            },
        },
    });
    serde_json::from_value(node).unwrap_or_default()
}

fn taints(instance: &Instance) -> Vec<Value> {
    let registered = String::from_utf8_lossy(&instance.user_data).contains(UNINITIALIZED);
    if registered { vec![json!({"key": UNINITIALIZED, "effect": "NoSchedule"})] } else { Vec::new() }
}

/// All that core asks of a Node before it calls its Machine healthy: it waits for a condition that is missing.
fn conditions(ready: bool) -> Value {
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str, status: bool, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": if status { "True" } else { "False" },
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    json!([
        condition(
            "MemoryPressure",
            false,
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available"
        ),
        condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        if ready {
            condition("Ready", true, "KubeletReady", "kubelet is posting ready status")
        } else {
            condition("Ready", false, "KubeletNotReady", "container runtime is down")
        },
    ])
}

/// Writes what a create leaves out: a real API server ignores status, and its admission adds a taint that only the
/// node lifecycle controller would take away.
pub(super) async fn settle(client: &Client, cluster: &WorkloadCluster, node: &Node) -> Result<()> {
    if !cluster.is_real() {
        return Ok(());
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let status = json!({"status": node.status});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": {"taints": taints}}))).await?;
    Ok(())
}

/// Reports that the Node is ready, or is not.
pub(super) async fn report(
    client: &Client,
    cluster: &WorkloadCluster,
    name: &str,
    ready: bool,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"status": {"conditions": conditions(ready)}}));
    if cluster.is_real() {
        nodes.patch_status(name, &PatchParams::default(), &patch).await?;
    } else {
        nodes.patch(name, &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_what_core_looks_for() {
        let instance = Instance {
            id: "i-0a1b2c3d4e5f60718".to_owned(),
            zone: "eu-west-1b".to_owned(),
            instance_type: "m7i.large".to_owned(),
            image: "ami-0a1b2c3d".to_owned(),
            version: None,
            hostname: "ip-10-0-0-7.eu-west-1.compute.internal".to_owned(),
            address: "10.0.0.7".to_owned(),
            user_data: b"taints:\n- key: node.cluster.x-k8s.io/uninitialized".to_vec(),
        };
        let node = new(&instance, "v1.36.3", true);
        let spec = node.spec.unwrap();
        assert_eq!(spec.provider_id.as_deref(), Some("aws:///eu-west-1b/i-0a1b2c3d4e5f60718"));
        assert_eq!(spec.taints.unwrap()[0].key, UNINITIALIZED);
        let status = node.status.unwrap();
        assert_eq!(status.node_info.unwrap().kubelet_version, "v1.36.3");
        let conditions = status.conditions.unwrap().into_iter();
        let conditions: Vec<_> = conditions.map(|condition| (condition.type_, condition.status)).collect();
        let expected = [
            ("MemoryPressure", "False"),
            ("DiskPressure", "False"),
            ("PIDPressure", "False"),
            ("Ready", "True"),
        ];
        assert_eq!(conditions, expected.map(|(kind, status)| (kind.to_owned(), status.to_owned())));
        assert_eq!(node.metadata.labels.unwrap()["topology.kubernetes.io/region"], "eu-west-1");
    }
}
