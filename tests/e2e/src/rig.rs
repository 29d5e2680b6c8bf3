//! A test's own cluster, kubelets and manager; the other modules ask things of them.

use std::{io::Write as _, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{
    ApiServer, Environment, Join, Kubelets, Manager, ManagerOptions, ManagerPlan, Scenario, WorkloadCluster,
    scenario,
};
use tokio::{
    process::Command,
    sync::{Mutex, OnceCell},
};

use crate::setup::{CLUSTER, Control, Setup, marker};

/// A test's share of the environment, with a cluster, kubelets and a manager for it alone.
pub struct Rig<'a> {
    /// Namespace, region and clients.
    pub scenario: &'a Scenario,
    pub(crate) cluster: Option<WorkloadCluster>,
    kubelets: Option<Kubelets>,
    pub(crate) plan: ManagerPlan,
    pub(crate) manager: Mutex<Option<Manager>>,
}

/// Runs one rule's test in a rig of its own.
///
/// # Errors
/// Those of the environment and of the test.
pub async fn rule(name: &str, setup: Setup, test: impl AsyncFnOnce(&Rig<'_>) -> Result<()>) -> Result<()> {
    scenario(name, async |scenario| {
        let begun = std::time::Instant::now();
        let rig = Rig::new(scenario, &setup).await?;
        let set_up = begun.elapsed();
        let outcome = test(&rig).await;
        let verdict = if outcome.is_ok() { "holds" } else { "FAILS" };
        // Straight to the terminal: the runner shows what passing tests print only at the end, if at all.
        writeln!(
            std::io::stderr(),
            "{name}: {verdict} ({:.0?}, {set_up:.0?} of it set-up)",
            begun.elapsed()
        )?;
        outcome?;
        rig.keeps_bootstrap_data_secret().await?;
        rig.nothing_was_denied()?;
        if let Some(manager) = rig.manager.lock().await.take() {
            manager.process().ensure_running()?;
            let status = manager.stop().await?;
            ensure!(status.success(), "the manager did not end gracefully: {status}");
        }
        Ok(())
    })
    .await
}

/// The API server behind all stub control planes.
///
/// # Errors
/// When it does not start.
pub async fn shared_workload_api(environment: &Arc<Environment>) -> Result<&'static ApiServer> {
    static SHARED: OnceCell<ApiServer> = OnceCell::const_new();
    SHARED.get_or_try_init(|| environment.workload_api()).await
}

impl<'a> Rig<'a> {
    async fn new(scenario: &'a Scenario, setup: &Setup) -> Result<Self> {
        let cluster = match setup.control {
            Control::Stub => {
                let api = shared_workload_api(&scenario.environment).await?;
                Some(scenario.stub_cluster(CLUSTER, api).await?)
            }
            Control::InMemory => Some(scenario.in_memory_cluster(CLUSTER).await?),
            Control::None => None,
        };
        let kubelets = match &cluster {
            Some(cluster) if cluster.is_real() => {
                Some(scenario.kubelets(cluster, Join::Marker(marker(scenario))).await?)
            }
            Some(cluster) => Some(scenario.kubelets(cluster, Join::BootstrapToken).await?),
            None => None,
        };
        let options = ManagerOptions { args: setup.args.clone(), ..ManagerOptions::default() };
        let plan = scenario.plan_manager(options).await?;
        let rig = Self { scenario, cluster, kubelets, plan, manager: Mutex::default() };
        if setup.manager {
            rig.start_manager().await?;
        }
        Ok(rig)
    }

    /// The workload cluster.
    ///
    /// # Errors
    /// When the test has none.
    pub fn cluster(&self) -> Result<&WorkloadCluster> {
        self.cluster.as_ref().context("this test has no cluster")
    }

    /// What `capasg why` prints in the namespace of this test, as a user calls it.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn why(&self, args: &[&str]) -> Result<String> {
        let environment = &self.scenario.environment;
        let program = environment.settings().manager.clone().context("no program")?;
        let output = Command::new(program)
            .arg("why")
            .args(args)
            .args(["--namespace", &self.scenario.namespace, "--kubeconfig"])
            .arg(environment.management().api().kubeconfig())
            .envs(environment.cloud().env())
            // The credentials of the user, not those of the manager.
            .env("AWS_ACCESS_KEY_ID", "user")
            .output()
            .await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Kubelets on the machines of another region, until they are dropped.
    ///
    /// # Errors
    /// When the test has no cluster, or it cannot be reached.
    pub async fn kubelets_in(&self, region: &str) -> Result<Kubelets> {
        self.scenario.kubelets_in(region, self.cluster()?, Join::Marker(marker(self.scenario))).await
    }

    /// The kubelets.
    ///
    /// # Errors
    /// When the test has no cluster.
    pub fn kubelets(&self) -> Result<&Kubelets> {
        self.kubelets.as_ref().context("this test has no kubelets")
    }
}
