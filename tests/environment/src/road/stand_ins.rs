//! What happens between the commands of a user, in place of machines, of GitHub and of cert-manager.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Error, Result};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

use super::{Around, NEW_IMAGE, REGION, aws, control_plane::ControlPlane, steps::Session, table::Table};
use crate::{
    Chart, ChartRepository, Join, KubeletOptions, Kubelets, Manager, ManagerOptions, WorkloadCluster, add_on_charts,
    dynamic, environment::add_on_args, kubelet::pods, say,
};

/// The namespace and the name of the cluster that README creates.
const CLUSTER: (&str, &str) = ("default", "prod");

/// The chart of the add-on set that no package registry has, by its name and version there: its values alone.
const EBS: (Chart<'static>, &str) = (
    Chart {
        name: "aws-ebs-csi-driver",
        files: &[(
            "templates/values.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  values: {{ toJson .Values | quote }}\n",
        )],
    },
    "2.64.0",
);

/// The control plane of the cluster, and the kubelets of its machines.
struct Cluster {
    control_plane: ControlPlane,
    pods: JoinHandle<()>,
    _kubelets: Kubelets,
}

impl Cluster {
    async fn stop(self) -> Result<()> {
        self.pods.abort();
        self.control_plane.stop().await
    }
}

/// The kubelet of the control plane's machine, as far as it starts pods. It ends with the runtime, or when it is aborted.
fn pods_of_control_plane(client: Client, node: &str) -> JoinHandle<()> {
    let nodes = BTreeSet::from([node.to_owned()]);
    tokio::spawn(async move {
        loop {
            // The API server may be about to end.
            let _ = pods::run(&client, &nodes, true).await;
            sleep(Duration::from_millis(500)).await;
        }
    })
}

/// What runs beside the commands.
pub(super) struct StandIns<'a> {
    around: &'a Around,
    root: &'a Path,
    has_images: bool,
    managers: Vec<Manager>,
    repository: Option<ChartRepository>,
    cluster: Option<JoinHandle<Result<Cluster>>>,
    failure: Option<oneshot::Receiver<Error>>,
}

impl<'a> StandIns<'a> {
    pub(super) fn new(around: &'a Around, root: &'a Path) -> Self {
        Self { around, root, has_images: false, managers: Vec::new(), repository: None, cluster: None, failure: None }
    }

    /// The failure of what runs in the background; never returns without one.
    pub(super) async fn failure(&mut self) -> Error {
        if let Some(receiver) = &mut self.failure {
            if let Ok(error) = receiver.await {
                return error;
            }
            self.failure = None;
        }
        std::future::pending().await
    }

    /// What follows a command of a block.
    pub(super) async fn after(
        &mut self,
        block: &str,
        command: &str,
        session: &Session,
        table: &mut Table,
    ) -> Result<()> {
        match block {
            "variables" => self.prepare_account(session, table).await,
            "clusterctl-configuration" => self.name_upstream_providers(table),
            "init" if command.starts_with("clusterctl init") => self.start_managers(table).await,
            "add-ons" => self.serve_charts(table).await,
            "create" if command.starts_with("kubectl apply") => self.begin_cluster(session, table).await,
            _ => Ok(()),
        }
    }

    /// Images, once the versions are known.
    async fn prepare_account(&mut self, session: &Session, table: &mut Table) -> Result<()> {
        let Ok(new) = session.variable("NEW_KUBERNETES_VERSION").await else { return Ok(()) };
        if std::mem::replace(&mut self.has_images, true) {
            return Ok(());
        }
        table.stands_in("moto, with the corrections of tests/moto", "AWS");
        table.stands_in("images in moto", "images of image-builder");
        let version = session.variable("KUBERNETES_VERSION").await?;
        let moto = &self.around.moto;
        moto.seed(REGION, &aws::image(&session.variable("AWS_NODE_AMI_ID").await?, &version)).await?;
        moto.seed(REGION, &aws::image(NEW_IMAGE, &new)).await?;
        Ok(())
    }

    /// Adds the providers that clusterctl knows, with files of their Go modules.
    fn name_upstream_providers(&self, table: &mut Table) -> Result<()> {
        let file = self.root.join("out/clusterctl.yaml");
        let mut config: Value = serde_saphyr::from_str(&fs::read_to_string(&file)?)?;
        let known = fs::read_to_string(self.around.management.clusterctl().config())?;
        let known: Value = serde_saphyr::from_str(&known)?;
        let upstream = known["providers"].as_array().into_iter().flatten().cloned();
        let providers = config["providers"].as_array_mut().context("no list of providers")?;
        providers.extend(upstream.chain([aws::provider(&self.around.capa)]));
        fs::write(&file, serde_saphyr::to_string(&config)?)?;
        table.stands_in(
            "provider entries in out/clusterctl.yaml, whose files come from the Go modules",
            "releases of Cluster API and CAPA on GitHub",
        );
        Ok(())
    }

    /// Certificates, and every manager that was installed.
    async fn start_managers(&mut self, table: &mut Table) -> Result<()> {
        let Around { management, capa, moto, settings, run, .. } = self.around;
        management.start_installed().await?;
        self.managers.push(aws::start(management, capa, moto, REGION).await?);

        let program = settings.manager.as_deref().context("the manager is not built")?;
        // Credentials come from the Secret that README creates.
        let env = moto.env(REGION);
        let endpoint: BTreeMap<String, String> = env
            .into_iter()
            .filter(|(name, _)| name == "AWS_ENDPOINT_URL" || name == "AWS_EC2_METADATA_DISABLED")
            .collect();
        let options = ManagerOptions { webhooks: true, env: endpoint, ..ManagerOptions::default() };
        let capasg = management.plan_manager("infrastructure-asg", program, &options).await?;
        self.managers.push(capasg.start_ready().await?);

        let args = vec!["--allow-http-repositories=true".to_owned()];
        let mut options = ManagerOptions { leader_elect: true, args, ..ManagerOptions::default() };
        add_on_args(&mut options, &run.path().join("helm-road")).await?;
        let add_ons = management.plan_manager("addon-asg-helm", program, &options).await?;
        self.managers.push(add_ons.start_ready().await?);
        self.report_deployments().await?;
        table.stands_in(
            "processes with the arguments of their Deployments, the rights of their service accounts, and certificates",
            "pods and cert-manager; the status of the Deployments follows the processes",
        );
        Ok(())
    }

    /// Every manager is ready here, as its process said.
    async fn report_deployments(&self) -> Result<()> {
        let client = self.around.management.api().client().await?;
        let all: Api<Deployment> = Api::all(client.clone());
        for deployment in all.list(&ListParams::default()).await? {
            let name = deployment.name_any();
            let api: Api<Deployment> = Api::namespaced(client.clone(), &deployment.namespace().unwrap_or_default());
            let status = json!({"status": {
                "observedGeneration": deployment.metadata.generation, "replicas": 1, "updatedReplicas": 1,
                "readyReplicas": 1, "availableReplicas": 1,
                "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": ""}],
            }});
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
        }
        Ok(())
    }

    /// A repository on this machine, with the charts of the add-on set.
    async fn serve_charts(&mut self, table: &mut Table) -> Result<()> {
        let charts = spawn_blocking(|| add_on_charts(&say)).await??;
        let repository = ChartRepository::serve(self.around.run.path().join("charts")).await?;
        repository.add(&[EBS]).await?;
        repository.add_folders(&charts).await?;
        let client = self.around.management.api().client().await?;
        let proxies = dynamic(&client, CLUSTER.0, "addons.cluster.x-k8s.io", "v1alpha1", "HelmChartProxy");
        let url = json!({"spec": {"repoURL": repository.url}});
        for proxy in proxies.list(&ListParams::default()).await? {
            let proxy: DynamicObject = proxy;
            proxies.patch(&proxy.name_any(), &PatchParams::default(), &Patch::Merge(&url)).await?;
        }
        self.repository = Some(repository);
        table.stands_in(
            "a repository on this machine, with the charts of Cilium and of the cloud controller from Go modules, and a chart \
             that contains nothing but its values for the EBS CSI driver",
            "the repositories in spec.repoURL of the HelmChartProxies",
        );
        Ok(())
    }

    /// The control plane as soon as CAPA has launched its machine, then kubelets of the pool, in the background.
    async fn begin_cluster(&mut self, session: &Session, table: &mut Table) -> Result<()> {
        let version = session.variable("KUBERNETES_VERSION").await?;
        let (tools, etcd) = (self.around.tools.clone(), Arc::clone(&self.around.etcd));
        let management = Arc::clone(&self.around.management);
        let instances = self.around.moto.instances(REGION);
        let (tell, failure) = oneshot::channel();
        self.failure = Some(failure);
        let (namespace, name) = CLUSTER;
        self.cluster = Some(tokio::spawn(async move {
            let work = async {
                let control_plane = ControlPlane::stand_up(&management, &tools, &etcd, namespace, name).await?;
                say("the control plane of prod answers");
                let pods = pods_of_control_plane(control_plane.api().client().await?, control_plane.node());
                let cluster = WorkloadCluster::existing(&management, &tools, namespace, name, true).await?;
                let options = KubeletOptions { join: Join::BootstrapToken, version, remove_nodes: true };
                let kubelets = Kubelets::start(&cluster, instances, options).await?;
                Ok(Cluster { control_plane, pods, _kubelets: kubelets })
            };
            let done: Result<Cluster> = work.await;
            match done {
                Ok(cluster) => {
                    // Dropping the sender is no failure.
                    drop(tell);
                    Ok(cluster)
                }
                Err(error) => {
                    let text = format!("{error:#}");
                    let _ = tell.send(error);
                    Err(anyhow::anyhow!(text))
                }
            }
        }));
        table.stands_in(
            "a kube-apiserver at the address of the load balancer, and Nodes with the provider IDs of running instances that \
             have a valid bootstrap token",
            "what cloud-init, kubeadm and kubelet do on instances",
        );
        Ok(())
    }

    /// Ends what runs, newest first.
    pub(super) async fn stop(self) {
        if let Some(task) = self.cluster {
            if task.is_finished() {
                if let Ok(Ok(cluster)) = task.await {
                    let _ = cluster.stop().await;
                }
            } else {
                task.abort();
            }
        }
        for manager in self.managers.into_iter().rev() {
            let _ = manager.stop().await;
        }
    }
}
