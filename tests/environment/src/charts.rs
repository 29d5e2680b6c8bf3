//! A chart repository on this machine: charts that Helm packages, in a folder that is served with or without TLS.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use axum::{
    Router,
    extract::{Path as Segment, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    routing::get,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, spawn_blocking},
};

use crate::{
    command::Runner,
    https::{HttpsServer, serve_https},
    say,
    tools::add_on_programs,
};

/// The path that repositories are served at.
const PATH: &str = "/charts";

/// A chart without its version.
#[derive(Debug, Clone, Copy)]
pub struct Chart<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its files and their contents, besides `Chart.yaml`.
    pub files: &'a [(&'a str, &'a str)],
}

/// A version of a chart.
pub type ChartVersion<'a> = (Chart<'a>, &'a str);

/// Packages charts into the folder of a repository with this Helm, and writes its index again.
///
/// # Errors
/// When the folder cannot be written, or Helm fails.
pub async fn package_charts(helm: &Path, folder: &Path, charts: &[ChartVersion<'_>]) -> Result<()> {
    let (helm, target) = (self::helm(helm, folder), folder.display().to_string());
    for (chart, version) in charts {
        let source = folder.join(chart.name);
        let metadata = format!("apiVersion: v2\nname: {}\nversion: {version}\nappVersion: '7'\n", chart.name);
        for (path, text) in [("Chart.yaml", metadata.as_str())].iter().chain(chart.files) {
            let path = source.join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text)?;
        }
        helm.run(["package", &source.display().to_string(), "--destination", &target]).await?;
    }
    helm.run(["repo", "index", &target]).await.map(drop)
}

/// The user and the password that a repository requires.
pub type Login<'a> = (&'a str, &'a str);

/// The value of the header that a client with this login sends.
#[must_use]
pub fn basic_authorization((user, password): Login<'_>) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

struct Served {
    folder: PathBuf,
    authorization: Option<String>,
}

/// The routes of a repository whose files are in a folder.
pub fn repository_routes(folder: &Path, login: Option<Login<'_>>) -> Router {
    let served = Served { folder: folder.to_owned(), authorization: login.map(basic_authorization) };
    Router::new().route(&format!("{PATH}/{{file}}"), get(file)).with_state(Arc::new(served))
}

async fn file(
    State(served): State<Arc<Served>>,
    Segment(file): Segment<String>,
    headers: HeaderMap,
) -> Result<Vec<u8>, StatusCode> {
    let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if served.authorization.is_some() && sent != served.authorization.as_deref() {
        return Err(StatusCode::UNAUTHORIZED);
    }
    fs::read(served.folder.join(file)).map_err(|_| StatusCode::NOT_FOUND)
}

/// A repository that is served until it is dropped.
pub struct ChartRepository {
    /// Its URL.
    pub url: String,
    /// The certificate of the authority of its server, PEM; empty without TLS.
    pub authority: String,
    /// The program of Helm.
    pub helm: PathBuf,
    folder: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for ChartRepository {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ChartRepository {
    /// An empty repository without TLS, in a folder of its own. The first time, Helm is built.
    ///
    /// # Errors
    /// When Helm cannot be built, or no port is free.
    pub async fn serve(folder: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let routes = repository_routes(&folder, None);
        let task = tokio::spawn(async move {
            // It fails only once no connection can be accepted any more.
            let _ = axum::serve(listener, routes).await;
        });
        Self::of(&url, String::new(), folder, task).await
    }

    /// The same over TLS, for a user with a password.
    ///
    /// # Errors
    /// When Helm cannot be built, or no port is free.
    pub async fn serve_to(folder: PathBuf, login: Login<'_>) -> Result<Self> {
        let HttpsServer { url, authority, task } =
            serve_https(repository_routes(&folder, Some(login))).await?;
        Self::of(&url, authority, folder, task).await
    }

    async fn of(server: &str, authority: String, folder: PathBuf, task: JoinHandle<()>) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        let helm = spawn_blocking(|| add_on_programs(&say)).await??.join("helm");
        Ok(Self { url: format!("{server}{PATH}"), authority, helm, folder, task })
    }

    /// Adds charts.
    ///
    /// # Errors
    /// When Helm fails.
    pub async fn add(&self, charts: &[ChartVersion<'_>]) -> Result<()> {
        package_charts(&self.helm, &self.folder, charts).await
    }

    /// Adds charts that are in folders of their own.
    ///
    /// # Errors
    /// When Helm fails.
    pub async fn add_folders(&self, charts: &[PathBuf]) -> Result<()> {
        let (helm, target) = (helm(&self.helm, &self.folder), self.folder.display().to_string());
        for chart in charts {
            helm.run(["package", &chart.display().to_string(), "--destination", &target]).await?;
        }
        helm.run(["repo", "index", &target]).await.map(drop)
    }

    /// Helm for the cluster of a kubeconfig.
    #[must_use]
    pub fn helm_for(&self, kubeconfig: &Path) -> Runner {
        helm(&self.helm, &self.folder).env("KUBECONFIG", kubeconfig)
    }
}

/// Helm with folders of its own in `folder`.
fn helm(program: &Path, folder: &Path) -> Runner {
    let home = folder.join("helm");
    let folders = ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"];
    folders.iter().fold(Runner::new(program), |runner, name| runner.env(name, &home))
}
