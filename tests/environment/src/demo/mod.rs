//! The story of one pool: told by real commands and their output, each step with a deadline.

mod stage;
mod steps;
mod timeline;

use std::time::Duration;

use anyhow::{Context as _, Result};
use capasg_environment::{
    Environment, Join, KubeletOptions, Kubelets, Manager, ManagerOptions, Settings, WorkloadCluster,
};

use self::{stage::Stage, steps::Story};
use crate::stay;

/// Tells the story; with `keep` all but its end, and stays up.
pub async fn run(keep: bool) -> Result<()> {
    tokio::select! {
        told = start_and_tell(keep) => told,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("no Ctrl-C can be waited for")?;
            anyhow::bail!("interrupted; everything is ended")
        }
    }
}

async fn start_and_tell(keep: bool) -> Result<()> {
    let mut stage = Stage::new();
    stage.chapter("A control plane on this machine");
    stage.tell(
        "etcd, kube-apiserver and Cluster API are the upstream programs, started as processes. AWS is simulated. \
         clusterctl installs CAPASG from its release folder next to core Cluster API.",
    );
    let environment = Environment::start(Settings::from_env()).await?;
    let told = tell(&environment, &mut stage, keep).await;
    if told.is_err() {
        match environment.dump("demo").await {
            Ok(folder) => stage.tell(&format!("Objects, events and logs are kept in {}", folder.display())),
            Err(error) => stage.tell(&format!("Nothing could be kept for reading: {error:#}")),
        }
    }
    environment.stop().await?;
    told
}

async fn tell(environment: &Environment, stage: &mut Stage, keep: bool) -> Result<()> {
    anyhow::ensure!(
        environment.settings().release.is_some(),
        "there is no release of ours: `make release` writes one"
    );
    stage.show("clusterctl init --infrastructure docker,asg", environment.management().installed());
    let manager = environment.plan_manager(ManagerOptions::default()).await?.start_ready().await?;
    stage.reached("the manager of CAPASG runs under its own service account");

    let story = Story::new(environment).await?;
    story.apply(stage).await?;
    let (cluster, _kubelets) = control_plane(environment, stage, &story).await?;
    story.running(stage, &cluster).await?;
    story.scale_out(stage, &cluster).await?;
    story.scale_in(stage, &cluster).await?;
    story.replace(stage, &cluster).await?;
    story.rotate(stage, &cluster).await?;
    if keep {
        stage.chapter("Yours");
        return stay::until_interrupted(environment).await;
    }
    story.delete(stage).await?;
    stop(manager, stage).await
}

async fn control_plane(
    environment: &Environment,
    stage: &mut Stage,
    story: &Story<'_>,
) -> Result<(WorkloadCluster, Kubelets)> {
    let (management, tools) = (environment.management(), environment.tools());
    let cluster = WorkloadCluster::existing(management, tools, story.namespace(), Story::CLUSTER).await?;
    stage.reached("the control plane of the workload cluster is initialized");
    let options = KubeletOptions {
        join: Join::BootstrapToken,
        version: tools.kubernetes_version().to_owned(),
        remove_nodes: false,
    };
    let kubelets = Kubelets::start(&cluster, environment.cloud().instances(Story::REGION), options).await?;
    Ok((cluster, kubelets))
}

async fn stop(manager: Manager, stage: &mut Stage) -> Result<()> {
    let status = manager.stop().await?;
    anyhow::ensure!(status.success(), "the manager ended with {status}");
    stage.chapter(&format!("The end, after {} s", stage.elapsed().as_secs()));
    Ok(())
}

/// How long each step may take, on two cores that other things use too. Seen: a tenth to a third of it.
pub(self) const DEADLINE: Duration = Duration::from_secs(180);
