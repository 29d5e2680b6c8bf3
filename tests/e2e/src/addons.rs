//! The Helm add-on provider of a test, and a chart repository.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{
    Chart, ChartRepository, ChartVersion, Look, Management, Manager, ManagerOptions, dynamic,
};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use serde_json::Value;

use crate::{Rig, dynamic_list, eventually};

/// A `ConfigMap` with the version of the chart, and the values.
pub const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  chart: {{ \
                        .Chart.Version | quote }}\n  values: {{ .Values | toJson | quote }}\n";

/// The chart `demo`, which shows what it was installed with.
pub const DEMO: Chart<'static> = Chart { name: "demo", files: &[("templates/map.yaml", MAP)] };

/// The `HelmChartProxies` or `HelmReleaseProxies` of a namespace.
#[must_use]
pub fn add_ons(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    dynamic(client, namespace, "addons.cluster.x-k8s.io", "v1alpha1", kind)
}

/// A chart repository of a test, and its releases.
pub struct Charts {
    /// What serves it.
    pub repository: ChartRepository,
    /// The kubeconfig of the workload cluster.
    kubeconfig: PathBuf,
}

impl Rig<'_> {
    /// The folder of a chart repository of this name, for this test alone.
    #[must_use]
    pub fn charts_folder(&self, name: &str) -> PathBuf {
        self.scenario.environment.run().path().join(format!("{name}-{}", self.scenario.namespace))
    }
}

impl Charts {
    /// Serves versions of the chart `demo`, without TLS, and reads releases of the test's workload cluster.
    ///
    /// # Errors
    /// When Helm cannot be built or fails.
    pub async fn serve(rig: &Rig<'_>, versions: &[&str]) -> Result<Self> {
        let charts = Self::empty(rig, rig.cluster()?.kubeconfig()).await?;
        let versions: Vec<ChartVersion<'_>> = versions.iter().map(|version| (DEMO, *version)).collect();
        charts.repository.add(&versions).await?;
        Ok(charts)
    }

    /// Serves no chart yet, and reads releases of the workload cluster of a kubeconfig.
    ///
    /// # Errors
    /// When Helm cannot be built or fails.
    pub async fn empty(rig: &Rig<'_>, kubeconfig: &Path) -> Result<Self> {
        let repository = ChartRepository::serve(rig.charts_folder("charts")).await?;
        Ok(Self { repository, kubeconfig: kubeconfig.to_owned() })
    }

    /// What a command of Helm prints about the workload cluster, such as `list --all` or `history <release>`.
    ///
    /// # Errors
    /// When Helm fails.
    pub async fn helm(&self, namespace: &str, args: &[&str]) -> Result<Vec<Value>> {
        let args = [args, &["--output=json", "--namespace", namespace]].concat();
        let printed = self.repository.helm_for(&self.kubeconfig).run(args).await?;
        Ok(serde_json::from_str(&printed)?)
    }
}

/// The add-on provider for the test's namespace on one management cluster.
pub struct Addons {
    client: Client,
    namespace: String,
    manager: Manager,
}

impl Addons {
    /// Starts it as its Deployment says and under its service account, with repositories without TLS allowed. Others may lead
    /// at the same time, in their namespaces.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start(rig: &Rig<'_>, management: &Management) -> Result<Self> {
        Self::start_as(rig, management, false).await
    }

    /// The same as the holder of its Lease, which one at a time can be.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start_elected(rig: &Rig<'_>, management: &Management) -> Result<Self> {
        Self::start_as(rig, management, true).await
    }

    async fn start_as(rig: &Rig<'_>, management: &Management, leader_elect: bool) -> Result<Self> {
        let namespace = rig.scenario.namespace.clone();
        let options = ManagerOptions {
            name: format!("addons-{namespace}"),
            leader_elect,
            // A machine that stands still for seconds must not cost the Lease: whoever loses it exits.
            args: vec![
                format!("--namespace={namespace}"),
                "--allow-http-repositories=true".to_owned(),
                "--leader-elect-lease-duration=75s".to_owned(),
                "--leader-elect-renew-deadline=60s".to_owned(),
            ],
            ..ManagerOptions::default()
        };
        let plan = rig.scenario.environment.plan_addons(management, options).await?;
        let manager = plan.start_ready().await?;
        Ok(Self { client: management.api().client().await?, namespace, manager })
    }

    /// The `HelmChartProxies` or `HelmReleaseProxies` of the namespace.
    #[must_use]
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        add_ons(&self.client, &self.namespace, kind)
    }

    /// Waits until there is exactly one `HelmReleaseProxy`, and it fulfills the condition.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn release(&self, what: &str, is: impl Fn(&DynamicObject) -> bool) -> Result<DynamicObject> {
        eventually(what, async || {
            self.manager.process().ensure_running()?;
            let mut all = self.api("HelmReleaseProxy").list(&ListParams::default()).await?.items;
            let shown = serde_json::to_string(&all)?;
            let one = if all.len() == 1 { all.pop().filter(&is) } else { None };
            Ok(one.map_or(Look::Not(shown), Look::Done))
        })
        .await
    }

    /// The `HelmReleaseProxy` of a `HelmChartProxy` for a Cluster.
    ///
    /// # Errors
    /// When it does not exist.
    pub async fn release_of(&self, proxy: &str, cluster: &str) -> Result<DynamicObject> {
        let selector = format!(
            "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name={proxy},\
             cluster.x-k8s.io/cluster-name={cluster}"
        );
        let found = dynamic_list(&self.api("HelmReleaseProxy"), &selector).await?;
        found.into_iter().next().with_context(|| format!("{proxy} has no HelmReleaseProxy for {cluster}"))
    }

    /// Its log.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn log(&self) -> Result<String> {
        self.manager.log()
    }

    /// Its metrics.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn metrics(&self) -> Result<String> {
        self.manager.metrics().await
    }

    /// Ends it as Kubernetes does.
    ///
    /// # Errors
    /// When it ends with a failure.
    pub async fn stop(self) -> Result<()> {
        self.manager.process().ensure_running().context("it ended before")?;
        let status = self.manager.stop().await?;
        ensure!(status.success(), "the add-on provider ended with {status}");
        Ok(())
    }
}
