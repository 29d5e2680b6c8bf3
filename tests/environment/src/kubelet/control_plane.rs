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

/// What the Nodes report.
#[derive(Debug, Clone, Default)]
pub(super) enum Reported {
    /// What the provider writes; the version of its Machine where it writes none.
    #[default]
    ByProvider,
    /// This version.
    Version(String),
    /// The version of its Machine: after another version, which the provider does not correct.
    OfMachine,
}

impl Reported {
    pub(super) fn set(&mut self, version: Option<&str>) {
        *self = version.map_or(Self::OfMachine, |version| Self::Version(version.to_owned()));
    }

    /// Writes it to each Node that reports something else. A Node and its Machine have the same name.
    pub(super) async fn write(&self, client: &Client, cluster: &WorkloadCluster) -> Result<()> {
        let nodes: Api<Node> = Api::all(client.clone());
        let all = nodes.list(&ListParams::default()).await?;
        let machines =
            dynamic(cluster.management(), cluster.namespace(), "cluster.x-k8s.io", "v1beta2", "Machine");
        for node in all.iter().filter(|node| !is_worker(node)) {
            if matches!(self, Self::ByProvider) && version_of(node).is_some() {
                continue;
            }
            let name = node.name_any();
            let Some(machine) = machines.get_opt(&name).await? else { continue };
            let of_machine = machine.data.pointer("/spec/version").and_then(Value::as_str);
            let wanted = self.version(of_machine);
            if wanted.is_some() && wanted != version_of(node) {
                let status = json!({"status": {"nodeInfo": {"kubeletVersion": wanted}}});
                nodes.patch(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
            }
        }
        Ok(())
    }

    fn version<'a>(&'a self, of_machine: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::Version(version) => Some(version),
            Self::ByProvider | Self::OfMachine => of_machine,
        }
    }
}

/// Nodes of workers are those of instances.
fn is_worker(node: &Node) -> bool {
    let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    id.is_some_and(|id| id.starts_with("aws://"))
}

fn version_of(node: &Node) -> Option<&str> {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref())?;
    Some(info.kubelet_version.as_str()).filter(|version| !version.is_empty())
}
