//! The story of one pool: told by real commands and their output, each step with a deadline.

mod stage;
mod steps;
mod timeline;

use std::future::Future;

use anyhow::{Context as _, Result, bail, ensure};
use capasg_environment::{
    Environment, Join, KubeletOptions, Kubelets, Manager, ManagerOptions, Settings, WorkloadCluster,
};

use self::{stage::Stage, steps::Story};
use crate::stay;

/// What has to live as long as the story, or as long as somebody looks at its end.
struct Scene {
    manager: Manager,
    _kubelets: Kubelets,
}

/// Tells the story; with `keep` all but its end, and stays up.
pub async fn run(keep: bool) -> Result<()> {
    let mut stage = Stage::new();
    stage.chapter("A control plane on this machine");
    stage.tell(
        "etcd, kube-apiserver and Cluster API are the upstream programs, started as processes. AWS is simulated. \
         clusterctl installs CAPASG from its release folder next to core Cluster API.",
    );
    let settings = Settings::from_env();
    ensure!(settings.release.is_some(), "there is no release of ours: `make release` writes one");
    let environment = or_interrupted(Environment::start(settings)).await?;
    let told = or_interrupted(tell(&environment, &mut stage, keep)).await;
    let ended = match told {
        Ok(scene) => end(&environment, &stage, scene, keep).await,
        Err(error) => {
            match environment.dump("demo").await {
                Ok(folder) => {
                    stage.tell(&format!("Objects, events and logs are kept in {}", folder.display()));
                }
                Err(error) => stage.tell(&format!("Nothing could be kept for reading: {error:#}")),
            }
            Err(error)
        }
    };
    environment.stop().await?;
    ended?;
    stage.chapter(&format!("The end, after {} s", stage.elapsed().as_secs()));
    Ok(())
}

async fn or_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("no Ctrl-C can be waited for")?;
            bail!("interrupted")
        }
    }
}

async fn tell(environment: &Environment, stage: &mut Stage, keep: bool) -> Result<Scene> {
    environment.management().start_in_memory().await?;
    stage.show("clusterctl init --infrastructure docker,asg", environment.management().installed());
    let manager = environment
        .plan_manager(ManagerOptions { webhooks: true, ..ManagerOptions::default() })
        .await?
        .start_ready()
        .await?;
    stage.reached("the manager of CAPASG runs under its own service account");

    let story = Story::new(environment).await?;
    story.apply(stage).await?;
    let (cluster, kubelets) = control_plane(environment, stage).await?;
    story.running(stage, &cluster).await?;
    story.scale_out(stage, &cluster).await?;
    story.scale_in(stage, &cluster).await?;
    story.replace(stage, &cluster).await?;
    story.rotate(stage, &cluster).await?;
    story.roll(stage, &cluster).await?;
    if keep {
        stage.chapter("The rest is yours");
    } else {
        story.delete(stage).await?;
    }
    Ok(Scene { manager, _kubelets: kubelets })
}

async fn end(environment: &Environment, stage: &Stage, scene: Scene, keep: bool) -> Result<()> {
    if keep {
        stay::until_interrupted(environment).await?;
    }
    let status = scene.manager.stop().await?;
    ensure!(status.success(), "the manager ended with {status}");
    stage.reached("the manager ended in good order");
    Ok(())
}

async fn control_plane(environment: &Environment, stage: &Stage) -> Result<(WorkloadCluster, Kubelets)> {
    let (management, tools) = (environment.management(), environment.tools());
    let cluster = WorkloadCluster::existing(management, tools, Story::NAMESPACE, Story::CLUSTER).await?;
    stage.reached("the control plane of the workload cluster is initialized");
    let options = KubeletOptions {
        join: Join::BootstrapToken,
        version: tools.kubernetes_version().to_owned(),
        remove_nodes: false,
    };
    let kubelets = Kubelets::start(&cluster, environment.cloud().instances(Story::REGION), options).await?;
    Ok((cluster, kubelets))
}
