//! A chart repository over TLS with a password, and its charts, which a registry serves as well.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Router,
    extract::{Path as Segment, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    routing::get,
};
use capasg_addons::helm::{
    Access, ChartName, PlainHttp, Repository as Location, RepositoryCredentials, Source, Verification,
};
use k8s_openapi::ByteString;
use tempfile::TempDir;

use super::{
    Outcome, registry,
    tls::{Server, serve},
};

/// `robot:s3cret`.
pub const AUTHORIZED: &str = "Basic cm9ib3Q6czNjcmV0";
/// A `ConfigMap` with a value.
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  version: \
                        {{ .Chart.Version | quote }}\n  password: {{ .Values.password | default \"\" | quote }}\n";

/// A repository with the chart `demo` in the versions 1.0.0, 1.1.0 and 2.0.0-rc.1.
pub struct Repository {
    pub url: String,
    pub authority: String,
    charts: TempDir,
    helm: PathBuf,
}

fn data(entries: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()))).collect()
}

impl Repository {
    /// Packages the charts and serves them.
    pub async fn serve(helm: &Path) -> Outcome<Self> {
        let charts = tempfile::tempdir()?;
        package(helm, charts.path(), &["1.0.0", "1.1.0", "2.0.0-rc.1"]).await?;
        let routes = Router::new().route("/charts/{file}", get(file)).with_state(Arc::from(charts.path()));
        let routes = routes.merge(registry::routes(charts.path()));
        let Server { url, authority } = serve(routes).await?;
        Ok(Self { url: format!("{url}/charts"), authority, charts, helm: helm.to_owned() })
    }

    /// Adds a version of the chart.
    pub async fn add(&self, version: &str) -> Outcome {
        package(&self.helm, self.charts.path(), &[version]).await
    }

    /// The archive of a version of the chart.
    pub fn archive(&self, version: &str) -> Outcome<Vec<u8>> {
        Ok(fs::read(self.charts.path().join(format!("demo-{version}.tgz")))?)
    }

    /// The same chart in a registry at the same address.
    pub fn in_registry(&self) -> Outcome<Source> {
        let repository = Location::parse(&self.url.replace("https://", "oci://"), PlainHttp::Rejected)?;
        Ok(Source { repository, ..self.source()? })
    }

    /// The chart, with everything that the repository requires.
    pub fn source(&self) -> Outcome<Source> {
        let repository = Location::parse(&self.url, PlainHttp::Rejected)?;
        let secret = data(&[("username", "robot"), ("password", "s3cret")]);
        let credentials = RepositoryCredentials::from_secret(&repository, &secret, "")?;
        let verification = Verification::default().with_authority(&data(&[("ca.crt", &self.authority)]))?;
        let access = Access { credentials: Some(credentials), verification };
        Ok(Source { repository, chart: ChartName::parse("demo")?, version: None, access })
    }
}

async fn package(helm: &Path, folder: &Path, versions: &[&str]) -> Outcome {
    let run = |arguments: &[&str]| {
        tokio::process::Command::new(helm).args(arguments).current_dir(folder).env_clear().output()
    };
    fs::create_dir_all(folder.join("demo/templates"))?;
    fs::write(folder.join("demo/templates/a.yaml"), TEMPLATE)?;
    for version in versions {
        let metadata = format!("apiVersion: v2\nname: demo\nversion: {version}\nappVersion: '7'\n");
        fs::write(folder.join("demo/Chart.yaml"), metadata)?;
        let packaged = run(&["package", "demo"]).await?;
        assert!(packaged.status.success(), "{}", String::from_utf8_lossy(&packaged.stderr));
    }
    assert!(run(&["repo", "index", "."]).await?.status.success());
    Ok(())
}

async fn file(
    State(folder): State<Arc<Path>>,
    Segment(file): Segment<String>,
    headers: HeaderMap,
) -> Result<Vec<u8>, StatusCode> {
    if headers.get(AUTHORIZATION).is_none_or(|value| value != AUTHORIZED) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    fs::read(folder.join(file)).map_err(|_| StatusCode::NOT_FOUND)
}
