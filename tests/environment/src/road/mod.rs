//! The road that README describes, walked: its commands in order, with Cluster API Provider AWS and CAPASG on a second
//! implementation of AWS. Nothing but endpoint, credentials, inputs and programs comes from elsewhere.

pub mod aws;
pub mod control_plane;
pub mod readme;
pub mod steps;
pub mod table;

mod stand_ins;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::task::spawn_blocking;

use self::{
    readme::{Block, blocks},
    stand_ins::{StandIns, more},
    steps::Session,
    table::Table,
};
use crate::{Capa, Etcd, Management, ManagementOptions, Moto, RunFolder, Settings, Tools, capa, dump, say};

/// The inputs of README that the road gives other values than the page, to show that nothing else depends on those.
const REGION: &str = "us-east-2";
const IMAGE: &str = "ami-0aaaabbbbccccdddd";
const NEW_IMAGE: &str = "ami-0eeeeffff00001111";

/// How long a command may take that is not one of README.
const ADDED: Duration = Duration::from_mins(11);

/// How many lines of a failed command are shown.
const LINES: usize = 30;

/// The variables that the road gives to the user's shell in place of README's lines.
fn inputs() -> BTreeMap<String, String> {
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
struct Around {
    run: Arc<RunFolder>,
    tools: Tools,
    etcd: Arc<Etcd>,
    moto: Moto,
    capa: Capa,
    management: Arc<Management>,
    settings: Settings,
}

impl Around {
    async fn start() -> Result<Self> {
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
        let moto = Moto::start(&run).await?;
        let options = ManagementOptions::default();
        let management = Arc::new(Management::without_providers(&tools, &run, &etcd, &options).await?);
        Ok(Self { run, tools, etcd, moto, capa, management, settings: Settings::from_env() })
    }

    /// What a user's shell has before the first command.
    fn environment(&self) -> Result<BTreeMap<String, String>> {
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

/// Walks the road in `root`, the folder of this repository, and prints the table, the calls and what was corrected. The table is
/// also in `out/road.txt`.
///
/// # Errors
/// When a command of README fails, something is left in AWS, or a part of the environment does not start.
pub async fn walk(root: &Path) -> Result<()> {
    let page = fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
    let blocks = blocks(&page).context("README.md")?;
    ensure!(!blocks.is_empty(), "README.md has no marked commands");
    let around = Around::start().await?;
    let mut table = Table::default();
    let walked = {
        let mut stand_ins = StandIns::new(&around, root)?;
        let walked = commands(&around, root, &blocks, &mut stand_ins, &mut table).await;
        if walked.is_err() {
            keep(&around).await;
        }
        stand_ins.stop().await;
        walked
    };
    report(&around, root, &table).await?;
    walked?;
    let left = around.moto.left(REGION).await?;
    println!("Left in AWS: {left}");
    ensure!(left.is_empty(), "something is left in AWS: {left}");
    around.management.stop().await
}

async fn commands(
    around: &Around,
    root: &Path,
    blocks: &[Block],
    stand_ins: &mut StandIns<'_>,
    table: &mut Table,
) -> Result<()> {
    let session = Session::new(root, around.run.path(), around.environment()?);
    let given = inputs();
    let mut failed: Option<anyhow::Error> = None;
    let mut used = BTreeSet::new();
    for block in blocks {
        used.extend(block.inputs.iter().map(String::as_str));
        if failed.is_none() && block.not_run.is_none() {
            failed = stand_ins.before(block, &session).await.err();
        }
        // Every input has a value of the road's by now.
        let own = block.without(&block.inputs.iter().map(String::as_str).collect()).commands()?;
        let added = more(&block.name).into_iter().map(|command| (false, command));
        for (is_own, command) in own.into_iter().map(|command| (true, command)).chain(added) {
            if let Some(why) = &block.not_run {
                table.not_run(block, &command, why);
                continue;
            }
            if failed.is_some() {
                table.not_reached(block, &command);
                continue;
            }
            println!("\n{} {}", if is_own { '$' } else { '+' }, command.trim_end());
            let ran = tokio::select! {
                ran = session.run(&command, if is_own { block.within } else { ADDED }) => ran?,
                error = stand_ins.failure() => {
                    failed = Some(error.context("a stand-in failed"));
                    table.not_reached(block, &command);
                    continue;
                }
            };
            print!("{}", ran.output);
            table.ran(block, is_own, &command, &ran);
            failed = match ran.failure {
                None => stand_ins.after(&block.name, &command, &session, table).await.err(),
                Some(failure) => {
                    let lines: Vec<&str> = ran.output.lines().collect();
                    let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
                    Some(anyhow::anyhow!("{} failed ({failure}): {end}", command.trim_end()))
                }
            };
        }
    }
    if let Some(name) = given.keys().find(|name| !used.contains(name.as_str())) {
        bail!("README.md has no input {name}");
    }
    failed.map_or(Ok(()), Err)
}

async fn report(around: &Around, root: &Path, table: &Table) -> Result<()> {
    println!("\n{table}");
    fs::write(root.join("out/road.txt"), table.to_string())?;
    println!("Calls that moto answered:\n\n{}", around.moto.summary()?);
    println!("Corrections of moto (tests/moto/README.md), with the number of uses:");
    for (name, uses) in around.moto.corrections().await? {
        println!("* {name}: {uses}");
    }
    println!();
    Ok(())
}

async fn keep(around: &Around) {
    let api = around.management.api();
    let servers = vec![(api.name().to_owned(), api.kubectl().clone())];
    match dump::write(&around.run, &servers, "road").await {
        Ok(folder) => say(&format!("objects, events and logs are in {}", folder.display())),
        Err(error) => say(&format!("failed to save objects, events and logs: {error:#}")),
    }
}
