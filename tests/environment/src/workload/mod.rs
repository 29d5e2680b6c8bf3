//! Workload clusters: what pools belong to and what their instances join.

mod manifests;
mod objects;
mod stub;
pub(crate) mod tokens;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::DynamicObject, config::Kubeconfig};

pub use self::objects::dynamic;
pub use self::stub::{control_plane_secrets, report as report_stub_control_plane};
use crate::{
    api_server::ApiServer,
    command::Runner,
    kubeconfig::client_of,
    management::Management,
    pki,
    run_folder::RunFolder,
    tools::Tools,
    wait::{Look, wait_for_object},
};

/// How long a control plane may take from its objects to "initialized". Seen: 44 s on two cores; core retries two minutes
/// after the return of an extension that was gone for as long.
const INITIALIZED: Duration = Duration::from_mins(6);

/// A workload cluster with an API that answers.
#[derive(Clone)]
pub struct WorkloadCluster {
    namespace: String,
    name: String,
    endpoint: String,
    kubeconfig: String,
    file: PathBuf,
    real: bool,
    kubectl: Runner,
    management: Client,
}

impl WorkloadCluster {
    /// Makes an in-memory cluster: `Cluster`, `DevCluster`, `KubeadmControlPlane` and `DevMachineTemplate`, and waits
    /// until core says that its control plane is initialized. No machine and no container runs for it.
    ///
    /// Its API has no evictions, no subresources and no server-side apply; see [`WorkloadCluster::stub`].
    ///
    /// # Errors
    /// When the objects are refused or the control plane does not come up within six minutes.
    pub async fn in_memory(
        management: &Management,
        tools: &Tools,
        namespace: &str,
        name: &str,
    ) -> Result<Self> {
        management.start_in_memory().await?;
        let objects = manifests::in_memory(namespace, name, tools.kubernetes_version());
        management.api().kubectl().feed(["apply", "-f", "-"], &objects.to_string()).await?;
        Self::existing(management, tools, namespace, name, false).await
    }

    /// A cluster whose objects somebody else applied, for example from `clusterctl generate cluster`. Waits until its
    /// control plane is initialized. If it is an in-memory cluster, [`Management::start_in_memory`] comes first; if not,
    /// its API is `real`, a whole API server.
    ///
    /// # Errors
    /// When it is not within six minutes.
    pub async fn existing(
        management: &Management,
        tools: &Tools,
        namespace: &str,
        name: &str,
        real: bool,
    ) -> Result<Self> {
        let client = management.api().client().await?;
        let clusters = dynamic(&client, namespace, "cluster.x-k8s.io", "v1beta2", "Cluster");
        wait_for_object(&clusters, name, INITIALIZED, control_plane_initialized).await?;
        Self::open(management, tools, namespace, name, real).await
    }

    /// A cluster whose control plane is `api`, a real API server: with evictions and `PodDisruptionBudgets`, ready within
    /// seconds, and any number of them can share one. Core believes that another provider runs the control plane.
    ///
    /// # Errors
    /// When the objects are refused, or core does not call the control plane initialized within six minutes.
    pub async fn stub(
        management: &Management,
        tools: &Tools,
        namespace: &str,
        name: &str,
        api: &ApiServer,
    ) -> Result<Self> {
        let client = management.api().client().await?;
        stub::install(management).await?;
        stub::apply(management, &client, namespace, name, api, tools.kubernetes_version()).await?;
        let clusters = dynamic(&client, namespace, "cluster.x-k8s.io", "v1beta2", "Cluster");
        wait_for_object(&clusters, name, INITIALIZED, control_plane_initialized).await?;
        Self::open(management, tools, namespace, name, true).await
    }

    /// Installs the kind of the control planes of [`WorkloadCluster::stub`], which belongs to no provider, so that
    /// clusters can be moved here.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn install_stub_kind(management: &Management) -> Result<()> {
        stub::install(management).await
    }

    async fn open(
        management: &Management,
        tools: &Tools,
        namespace: &str,
        name: &str,
        real: bool,
    ) -> Result<Self> {
        let client = management.api().client().await?;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let secret = secrets.get(&format!("{name}-kubeconfig")).await.context("no kubeconfig Secret")?;
        let value = secret
            .data
            .and_then(|mut data| data.remove("value"))
            .context("a kubeconfig Secret without value")?;
        let kubeconfig = String::from_utf8(value.0).context("a kubeconfig that is no text")?;
        let run: &Arc<RunFolder> = management.run();
        let file = run.path().join("kubeconfigs").join(format!("{namespace}-{name}.yaml"));
        pki::write_private(&file, &kubeconfig)?;
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            endpoint: endpoint(&kubeconfig)?,
            kubectl: Runner::new(tools.program("kubectl"))
                .env("KUBECONFIG", &file)
                .env("KUBECACHEDIR", run.path().join("kubectl-cache")),
            kubeconfig,
            file,
            real,
            management: client,
        })
    }

    /// The cluster that its `Cluster` is in.
    pub(crate) fn management(&self) -> &Client {
        &self.management
    }

    /// The namespace of its `Cluster`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of its `Cluster`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Host and port of its API, as nodes are told to join.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// An administrator's kubeconfig file.
    #[must_use]
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.file
    }

    /// Whether its API is a whole API server.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.real
    }

    /// kubectl with an administrator's rights.
    #[must_use]
    pub fn kubectl(&self) -> &Runner {
        &self.kubectl
    }

    /// A new client with an administrator's rights, bound to the calling runtime.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn client(&self) -> Result<Client> {
        client_of(&self.kubeconfig).await
    }

    /// Lets the bootstrap provider rotate the token of this `KubeadmConfig` at once, by the only thing that makes it:
    /// a token that is about to expire. Answers the names of the old and the new token's Secrets.
    ///
    /// # Errors
    /// When the config has no token yet, or none of its machines has joined (then the token is only prolonged), so
    /// that there is no new one in the bootstrap Secret within a minute.
    pub async fn rotate_bootstrap_token(&self, kubeadm_config: &str) -> Result<(String, String)> {
        tokens::rotate(&self.client().await?, &self.management, &self.namespace, kubeadm_config).await
    }
}

fn control_plane_initialized(cluster: &DynamicObject) -> Look<()> {
    let conditions = &cluster.data["status"]["conditions"];
    let condition = conditions
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "ControlPlaneInitialized");
    match condition {
        Some(condition) if condition["status"] == "True" => Look::Done(()),
        Some(condition) => Look::Not(format!("ControlPlaneInitialized is {condition}")),
        None => Look::Not("there is no condition ControlPlaneInitialized".to_owned()),
    }
}

/// Host and port of the server in a kubeconfig.
fn endpoint(kubeconfig: &str) -> Result<String> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let server = kubeconfig
        .clusters
        .first()
        .and_then(|cluster| cluster.cluster.as_ref()?.server.as_deref())
        .context("a kubeconfig without server")?;
    Ok(server.trim_start_matches("https://").trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_what_nodes_are_told() {
        let text = "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster:\n    server: https://127.0.0.1:20001\n";
        assert_eq!(endpoint(text).unwrap(), "127.0.0.1:20001");
    }
}
