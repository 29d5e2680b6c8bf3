//! Cluster API Add-on Provider for Helm (CAAPH) with its own program and its own manifests, on a management cluster of its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use capasg_environment::{Environment, Management, ManagementOptions, ManagerOptions, ManagerPlan, caaph};
use serde_json::{Value, json};
use tokio::{process::Command, task::spawn_blocking};

/// CAAPH, and its management cluster.
pub struct Caaph {
    /// The management cluster. Ours is installed there as well, and does not run.
    pub management: Management,
    /// The objects that an installation creates.
    pub components: Vec<Value>,
    program: PathBuf,
    home: PathBuf,
}

impl Caaph {
    /// Starts the management cluster. The first time, CAAPH is built. Its program writes into `home`.
    ///
    /// # Errors
    /// When it cannot be built, or the management cluster does not start.
    pub async fn new(environment: &Environment, options: ManagementOptions, home: PathBuf) -> Result<Self> {
        let tools = environment.tools().clone();
        let folder = spawn_blocking(move || caaph(&tools, &|line| eprintln!("{line}"))).await??;
        let management = environment.second_management(options).await?;
        let text = fs::read_to_string(folder.join("addon-helm.yaml"))?;
        let text = management.clusterctl().runner().feed(["generate", "yaml"], &text).await?;
        let components = serde_saphyr::from_multiple(&text)?;
        Ok(Self { management, components, program: folder.join("caaph"), home })
    }

    /// Installs it with its definitions, as its users have them.
    ///
    /// # Errors
    /// When the API server rejects an object.
    pub async fn install(&self) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.components});
        self.apply(&list).await?;
        self.management.reconcile_webhooks().await
    }

    /// Applies objects on the management cluster.
    ///
    /// # Errors
    /// When the API server rejects one.
    pub async fn apply(&self, list: &Value) -> Result<()> {
        let apply = ["apply", "--server-side", "--force-conflicts", "--filename=-"];
        self.management.api().kubectl().feed(apply, &list.to_string()).await.map(drop)
    }

    /// How it starts: without its Lease, for which it requires the namespace of a pod.
    ///
    /// # Errors
    /// When it is not installed.
    pub async fn plan(&self) -> Result<ManagerPlan> {
        let home = self.home.display().to_string();
        let folders =
            ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "KUBECACHEDIR"];
        let options = ManagerOptions {
            name: "caaph".to_owned(),
            webhooks: true,
            env: folders.iter().map(|name| ((*name).to_owned(), home.clone())).collect(),
            ..ManagerOptions::default()
        };
        self.management.plan_manager("helm", &self.program, &options).await
    }

    /// Where its sources are, which its program is built from.
    ///
    /// # Errors
    /// When Go does not know its module.
    pub async fn sources() -> Result<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/caaph");
        let module = "sigs.k8s.io/cluster-api-addon-provider-helm";
        let mut command = Command::new("go");
        let listed = command.args(["list", "-m", "-f", "{{.Dir}}", module]).current_dir(folder);
        let printed = String::from_utf8(listed.output().await?.stdout)?;
        let folder = Some(printed.trim()).filter(|folder| !folder.is_empty());
        folder.map(PathBuf::from).context("Go does not know where its sources are")
    }
}
