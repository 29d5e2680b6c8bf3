//! Cluster API Add-on Provider for Helm (CAAPH) with its own program and its own manifests, on a management cluster of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use capasg_e2e::{CLUSTER, Rig, shared_workload_api};
use capasg_environment::{Management, ManagementOptions, Manager, ManagerOptions, WorkloadCluster, caaph};
use serde_json::{Value, json};
use tokio::{process::Command, task::spawn_blocking};

/// CAAPH, and its management cluster.
pub struct Caaph<'a> {
    rig: &'a Rig<'a>,
    /// The management cluster. Ours is installed there as well, and does not run.
    pub management: Management,
    /// The objects that an installation creates.
    pub components: Vec<Value>,
    program: PathBuf,
}

impl<'a> Caaph<'a> {
    /// Starts the management cluster, with the test's namespace and a Cluster in it. The first time, CAAPH is built.
    pub async fn new(rig: &'a Rig<'a>, name: &str) -> Result<Self> {
        let environment = &rig.scenario.environment;
        let tools = environment.tools().clone();
        let folder = spawn_blocking(move || caaph(&tools, &|line| eprintln!("{line}"))).await??;
        let options = ManagementOptions { name: name.to_owned(), ..ManagementOptions::default() };
        let management = environment.second_management(options).await?;
        let workload = shared_workload_api(environment).await?;
        let namespace = &rig.scenario.namespace;
        management.api().kubectl().run(["create", "namespace", namespace]).await?;
        WorkloadCluster::stub(&management, environment.tools(), namespace, CLUSTER, workload).await?;
        let text = fs::read_to_string(folder.join("addon-helm.yaml"))?;
        let text = management.clusterctl().runner().feed(["generate", "yaml"], &text).await?;
        let components = serde_saphyr::from_multiple(&text)?;
        Ok(Self { rig, management, components, program: folder.join("caaph") })
    }

    /// With its definitions, as its users have them.
    pub async fn install(&self) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.components});
        self.apply(&list).await?;
        self.management.reconcile_webhooks().await
    }

    /// Applies objects on the management cluster.
    pub async fn apply(&self, list: &Value) -> Result<()> {
        let apply = ["apply", "--server-side", "--force-conflicts", "--filename=-"];
        self.management.api().kubectl().feed(apply, &list.to_string()).await.map(drop)
    }

    /// Without its Lease, for which it looks for the namespace of its pod.
    pub async fn start(&self) -> Result<Manager> {
        let home = self.rig.charts_folder("caaph").display().to_string();
        let folders =
            ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "KUBECACHEDIR"];
        let options = ManagerOptions {
            name: "caaph".to_owned(),
            webhooks: true,
            env: folders.iter().map(|name| ((*name).to_owned(), home.clone())).collect(),
            ..ManagerOptions::default()
        };
        self.management.plan_manager("helm", &self.program, &options).await?.start_ready().await
    }
}

/// Ends CAAPH as Kubernetes does.
pub async fn stop(manager: Manager) -> Result<()> {
    manager.process().stop(Duration::from_secs(20)).await.map(drop)
}

/// Where the sources of CAAPH are, which its program is built from.
pub async fn sources() -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/caaph");
    let module = "sigs.k8s.io/cluster-api-addon-provider-helm";
    let mut command = Command::new("go");
    let output = command.args(["list", "-m", "-f", "{{.Dir}}", module]).current_dir(folder).output().await?;
    let printed = String::from_utf8(output.stdout)?;
    let folder = Some(printed.trim()).filter(|folder| !folder.is_empty());
    folder.map(PathBuf::from).context("Go does not know where its sources are")
}
