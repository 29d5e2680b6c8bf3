//! What the road runs on, and what the shell of its user has.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use tokio::task::spawn_blocking;

use crate::{Capa, Etcd, Management, ManagementOptions, Moto, RunFolder, Settings, Tools, capa, say};

/// The inputs of README that the road gives other values than the page, to show that nothing else depends on those.
pub(super) const REGION: &str = "us-east-2";
const IMAGE: &str = "ami-0aaaabbbbccccdddd";
pub(super) const NEW_IMAGE: &str = "ami-0eeeeffff00001111";

/// The variables that the road gives to the user's shell in place of README's lines.
pub(super) fn inputs() -> BTreeMap<String, String> {
    [
        ("AWS_REGION", REGION),
        ("REGISTRY", "registry.test/road"),
        ("AWS_NODE_AMI_ID", IMAGE),
        ("NEW_AMI_ID", NEW_IMAGE),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// What the road runs on.
pub(super) struct Around {
    pub(super) run: Arc<RunFolder>,
    pub(super) tools: Tools,
    pub(super) etcd: Arc<Etcd>,
    pub(super) moto: Moto,
    pub(super) capa: Capa,
    pub(super) management: Arc<Management>,
    pub(super) settings: Settings,
}

impl Around {
    pub(super) async fn start() -> Result<Self> {
        crate::install_crypto_provider();
        let (tools, capa) = spawn_blocking(|| {
            let tools = Tools::ready(&say)?;
            let capa = capa(&tools, &say)?;
            anyhow::Ok((tools, capa))
        })
        .await??;
        let run = Arc::new(RunFolder::new()?);
        say(&format!("run folder {}", run.path().display()));
        let etcd = Arc::new(Etcd::start(&tools, &run).await?);
        say("checking the corrections of moto");
        Moto::check_corrections().await?;
        let moto = Moto::start(&run).await?;
        let options = ManagementOptions::default();
        let management = Arc::new(Management::without_providers(&tools, &run, &etcd, &options).await?);
        Ok(Self { run, tools, etcd, moto, capa, management, settings: Settings::from_env() })
    }

    /// What a user's shell has before the first command.
    pub(super) fn environment(&self) -> Result<BTreeMap<String, String>> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.tools.folder().to_owned(), self.capa.folder.clone()];
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path)))?;
        let mut env = self.moto.env(REGION);
        env.extend(inputs());
        let text = |path: &Path| path.display().to_string();
        env.extend([
            ("PATH".to_owned(), path.into_string().ok().context("PATH is not UTF-8")?),
            ("KUBECONFIG".to_owned(), text(self.management.api().kubeconfig())),
            ("KUBECACHEDIR".to_owned(), text(&self.run.path().join("kubectl-cache"))),
            ("XDG_CONFIG_HOME".to_owned(), text(&self.run.path().join("configuration"))),
            ("CLUSTERCTL_DISABLE_VERSIONCHECK".to_owned(), "true".to_owned()),
        ]);
        Ok(env)
    }
}
