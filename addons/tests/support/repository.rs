//! A chart repository over TLS with a password, and its charts, which a registry serves as well.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use capasg_addons::helm::{
    Access, ChartName, PlainHttp, Repository as Location, RepositoryCredentials, Source, Verification,
};
use capasg_environment::{Chart, HttpsServer, Login, package_charts, repository_routes, serve_https};
use k8s_openapi::ByteString;
use tempfile::TempDir;

use super::{Outcome, registry};

/// What the repository requires.
pub const LOGIN: Login<'static> = ("robot", "s3cret");
/// A `ConfigMap` with a value.
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  version: \
                        {{ .Chart.Version | quote }}\n  password: {{ .Values.password | default \"\" | quote }}\n";
const DEMO: Chart<'static> = Chart { name: "demo", files: &[("templates/a.yaml", TEMPLATE)] };

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
        let versions = ["1.0.0", "1.1.0", "2.0.0-rc.1"].map(|version| (DEMO, version));
        package_charts(helm, charts.path(), &versions).await?;
        let routes = repository_routes(charts.path(), Some(LOGIN)).merge(registry::routes(charts.path()));
        let HttpsServer { url, authority, .. } = serve_https(routes).await?;
        Ok(Self { url: format!("{url}/charts"), authority, charts, helm: helm.to_owned() })
    }

    /// Adds a version of the chart.
    pub async fn add(&self, version: &str) -> Outcome {
        Ok(package_charts(&self.helm, self.charts.path(), &[(DEMO, version)]).await?)
    }

    /// Adds an archive under the name and the version of another chart, as a registry accepts it.
    pub fn add_as(&self, chart: &str, version: &str) -> Outcome {
        let archive = self.archive("1.0.0")?;
        Ok(fs::write(self.charts.path().join(format!("{chart}-{version}.tgz")), archive)?)
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
