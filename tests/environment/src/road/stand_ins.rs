//! What happens between the commands of a user, in place of machines, of GitHub and of cert-manager.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Error, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};

use super::{
    around::{Around, NEW_IMAGE, REGION, inputs},
    aws,
    control_plane::ControlPlane,
    readme::Block,
    steps::Session,
    table::Table,
};
use crate::{
    Chart, ChartRepository, Join, KubeletOptions, Kubelets, Manager, ManagerOptions, WorkloadCluster,
    add_on_charts, dynamic, environment::add_on_args, kubelet::pods, ports, say,
};

/// The namespace and the name of the cluster that README creates. Those of flavors have the name of the flavor in addition.
const NAMESPACE: &str = "default";
const CLUSTER: &str = "prod";

/// The inputs of README for an existing VPC: its ID, its subnets, and the subnets of the nodes.
const VPC_INPUTS: [&str; 3] = ["AWS_VPC_ID", "AWS_VPC_SUBNETS", "AWS_NODE_SUBNETS"];

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
    /// The port of the hooks of the Runtime Extension.
    hooks: u16,
    repository: Option<ChartRepository>,
    clusters: BTreeMap<String, JoinHandle<Option<Cluster>>>,
    fail: UnboundedSender<Error>,
    failures: UnboundedReceiver<Error>,
}

impl<'a> StandIns<'a> {
    pub(super) fn new(around: &'a Around, root: &'a Path) -> Result<Self> {
        let (fail, failures) = unbounded_channel();
        Ok(Self {
            around,
            root,
            has_images: false,
            managers: Vec::new(),
            hooks: ports::free()?,
            repository: None,
            clusters: BTreeMap::new(),
            fail,
            failures,
        })
    }

    /// The failure of what runs in the background; never returns without one.
    pub(super) async fn failure(&mut self) -> Error {
        match self.failures.recv().await {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// What precedes a block: inputs whose values exist by now alone.
    pub(super) async fn before(&self, block: &Block, session: &Session) -> Result<()> {
        if !block.inputs.iter().any(|input| VPC_INPUTS.contains(&input.as_str())) {
            return Ok(());
        }
        // The network that CAPA made for another cluster exists, and belongs to that.
        let client = self.around.management.api().client().await?;
        let networks =
            dynamic(&client, NAMESPACE, "infrastructure.cluster.x-k8s.io", "v1beta2", "AWSCluster");
        let network = networks.get(CLUSTER).await?.data["spec"]["network"].clone();
        let subnets = network["subnets"].as_array().context("no subnets")?;
        let ids: Vec<Value> = subnets.iter().map(|subnet| json!({"id": subnet["resourceID"]})).collect();
        let tags = json!([{"tags": {"sigs.k8s.io/cluster-api-provider-aws/role": "private"}}]);
        let vpc = network["vpc"]["id"].as_str().context("no VPC")?.to_owned();
        for (name, value) in
            VPC_INPUTS.into_iter().zip([vpc, Value::Array(ids).to_string(), tags.to_string()])
        {
            let ran = session.run(&format!("export {name}='{value}'\n"), Duration::from_mins(1)).await?;
            ensure!(ran.failure.is_none(), "{name}: {}", ran.output);
        }
        Ok(())
    }

    /// What follows a command of a block.
    pub(super) async fn after(
        &mut self,
        block: &str,
        command: &str,
        session: &Session,
        table: &mut Table,
    ) -> Result<()> {
        if let Some(cluster) = command.strip_prefix("kubectl delete cluster ") {
            return self.end_cluster(cluster.split_whitespace().next().unwrap_or_default()).await;
        }
        let is = |beginning: &str| command.starts_with(beginning);
        match block {
            "variables" => self.prepare_account(session, table).await,
            "clusterctl-configuration" => self.name_upstream_providers(table),
            "init" if is("clusterctl init") => self.start_managers(table).await,
            "add-ons" => self.serve_charts(table).await,
            "create" if is("kubectl apply") => self.begin_cluster(CLUSTER, session, table).await,
            "flavor-extension" if is("clusterctl init") => self.start_extension().await,
            "flavor-extension" if command.contains("extensionconfig.yaml") => self.reach_extension().await,
            _ => match (block.strip_prefix("flavor-"), command.contains("--dry-run")) {
                (Some(flavor), false) if is("kubectl apply") => {
                    self.begin_cluster(&format!("{CLUSTER}-{flavor}"), session, table).await
                }
                _ => Ok(()),
            },
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
        let names: Vec<String> = inputs().into_keys().chain(VPC_INPUTS.map(str::to_owned)).collect();
        table.stands_in(&format!("other values of {}", names.join(", ")), "those on the page");
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
            let api: Api<Deployment> =
                Api::namespaced(client.clone(), &deployment.namespace().unwrap_or_default());
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
        let proxies = dynamic(&client, NAMESPACE, "addons.cluster.x-k8s.io", "v1alpha1", "HelmChartProxy");
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

    /// The Runtime Extension, which `clusterctl init` has just installed.
    async fn start_extension(&mut self) -> Result<()> {
        let Around { management, moto, settings, .. } = self.around;
        management.reconcile_webhooks().await?;
        let program = settings.manager.as_deref().context("the manager is not built")?;
        let args = vec![format!("--webhook-port={}", self.hooks)];
        let options =
            ManagerOptions { webhooks: true, args, env: moto.env(REGION), ..ManagerOptions::default() };
        let extension = management.plan_manager("runtime-extension-asg", program, &options).await?;
        self.managers.push(extension.start_ready().await?);
        self.report_deployments().await
    }

    /// The address of its process, in place of that of its Service.
    async fn reach_extension(&self) -> Result<()> {
        let client = self.around.management.api().client().await?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "runtime.cluster.x-k8s.io",
            "v1beta2",
            "ExtensionConfig",
        ));
        let configs: Api<DynamicObject> = Api::all_with(client, &kind);
        let url = format!("https://127.0.0.1:{}", self.hooks);
        let patch = json!({"spec": {"clientConfig": {"service": null, "url": url}}});
        configs.patch("asg", &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// The control plane as soon as CAPA has launched its machine, then kubelets of the pool, in the background.
    async fn begin_cluster(&mut self, name: &str, session: &Session, table: &mut Table) -> Result<()> {
        let version = session.variable("KUBERNETES_VERSION").await?;
        let (tools, etcd) = (self.around.tools.clone(), Arc::clone(&self.around.etcd));
        let management = Arc::clone(&self.around.management);
        let instances = self.around.moto.instances(REGION);
        let (fail, own) = (self.fail.clone(), name.to_owned());
        let task = tokio::spawn(async move {
            let work = async {
                let control_plane =
                    ControlPlane::stand_up(&management, &tools, &etcd, NAMESPACE, &own).await?;
                say(&format!("the control plane of {own} answers"));
                let pods = pods_of_control_plane(control_plane.api().client().await?, control_plane.node());
                let cluster = WorkloadCluster::existing(&management, &tools, NAMESPACE, &own, true).await?;
                let options = KubeletOptions { join: Join::BootstrapToken, version, remove_nodes: true };
                let kubelets = Kubelets::start(&cluster, instances, options).await?;
                anyhow::Ok(Cluster { control_plane, pods, _kubelets: kubelets })
            };
            match work.await {
                Ok(cluster) => Some(cluster),
                Err(error) => {
                    // Without a receiver, the road has ended.
                    let _ = fail.send(error.context(format!("the control plane of {own}")));
                    None
                }
            }
        });
        self.clusters.insert(name.to_owned(), task);
        if name == CLUSTER {
            table.stands_in(
                "a kube-apiserver at the address of the load balancer, and Nodes with the provider IDs of running instances \
                 that have a valid bootstrap token",
                "what cloud-init, kubeadm and kubelet do on instances",
            );
        }
        Ok(())
    }

    async fn end_cluster(&mut self, name: &str) -> Result<()> {
        let Some(task) = self.clusters.remove(name) else { return Ok(()) };
        if !task.is_finished() {
            task.abort();
            return Ok(());
        }
        match task.await? {
            Some(cluster) => cluster.stop().await,
            None => Ok(()),
        }
    }

    /// Ends what runs, newest first.
    pub(super) async fn stop(mut self) {
        let names: Vec<String> = self.clusters.keys().cloned().collect();
        for name in names {
            // Their processes end with the run folder at the latest.
            let _ = self.end_cluster(&name).await;
        }
        for manager in self.managers.into_iter().rev() {
            let _ = manager.stop().await;
        }
    }
}

/// Commands that the road adds to a block of README, in words of the same kind: a flavor that README only checks becomes a
/// cluster with nodes.
pub(super) fn more(block: &str) -> Vec<String> {
    let Some(flavor) = block.strip_prefix("flavor-") else { return Vec::new() };
    let cluster = format!("{CLUSTER}-{flavor}");
    [
        format!("kubectl apply --filename out/{flavor}.yaml"),
        format!("kubectl wait cluster {cluster} --for=condition=ControlPlaneInitialized --timeout=10m"),
        format!(
            "kubectl wait machinepool --selector cluster.x-k8s.io/cluster-name={cluster} \
             --for=jsonpath='{{.status.readyReplicas}}'=3 --timeout=10m"
        ),
        format!("kubectl delete cluster {cluster} --timeout=10m"),
    ]
    .map(|command| command + "\n")
    .into()
}
