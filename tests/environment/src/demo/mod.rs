//! The lifecycle of one pool, a safe upgrade, and Helm add-ons, shown by real commands and their output, each step with a
//! deadline.

mod addons;
mod cluster;
mod objects;
mod stage;
mod steps;
mod timeline;
mod upgrade;

use std::future::Future;

use anyhow::{Context as _, Result, bail, ensure};
use capasg_environment::{
    ApiServer, ChartRepository, Environment, Kubelets, Manager, ManagerOptions, Settings,
};

use self::{addons::AddOns, cluster::control_plane, stage::Stage, steps::Steps, upgrade::Upgrade};
use crate::stay;

/// What is shown.
#[derive(Clone, Copy)]
pub enum Story {
    /// The lifecycle of one pool.
    Pool,
    /// A safe upgrade.
    Upgrade,
    /// Helm add-ons.
    AddOns,
}

/// What has to run until the demo ends, or with `keep` until it is interrupted.
struct Session {
    /// The manager, and in [`Story::Upgrade`] the extension, which ends first.
    processes: Vec<Manager>,
    _around: Around,
}

/// What the processes work on.
enum Around {
    Pool { _kubelets: Kubelets },
    AddOns { _workload: Box<ApiServer>, _repository: ChartRepository },
}

/// Runs a demo; with `keep` without the deletion at its end, and the environment keeps running.
pub async fn run(story: Story, keep: bool) -> Result<()> {
    let mut stage = Stage::new();
    stage.section("A control plane on this machine");
    stage.print(
        "etcd, kube-apiserver and Cluster API are the upstream programs, started as processes. AWS is simulated. \
         clusterctl installs CAPASG from its release folder next to core Cluster API.",
    );
    let settings = Settings::from_env();
    ensure!(settings.release.is_some(), "there is no release: run `make release`");
    let environment = or_interrupted(Environment::start(settings)).await?;
    let session = or_interrupted(run_steps(&environment, &mut stage, story, keep)).await;
    let ended = match session {
        Ok(session) => end(&environment, &stage, session, keep).await,
        Err(error) => {
            match environment.dump("demo").await {
                Ok(folder) => {
                    stage.print(&format!("Objects, events and logs are in {}", folder.display()));
                }
                Err(error) => stage.print(&format!("Failed to save objects, events and logs: {error:#}")),
            }
            Err(error)
        }
    };
    environment.stop().await?;
    ended?;
    stage.section(&format!("Finished in {} s", stage.elapsed().as_secs()));
    Ok(())
}

async fn or_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("cannot wait for Ctrl-C")?;
            bail!("interrupted")
        }
    }
}

async fn run_steps(
    environment: &Environment,
    stage: &mut Stage,
    story: Story,
    keep: bool,
) -> Result<Session> {
    if let Story::AddOns = story {
        let addons = AddOns::start(environment, stage).await?;
        addons.show(stage, keep).await?;
        let AddOns { manager, workload, repository, .. } = addons;
        let around = Around::AddOns { _workload: Box::new(workload), _repository: repository };
        return Ok(Session { processes: vec![manager], _around: around });
    }
    environment.management().start_in_memory().await?;
    stage.show("clusterctl init --infrastructure docker,asg", environment.management().installed());
    let manager = environment
        .plan_manager(ManagerOptions { webhooks: true, ..ManagerOptions::default() })
        .await?
        .start_ready()
        .await?;
    stage.reached("the manager of CAPASG runs under its own service account");

    if let Story::Pool = story {
        return show_pool(environment, stage, manager, keep).await;
    }
    let upgrade = Upgrade::start(environment, stage).await?;
    let kubelets = upgrade.show(stage, keep).await?;
    Ok(Session { processes: vec![upgrade.extension, manager], _around: Around::Pool { _kubelets: kubelets } })
}

async fn show_pool(
    environment: &Environment,
    stage: &mut Stage,
    manager: Manager,
    keep: bool,
) -> Result<Session> {
    let steps = Steps::new(environment).await?;
    steps.apply(stage).await?;
    let (cluster, kubelets) = control_plane(environment, stage).await?;
    steps.running(stage, &cluster).await?;
    steps.scale_out(stage, &cluster).await?;
    steps.scale_in(stage, &cluster).await?;
    steps.replace(stage, &cluster).await?;
    steps.rotate(stage, &cluster).await?;
    steps.roll(stage, &cluster).await?;
    if keep {
        stage.section("The environment keeps running");
    } else {
        steps.delete(stage).await?;
    }
    Ok(Session { processes: vec![manager], _around: Around::Pool { _kubelets: kubelets } })
}

async fn end(environment: &Environment, stage: &Stage, session: Session, keep: bool) -> Result<()> {
    if keep {
        stay::until_interrupted(environment).await?;
    }
    for process in session.processes {
        let status = process.stop().await?;
        ensure!(status.success(), "a process of CAPASG stopped with {status}");
    }
    stage.reached("CAPASG stopped gracefully");
    Ok(())
}
