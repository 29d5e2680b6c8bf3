//! What stands in for a control plane machine: a real API server behind the load balancer's name, and the machine's Node.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    api_server::{ApiServer, Place, WORKLOAD_CONTROLLERS},
    audit::Audited,
    etcd::Etcd,
    kubelet::{Instance, node},
    management::Management,
    pki::Authority,
    tools::Tools,
    wait::{Look, wait_until},
    workload::dynamic,
};

/// How long network, load balancer and machine may take together.
const INFRASTRUCTURE: Duration = Duration::from_mins(10);

/// A running control plane of one `Cluster`. Dropping it ends it.
pub struct ControlPlane {
    api: ApiServer,
    node: String,
}

/// The first machine of the control plane, as core reports it.
struct Machine {
    provider_id: String,
    version: String,
    hostname: String,
    address: String,
}

impl ControlPlane {
    /// Waits until the infrastructure provider has set the endpoint of the control plane and launched its first machine. Then it
    /// does what kubeadm does on that machine: an API server at the endpoint, with a certificate of the Secret `<cluster>-ca`,
    /// the `ConfigMap` `kubeadm-config`, and the Node with the machine's provider ID. Nothing is written to the management
    /// cluster.
    ///
    /// # Errors
    /// When the infrastructure is not there within ten minutes, the endpoint is not a loopback address, or its port is in use.
    pub async fn stand_up(
        management: &Management,
        tools: &Tools,
        etcd: &Etcd,
        namespace: &str,
        cluster: &str,
    ) -> Result<Self> {
        let client = management.api().client().await?;
        let address = endpoint(&client, namespace, cluster).await?;
        let machine = machine(&client, namespace, cluster).await?;
        let authority = authority(&client, namespace, cluster).await?;
        let name = format!("{namespace}-{cluster}");
        let place = Place { address, authority };
        let run = management.run();
        let audited = Audited::default();
        let api = ApiServer::start_at(tools, run, etcd, &name, WORKLOAD_CONTROLLERS, audited, &place).await?;

        let workload = api.client().await?;
        let nodes: Api<Node> = Api::all(workload.clone());
        let node = machine.node()?;
        nodes.create(&PostParams::default(), &node).await.context("cannot register the machine's Node")?;
        let configs: Api<ConfigMap> = Api::namespaced(workload, "kube-system");
        // The last thing that `kubeadm init` writes before the kubeadm control plane provider calls the control plane initialized.
        configs.create(&PostParams::default(), &kubeadm_config(address, &machine.version)?).await?;
        Ok(Self { api, node: node.metadata.name.unwrap_or_default() })
    }

    /// The API server.
    #[must_use]
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// The name of the machine's Node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Ends its processes.
    ///
    /// # Errors
    /// When an end status cannot be learnt.
    pub async fn stop(self) -> Result<()> {
        self.api.stop().await
    }
}

impl Machine {
    fn of(machine: &DynamicObject) -> Option<Self> {
        let address = |kind: &str| {
            let addresses = machine.data["status"]["addresses"].as_array()?;
            addresses.iter().find(|item| item["type"] == kind)?["address"].as_str().map(str::to_owned)
        };
        Some(Self {
            provider_id: machine.data["spec"]["providerID"].as_str()?.to_owned(),
            version: machine.data["spec"]["version"].as_str()?.to_owned(),
            hostname: address("InternalDNS")?,
            address: address("InternalIP")?,
        })
    }

    fn node(&self) -> Result<Node> {
        let (zone, id) = self
            .provider_id
            .strip_prefix("aws:///")
            .and_then(|rest| rest.split_once('/'))
            .with_context(|| format!("{} is not aws:///<zone>/<instance>", self.provider_id))?;
        let instance = Instance {
            id: id.to_owned(),
            zone: zone.to_owned(),
            instance_type: String::new(),
            image: String::new(),
            version: None,
            hostname: self.hostname.clone(),
            address: self.address.clone(),
            user_data: Vec::new(),
        };
        let mut node = node::new(&instance, &self.version, true);
        let role = ("node-role.kubernetes.io/control-plane".to_owned(), String::new());
        node.metadata.labels.get_or_insert_default().insert(role.0, role.1);
        Ok(node)
    }
}

async fn endpoint(client: &Client, namespace: &str, cluster: &str) -> Result<SocketAddr> {
    let clusters = dynamic(client, namespace, "cluster.x-k8s.io", "v1beta2", "Cluster");
    wait_until(INFRASTRUCTURE, "the endpoint of the control plane", || async {
        let cluster = clusters.get(cluster).await?;
        let endpoint = &cluster.data["spec"]["controlPlaneEndpoint"];
        let (Some(host), Some(port)) = (endpoint["host"].as_str(), endpoint["port"].as_u64()) else {
            return Ok(Look::Not(format!("conditions {}", cluster.data["status"]["conditions"])));
        };
        Ok(Look::Done(format!("{host}:{port}")))
    })
    .await?
    .parse()
    .context("the name of the load balancer is not an address, as the corrections of moto make it")
}

async fn machine(client: &Client, namespace: &str, cluster: &str) -> Result<Machine> {
    let machines = dynamic(client, namespace, "cluster.x-k8s.io", "v1beta2", "Machine");
    let labels = format!("cluster.x-k8s.io/cluster-name={cluster},cluster.x-k8s.io/control-plane");
    wait_until(INFRASTRUCTURE, "the machine of the control plane", || async {
        let list = machines.list(&ListParams::default().labels(&labels)).await?;
        let statuses: Vec<&Value> =
            list.iter().map(|machine| &machine.data["status"]["conditions"]).collect();
        Ok(Look::from_option(list.iter().find_map(Machine::of), format!("{statuses:?}")))
    })
    .await
}

async fn authority(client: &Client, namespace: &str, cluster: &str) -> Result<Authority> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let name = format!("{cluster}-ca");
    let data = secrets.get(&name).await?.data.unwrap_or_default();
    let text = |key: &str| -> Result<&str> {
        let value = data.get(key).with_context(|| format!("Secret {name} has no {key}"))?;
        std::str::from_utf8(&value.0).with_context(|| format!("{key} of Secret {name} is not text"))
    };
    Authority::of_cluster(text("tls.crt")?, text("tls.key")?)
}

/// What `kubeadm init` leaves for machines that join later.
fn kubeadm_config(address: SocketAddr, version: &str) -> Result<ConfigMap> {
    let configuration = format!(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: {version}\n\
         controlPlaneEndpoint: {address}\n"
    );
    Ok(serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "kubeadm-config"},
        "data": {"ClusterConfiguration": configuration},
    }))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_has_the_provider_id_of_the_machine() {
        let machine = Machine {
            provider_id: "aws:///eu-west-1b/i-0123456789abcdef0".to_owned(),
            version: "v1.36.3".to_owned(),
            hostname: "ip-10-0-0-4.eu-west-1.compute.internal".to_owned(),
            address: "10.0.0.4".to_owned(),
        };
        let node = machine.node().unwrap();
        assert_eq!(node.spec.unwrap().provider_id.as_deref(), Some(machine.provider_id.as_str()));
        assert!(node.metadata.labels.unwrap().contains_key("node-role.kubernetes.io/control-plane"));
    }
}
