//! The calls of Helm for one release, in a private folder of their own.

use std::{
    ffi::OsString,
    fs,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use super::{
    archive::Archive,
    arguments::{self, Labels, ReleaseKey},
    environment,
    error::HelmError,
    failure::{Failure, FailureClass},
    files::{
        AUTHORITY, CHART, DOWNLOADS, FOLDERS, KUBECONFIG, REGISTRY_CONFIGURATION, REPOSITORY_CONFIGURATION,
        VALUES,
    },
    names::{ChartName, Version},
    private_folder::PrivateFolder,
    program::Helm,
    release::{ChartMetadata, Release, Revision, parse_history, parse_manifest, parse_values},
    repository::Repository,
    source::{ChartSource, Source},
    time_limit::TimeLimit,
};
use crate::{
    decide::release::{is_exact, is_same_version},
    kinds::HelmOptions,
    kubeconfig::Kubeconfig,
    process::{Command, Output},
};

/// After which time a download or a read is stopped.
const READ_LIMIT: Duration = Duration::from_mins(2);
/// How long Helm has to record a stopped operation in the release.
const GRACE: Duration = Duration::from_secs(30);

/// The call that reads the metadata of a chart.
const SHOW: &str = "helm show chart";

/// A release in a workload cluster, and how Helm works on it.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    /// The cluster.
    pub kubeconfig: &'a Kubeconfig,
    /// The release.
    pub key: &'a ReleaseKey,
    /// The options.
    pub options: &'a HelmOptions,
}

/// The calls of one operation. Dropping it deletes its folder.
#[derive(Debug)]
pub struct Operation<'a> {
    helm: &'a Helm,
    folder: PrivateFolder,
}

impl<'a> Operation<'a> {
    /// Begins an operation.
    ///
    /// # Errors
    /// If its folder cannot be created.
    pub fn begin(helm: &'a Helm) -> Result<Self, HelmError> {
        let folder = PrivateFolder::create(&helm.root, &FOLDERS).map_err(HelmError::Folder)?;
        Ok(Self { helm, folder })
    }

    /// Prepares the chart. The installation or upgrade that follows uses it.
    ///
    /// # Errors
    /// If the chart is not where the source says.
    pub async fn fetch(&self, source: &ChartSource) -> Result<ChartMetadata, HelmError> {
        match source {
            ChartSource::Repository(source) => self.download(source).await,
            ChartSource::Archive { chart, archive } => self.unpack(chart, archive).await,
        }
    }

    /// Downloads the chart, unless this version of it was downloaded a moment ago.
    async fn download(&self, source: &Source) -> Result<ChartMetadata, HelmError> {
        if let Some(known) = self.helm.downloads.find(source, Instant::now()) {
            self.write(CHART, &known.archive)?;
            return Ok(known.metadata.clone());
        }
        let metadata = self.pull(source).await?;
        self.helm.downloads.keep(source, &self.folder.path(CHART), &metadata, Instant::now());
        Ok(metadata)
    }

    /// Prepares the chart of an archive.
    ///
    /// # Errors
    /// If the archive is no packaged chart, or has another chart.
    pub async fn unpack(&self, chart: &ChartName, archive: &Archive) -> Result<ChartMetadata, HelmError> {
        self.write(CHART, &archive.0)?;
        let metadata = self.show().await.map_err(|error| match error {
            HelmError::Failed { call, .. } => {
                let failure = Failure { class: FailureClass::ArchiveInvalid, detail: None };
                HelmError::Failed { call, failure }
            }
            other => other,
        })?;
        let is_expected = metadata.name == chart.as_str();
        if is_expected { Ok(metadata) } else { Err(HelmError::OtherChart { call: SHOW }) }
    }

    /// Downloads the chart.
    ///
    /// # Errors
    /// If the repository does not respond, rejects the credentials, or has no such chart.
    pub async fn pull(&self, source: &Source) -> Result<ChartMetadata, HelmError> {
        const CALL: &str = "helm pull";
        let access = &source.access;
        self.write_json(REGISTRY_CONFIGURATION, &access.registry_configuration(&source.repository))?;
        self.write_json(REPOSITORY_CONFIGURATION, &access.repository_configuration(&source.repository))?;
        if let Some(authority) = &access.verification.authority {
            self.write(AUTHORITY, authority.as_bytes())?;
        }
        if let Repository::Index { .. } = source.repository {
            self.call("helm repo update", arguments::update_index(), READ_LIMIT).await?;
        }
        let version = source.version.as_ref();
        let pull = arguments::pull(&source.repository, &source.chart, version, &access.verification);
        self.call(CALL, pull, READ_LIMIT).await?;
        let archive = self.folder.only_file(DOWNLOADS).map_err(|_| HelmError::Unreadable { call: CALL })?;
        fs::rename(archive, self.folder.path(CHART))
            .map_err(|source| HelmError::Write { file: CHART, source })?;
        let metadata = self.show().await?;
        // A registry may have a chart under any name and any tag. Installed, it would differ from what is requested for ever.
        if metadata.name != source.chart.as_str() {
            return Err(HelmError::OtherChart { call: CALL });
        }
        let exact = version.map(Version::as_str).filter(|version| is_exact(version));
        match exact.filter(|exact| !is_same_version(exact, &metadata.version)) {
            Some(requested) => Err(HelmError::OtherVersion {
                call: CALL,
                found: metadata.version,
                requested: requested.to_owned(),
            }),
            None => Ok(metadata),
        }
    }

    /// The metadata of the prepared chart.
    async fn show(&self) -> Result<ChartMetadata, HelmError> {
        let shown = self.call(SHOW, arguments::show(), READ_LIMIT).await?;
        let text = std::str::from_utf8(&shown.output).map_err(|_| HelmError::Unreadable { call: SHOW })?;
        serde_saphyr::from_str(text).map_err(|_| HelmError::Unreadable { call: SHOW })
    }

    /// Installs the prepared chart. `replaces` is set if the history of an uninstalled release remains.
    ///
    /// # Errors
    /// If Helm fails. The release may exist then, in the state failed.
    pub async fn install(
        &self,
        target: &Target<'_>,
        values: &Map<String, Value>,
        labels: &Labels,
        replaces: bool,
    ) -> Result<Release, HelmError> {
        let limit = TimeLimit::parse(target.options.timeout())?;
        let install = arguments::install(target.key, target.options, limit, labels, replaces);
        self.apply("helm install", install, target, values, limit).await
    }

    /// Upgrades the release to the prepared chart.
    ///
    /// # Errors
    /// If Helm fails. The newest revision may be in the state failed then.
    pub async fn upgrade(
        &self,
        target: &Target<'_>,
        values: &Map<String, Value>,
        labels: &Labels,
    ) -> Result<Release, HelmError> {
        let limit = TimeLimit::parse(target.options.timeout())?;
        let upgrade = arguments::upgrade(target.key, target.options, limit, labels);
        self.apply("helm upgrade", upgrade, target, values, limit).await
    }

    /// Uninstalls the release. One that does not exist is a success.
    ///
    /// # Errors
    /// If Helm fails. The release may be in the state uninstalling then; the next call continues.
    pub async fn uninstall(&self, target: &Target<'_>) -> Result<(), HelmError> {
        let limit = TimeLimit::parse(target.options.timeout())?;
        self.write(KUBECONFIG, target.kubeconfig.text().as_bytes())?;
        let uninstall = arguments::uninstall(target.key, target.options, limit);
        self.call("helm uninstall", uninstall, limit.until_stopped(false)).await.map(drop)
    }

    /// The current revision of the release, if it exists.
    ///
    /// # Errors
    /// If the cluster does not respond.
    pub async fn status(&self, target: &Target<'_>) -> Result<Option<Release>, HelmError> {
        const CALL: &str = "helm status";
        let Some(output) = self.read(CALL, arguments::status(target.key), target).await? else {
            return Ok(None);
        };
        Release::parse(&output.output).map(Some).map_err(|_| HelmError::Unreadable { call: CALL })
    }

    /// The last revisions of the release, the newest last; none if it does not exist.
    ///
    /// # Errors
    /// If the cluster does not respond.
    pub async fn history(&self, target: &Target<'_>, revisions: u32) -> Result<Vec<Revision>, HelmError> {
        const CALL: &str = "helm history";
        let history = arguments::history(target.key, revisions);
        let Some(output) = self.read(CALL, history, target).await? else { return Ok(Vec::new()) };
        parse_history(&output.output).map_err(|_| HelmError::Unreadable { call: CALL })
    }

    /// The values that users supplied for the current revision, if the release exists.
    ///
    /// # Errors
    /// If the cluster does not respond.
    pub async fn values(&self, target: &Target<'_>) -> Result<Option<Map<String, Value>>, HelmError> {
        const CALL: &str = "helm get values";
        let Some(output) = self.read(CALL, arguments::values(target.key), target).await? else {
            return Ok(None);
        };
        parse_values(&output.output).map(Some).map_err(|_| HelmError::Unreadable { call: CALL })
    }

    /// The resources of the current revision as YAML, if the release exists.
    ///
    /// # Errors
    /// If the cluster does not respond.
    pub async fn manifest(&self, target: &Target<'_>) -> Result<Option<String>, HelmError> {
        const CALL: &str = "helm get manifest";
        let Some(output) = self.read(CALL, arguments::manifest(target.key), target).await? else {
            return Ok(None);
        };
        String::from_utf8(output.output).map(Some).map_err(|_| HelmError::Unreadable { call: CALL })
    }

    /// The resources that the prepared chart has after an installation, or after an upgrade, as YAML. Nothing is changed.
    ///
    /// # Errors
    /// If Helm fails.
    pub async fn dry_run(
        &self,
        target: &Target<'_>,
        values: &Map<String, Value>,
        is_upgrade: bool,
    ) -> Result<String, HelmError> {
        let (limit, labels) = (TimeLimit::parse(target.options.timeout())?, Labels::new());
        let (call, arguments) = if is_upgrade {
            ("helm upgrade --dry-run", arguments::upgrade(target.key, target.options, limit, &labels))
        } else {
            ("helm install --dry-run", arguments::install(target.key, target.options, limit, &labels, false))
        };
        let output = self.run(call, arguments::dry_run(arguments), target, values, READ_LIMIT).await?;
        parse_manifest(&output.output).map_err(|_| HelmError::Unreadable { call })
    }

    async fn apply(
        &self,
        call: &'static str,
        arguments: Vec<String>,
        target: &Target<'_>,
        values: &Map<String, Value>,
        limit: TimeLimit,
    ) -> Result<Release, HelmError> {
        let limit = limit.until_stopped(target.options.atomic == Some(true));
        let output = self.run(call, arguments, target, values, limit).await?;
        Release::parse(&output.output).map_err(|_| HelmError::Unreadable { call })
    }

    async fn run(
        &self,
        call: &'static str,
        arguments: Vec<String>,
        target: &Target<'_>,
        values: &Map<String, Value>,
        limit: Duration,
    ) -> Result<Output, HelmError> {
        self.write(KUBECONFIG, target.kubeconfig.text().as_bytes())?;
        self.write_json(VALUES, &Value::Object(values.clone()))?;
        self.call(call, arguments, limit).await
    }

    /// A read of a release: none if the release does not exist.
    async fn read(
        &self,
        call: &'static str,
        arguments: Vec<String>,
        target: &Target<'_>,
    ) -> Result<Option<Output>, HelmError> {
        self.write(KUBECONFIG, target.kubeconfig.text().as_bytes())?;
        match self.call(call, arguments, READ_LIMIT).await {
            Ok(output) => Ok(Some(output)),
            Err(error) if error.failure().is_some_and(|it| it.class == FailureClass::ReleaseNotFound) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn call(
        &self,
        call: &'static str,
        arguments: Vec<String>,
        limit: Duration,
    ) -> Result<Output, HelmError> {
        let variables = environment::variables(self.folder.folder());
        let command = Command {
            program: self.helm.program.clone(),
            arguments: arguments.into_iter().map(OsString::from).collect(),
            environment: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            folder: self.folder.folder().to_owned(),
            input: None,
            limit,
            grace: GRACE,
        };
        let run = self.helm.starts.run(command.run(&self.helm.launcher)).await;
        let output = run.map_err(|source| HelmError::Run { call, source })?;
        if output.is_success {
            return Ok(output);
        }
        // A download of an index reports its error on the standard output.
        let printed = format!("{}\n{}", output.errors, String::from_utf8_lossy(&output.output));
        Err(HelmError::Failed { call, failure: Failure::of(&printed) })
    }

    fn write_json(&self, file: &'static str, value: &Value) -> Result<(), HelmError> {
        self.write(file, value.to_string().as_bytes())
    }

    /// Replaces a file: each call of an operation may have its own content.
    fn write(&self, file: &'static str, content: &[u8]) -> Result<(), HelmError> {
        self.folder.replace(file, content).map_err(|source| HelmError::Write { file, source })
    }
}
