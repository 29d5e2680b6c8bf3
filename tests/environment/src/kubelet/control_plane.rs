//! The version that Nodes of an in-memory control plane report. The in-memory provider of Cluster API v1.13 leaves it
//! out; a kubelet never does, and hooks compare it.

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::workload::{WorkloadCluster, dynamic};

/// Writes the version of its Machine to each Node that reports none. Both have the same name.
pub(super) async fn report_versions(client: &Client, cluster: &WorkloadCluster) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let silent: Vec<String> = nodes
        .list(&ListParams::default())
        .await?
        .iter()
        .filter(|node| is_silent(node))
        .map(Node::name_any)
        .collect();
    if silent.is_empty() {
        return Ok(());
    }
    let machines =
        dynamic(cluster.management(), cluster.namespace(), "cluster.x-k8s.io", "v1beta2", "Machine");
    for name in silent {
        let Some(machine) = machines.get_opt(&name).await? else { continue };
        let Some(version) = machine.data.pointer("/spec/version").and_then(Value::as_str) else { continue };
        let status = json!({"status": {"nodeInfo": {"kubeletVersion": version}}});
        nodes.patch(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(())
}

fn is_silent(node: &Node) -> bool {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    info.is_none_or(|info| info.kubelet_version.is_empty())
}
