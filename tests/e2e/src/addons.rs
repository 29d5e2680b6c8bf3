//! The Helm add-on provider of a test, and a chart repository.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use axum::{
    Router,
    extract::{Path as Segment, State},
    http::StatusCode,
    routing::get,
};
use capasg_environment::{Look, Management, Manager, ManagerOptions, add_on_programs, dynamic};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use serde_json::Value;
use tokio::{net::TcpListener, process::Command, task::spawn_blocking};
use tokio_util::task::AbortOnDropHandle;

use crate::{Rig, eventually};

/// A `ConfigMap` with a value.
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  chart: {{ \
                        .Chart.Version | quote }}\n  values: {{ .Values | toJson | quote }}\n";

/// A chart repository without TLS, with versions of the chart `demo`.
pub struct Charts {
    /// Its URL.
    pub url: String,
    /// Helm, for looking at releases.
    pub helm: PathBuf,
    _server: AbortOnDropHandle<()>,
}

impl Charts {
    /// Packages versions of the chart with Helm, and serves them.
    ///
    /// # Errors
    /// When Helm cannot be built or fails.
    pub async fn serve(rig: &Rig<'_>, versions: &[&str]) -> Result<Self> {
        let helm = spawn_blocking(|| add_on_programs(&|line| eprintln!("{line}"))).await??.join("helm");
        let folder = rig.scenario.environment.run().path().join(format!("charts-{}", rig.scenario.namespace));
        fs::create_dir_all(folder.join("demo/templates"))?;
        fs::write(folder.join("demo/templates/map.yaml"), TEMPLATE)?;
        for version in versions {
            let metadata = format!("apiVersion: v2\nname: demo\nversion: {version}\n");
            fs::write(folder.join("demo/Chart.yaml"), metadata)?;
            run(&helm, &folder, &["package", "demo"]).await?;
        }
        run(&helm, &folder, &["repo", "index", "."]).await?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/charts", listener.local_addr()?);
        let routes = Router::new().route("/charts/{file}", get(file)).with_state(Arc::from(folder));
        let server = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { url, helm, _server: AbortOnDropHandle::new(server) })
    }

    /// The releases in a namespace of the test's workload cluster, as `helm list --all` shows them.
    ///
    /// # Errors
    /// When Helm fails.
    pub async fn releases(&self, rig: &Rig<'_>, namespace: &str) -> Result<Vec<Value>> {
        let kubeconfig = rig.cluster()?.kubeconfig().display().to_string();
        let list = ["list", "--all", "--output=json", "--namespace", namespace, "--kubeconfig", &kubeconfig];
        let output = run(&self.helm, Path::new("/"), &list).await?;
        Ok(serde_json::from_str(&output)?)
    }
}

async fn file(
    State(folder): State<Arc<Path>>,
    Segment(file): Segment<String>,
) -> Result<Vec<u8>, StatusCode> {
    fs::read(folder.join(file)).map_err(|_| StatusCode::NOT_FOUND)
}

async fn run(helm: &Path, folder: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(helm).args(arguments).current_dir(folder).env_clear().output().await?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The add-on provider for the test's namespace on one management cluster.
pub struct Addons {
    client: Client,
    namespace: String,
    manager: Manager,
}

impl Addons {
    /// Starts it as its Deployment says, under its service account and as the holder of its Lease, with repositories without
    /// TLS allowed.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start(rig: &Rig<'_>, management: &Management) -> Result<Self> {
        let namespace = rig.scenario.namespace.clone();
        let options = ManagerOptions {
            name: format!("addons-{namespace}"),
            leader_elect: true,
            args: vec![format!("--namespace={namespace}"), "--allow-http-repositories=true".to_owned()],
            ..ManagerOptions::default()
        };
        let plan = rig.scenario.environment.plan_addons(management, options).await?;
        let manager = plan.start_ready().await?;
        Ok(Self { client: management.api().client().await?, namespace, manager })
    }

    /// The `HelmChartProxies` or `HelmReleaseProxies` of the namespace.
    #[must_use]
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        dynamic(&self.client, &self.namespace, "addons.cluster.x-k8s.io", "v1alpha1", kind)
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
