//! Calls of the real Helm: downloads from a repository over TLS, and clusters that do not respond. What Helm receives is shown
//! with a script in its place.

mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use capasg_addons::{
    helm::{
        ChartName, ChartSource, FailureClass, Helm, HelmError, Labels, Namespace, Operation, PlainHttp,
        ReleaseKey, ReleaseName, Source, Target, Verification, Version,
    },
    kinds::HelmOptions,
    kubeconfig::Kubeconfig,
};
use serde_json::{Map, Value, json};
use support::{Outcome, launcher, launcher_of_scripts, programs, repository::Repository};
use tempfile::TempDir;

fn kubeconfig(server: &str) -> Outcome<Kubeconfig> {
    let text = json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {"token": "t0ken"}}],
    });
    Ok(Kubeconfig::parse(&text.to_string())?)
}

fn key() -> Outcome<ReleaseKey> {
    Ok(ReleaseKey { namespace: Namespace::parse("kube-system")?, name: ReleaseName::parse("cni")? })
}

fn values() -> Map<String, Value> {
    [("password".to_owned(), json!("v4lue"))].into_iter().collect()
}

/// The class of a failure of Helm.
fn class<T>(result: Result<T, HelmError>) -> Outcome<FailureClass> {
    let error = result.err().ok_or("a success")?;
    Ok(error.failure().ok_or_else(|| error.to_string())?.class)
}

struct Pulls {
    helm: Helm,
    root: TempDir,
    repository: Repository,
}

impl Pulls {
    async fn new() -> Outcome<Self> {
        let program = programs().await?.join("helm");
        let (root, repository) = (tempfile::tempdir()?, Repository::serve(&program).await?);
        let helm = Helm::new(program, root.path().to_owned(), launcher()?)?;
        Ok(Self { helm, root, repository })
    }

    async fn pull(&self, change: impl FnOnce(&mut Source) -> Outcome) -> Outcome<Result<String, HelmError>> {
        let mut source = self.repository.source()?;
        change(&mut source)?;
        let operation = Operation::begin(&self.helm)?;
        let pulled = operation.pull(&source).await;
        drop(operation);
        assert_eq!(fs::read_dir(self.root.path())?.count(), 0, "the private folder is deleted");
        Ok(pulled.map(|chart| chart.version))
    }
}

// Rules: X6
#[tokio::test]
async fn charts_are_pulled_over_tls_with_a_password() -> Outcome {
    let pulls = Pulls::new().await?;
    assert_eq!(pulls.pull(|_| Ok(())).await??, "1.1.0", "the newest one that is no prerelease");
    for (constraint, version) in [("1.0.0", "1.0.0"), ("~1.0", "1.0.0"), (">=2.0.0-0", "2.0.0-rc.1")] {
        let pulled = pulls.pull(|source| {
            source.version = Some(Version::parse(constraint)?);
            Ok(())
        });
        assert_eq!(pulled.await??, version, "{constraint}");
    }
    let unverified = pulls.pull(|source| {
        source.access.verification = Verification { authority: None, is_skipped: true };
        Ok(())
    });
    assert_eq!(unverified.await??, "1.1.0");
    Ok(())
}

// Rules: X6
#[tokio::test]
async fn a_version_that_was_downloaded_a_moment_ago_is_used_again() -> Outcome {
    let (program, root, folder) =
        (programs().await?.join("helm"), tempfile::tempdir()?, tempfile::tempdir()?);
    let repository = Repository::serve(&program).await?;
    let link = folder.path().join("helm");
    std::os::unix::fs::symlink(&program, &link)?;
    let helm = Helm::new(link.clone(), root.path().to_owned(), launcher()?)?;
    let version = |version: &str| -> Outcome<ChartSource> {
        let source = Source { version: Some(Version::parse(version)?), ..repository.source()? };
        Ok(ChartSource::Repository(source))
    };
    for requested in ["1.0.0", "~1.1"] {
        Operation::begin(&helm)?.fetch(&version(requested)?).await?;
    }
    fs::remove_file(link)?;
    let again = Operation::begin(&helm)?.fetch(&version("1.0.0")?).await?;
    assert_eq!((again.name.as_str(), again.version.as_str()), ("demo", "1.0.0"), "Helm is not called");
    for requested in ["1.1.0", "~1.1"] {
        let error = Operation::begin(&helm)?.fetch(&version(requested)?).await.err().ok_or(requested)?;
        assert!(matches!(error, HelmError::Run { .. }), "{error}");
    }
    Ok(())
}

// Rules: X6
#[tokio::test]
async fn charts_are_pulled_from_a_registry_over_tls_with_a_password() -> Outcome {
    let pulls = Pulls::new().await?;
    let pull = async |constraint: Option<&str>, change: fn(&mut Source)| {
        let mut source = pulls.repository.in_registry()?;
        source.version = constraint.map(Version::parse).transpose()?;
        change(&mut source);
        let pulled = pulls.pull(|used| {
            *used = source;
            Ok(())
        });
        pulled.await
    };
    let as_it_is: fn(&mut Source) = |_| {};
    assert_eq!(pull(None, as_it_is).await??, "1.1.0", "the newest one that is no prerelease");
    for (constraint, version) in [("1.0.0", "1.0.0"), ("~1.0", "1.0.0"), (">=2.0.0-0", "2.0.0-rc.1")] {
        assert_eq!(pull(Some(constraint), as_it_is).await??, version, "{constraint}");
    }
    let class_of = async |change: fn(&mut Source)| class(pull(Some("1.0.0"), change).await?);
    let unauthorized = class_of(|source| source.access.credentials = None).await?;
    assert_eq!(unauthorized, FailureClass::RepositoryRejectsCredentials);
    let untrusted = class_of(|source| source.access.verification = Verification::default()).await?;
    assert_eq!(untrusted, FailureClass::CertificateNotTrusted);
    assert_eq!(class(pull(Some("9.9.9"), as_it_is).await?)?, FailureClass::ChartNotFound);
    Ok(())
}

/// It would be uninstalled, or upgraded, again and again.
#[tokio::test]
async fn a_chart_with_another_name_or_version_is_rejected() -> Outcome {
    let pulls = Pulls::new().await?;
    pulls.repository.add_as("other", "1.0.0")?;
    pulls.repository.add_as("demo", "3.0.0")?;
    let pull = async |chart: &str, version: &str| -> Outcome<HelmError> {
        let mut source = pulls.repository.in_registry()?;
        (source.chart, source.version) = (ChartName::parse(chart)?, Some(Version::parse(version)?));
        let pulled = pulls.pull(|used| {
            *used = source;
            Ok(())
        });
        Ok(pulled.await?.err().ok_or("it is not rejected")?)
    };
    let error = pull("other", "1.0.0").await?;
    assert!(matches!(error, HelmError::OtherChart { .. }), "{error}");
    let error = pull("demo", "3.0.0").await?;
    let message = "helm pull: the version in the chart is 1.0.0, and not 3.0.0; correct the repository, or change version";
    assert_eq!(error.to_string(), message);
    Ok(())
}

// Rules: X6
#[tokio::test]
async fn failures_of_downloads_have_classes() -> Outcome {
    let pulls = Pulls::new().await?;
    let untrusted = pulls.pull(|source| {
        source.access.verification = Verification::default();
        Ok(())
    });
    assert_eq!(class(untrusted.await?)?, FailureClass::CertificateNotTrusted);
    let unauthorized = pulls.pull(|source| {
        source.access.credentials = None;
        Ok(())
    });
    assert_eq!(class(unauthorized.await?)?, FailureClass::RepositoryRejectsCredentials);
    let no_chart = pulls.pull(|source| {
        source.chart = ChartName::parse("nope")?;
        Ok(())
    });
    assert_eq!(class(no_chart.await?)?, FailureClass::ChartNotFound);
    let no_version = pulls.pull(|source| {
        source.version = Some(Version::parse("9.9.9")?);
        Ok(())
    });
    assert_eq!(class(no_version.await?)?, FailureClass::ChartNotFound);
    let no_repository = pulls.pull(|source| {
        let url = format!("{}/nope", pulls.repository.url);
        source.repository = capasg_addons::helm::Repository::parse(&url, PlainHttp::Rejected)?;
        Ok(())
    });
    assert_eq!(class(no_repository.await?)?, FailureClass::RepositoryUnreachable);
    let no_server = pulls.pull(|source| {
        source.repository =
            capasg_addons::helm::Repository::parse("https://127.0.0.1:1/a", PlainHttp::Rejected)?;
        Ok(())
    });
    assert_eq!(class(no_server.await?)?, FailureClass::RepositoryUnreachable);
    let no_registry = pulls.pull(|source| {
        source.repository =
            capasg_addons::helm::Repository::parse("oci://127.0.0.1:1/a", PlainHttp::Rejected)?;
        Ok(())
    });
    assert_eq!(class(no_registry.await?)?, FailureClass::RepositoryUnreachable);
    Ok(())
}

/// Every flag is one that Helm knows: otherwise the class would be another one.
#[tokio::test]
async fn a_cluster_that_does_not_respond_is_reported_by_every_call() -> Outcome {
    let pulls = Pulls::new().await?;
    let all = json!({
        "disableHooks": true, "wait": true, "waitForJobs": true, "skipCRDs": true, "options": true,
        "disableOpenAPIValidation": true, "atomic": true, "takeOwnership": true, "timeout": "1s",
        "upgrade": {"force": true, "recreate": true, "maxHistory": 3, "cleanupOnFail": true, "reuseValues": true},
        "uninstall": {"keepHistory": true, "description": "--not a flag"},
    });
    let (kubeconfig, key) = (kubeconfig("https://127.0.0.1:1")?, key()?);
    for options in [HelmOptions::default(), serde_json::from_value(all)?] {
        let target = Target { kubeconfig: &kubeconfig, key: &key, options: &options };
        let operation = Operation::begin(&pulls.helm)?;
        operation.pull(&pulls.repository.source()?).await?;
        let labels = Labels::from([("a.example/b".to_owned(), "c".to_owned())]);
        let unreachable = FailureClass::ClusterUnreachable;
        assert_eq!(class(operation.install(&target, &values(), &labels, true).await)?, unreachable);
        assert_eq!(class(operation.upgrade(&target, &values(), &labels).await)?, unreachable);
        assert_eq!(class(operation.uninstall(&target).await)?, unreachable);
        assert_eq!(class(operation.status(&target).await)?, unreachable);
        assert_eq!(class(operation.history(&target, 3).await)?, unreachable);
        assert_eq!(class(operation.values(&target).await)?, unreachable);
    }
    Ok(())
}

/// A script that writes what it received into the folder for temporary files, and prints what a release looks like.
fn recorder(folder: &Path) -> Outcome<PathBuf> {
    let script = "#!/bin/sh\nto=$TMPDIR\necho \"$@\" >> $to/arguments\n/usr/bin/env >> $to/environment\n\
         /usr/bin/stat -c '%a %n' * >> $to/modes\n/bin/cat kubeconfig values.json >> $to/files\n\
         echo '{\"version\": 1, \"info\": {\"status\": \"deployed\"}}'\n";
    let path = folder.join("helm");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    Ok(path)
}

#[tokio::test]
async fn secrets_are_in_private_files_and_nowhere_else() -> Outcome {
    let (folder, root) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let helm = Helm::new(recorder(folder.path())?, root.path().to_owned(), launcher_of_scripts()?)?;
    let (kubeconfig, key, options) = (kubeconfig("https://127.0.0.1:1")?, key()?, HelmOptions::default());
    let target = Target { kubeconfig: &kubeconfig, key: &key, options: &options };
    let operation = Operation::begin(&helm)?;
    let release = operation.install(&target, &values(), &Labels::new(), false).await?;
    operation.upgrade(&target, &values(), &Labels::new()).await?;
    assert_eq!(release.revision, 1);
    let own = fs::read_dir(root.path())?.next().ok_or("no private folder")??.path();
    let recorded = |name: &str| fs::read_to_string(own.join("temporary").join(name));
    for secret in ["t0ken", "v4lue"] {
        assert!(recorded("files")?.contains(secret));
        assert!(!recorded("arguments")?.contains(secret) && !recorded("environment")?.contains(secret));
    }
    for line in recorded("modes")?.lines() {
        assert!(line.starts_with("600 ") || line.starts_with("700 "), "{line}");
    }
    let allowed = ["HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_", "GOGC", "GOMEMLIMIT"];
    for line in recorded("environment")?.lines() {
        let name = line.split('=').next().unwrap_or_default();
        assert!(allowed.contains(&name) || name.starts_with("HELM_"), "{line}");
    }
    Ok(())
}

#[tokio::test]
async fn what_helm_prints_on_failure_is_not_repeated() -> Outcome {
    let (folder, root) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let path = folder.path().join("helm");
    fs::write(
        &path,
        "#!/bin/sh\n/bin/cat values.json >&2\necho 'Error: execution error at (c/templates/a.yaml:1:2): v4lue' >&2\nexit 1\n",
    )?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    let helm = Helm::new(path, root.path().to_owned(), launcher_of_scripts()?)?;
    let (kubeconfig, key, options) = (kubeconfig("https://127.0.0.1:1")?, key()?, HelmOptions::default());
    let target = Target { kubeconfig: &kubeconfig, key: &key, options: &options };
    let installed = Operation::begin(&helm)?.install(&target, &values(), &Labels::new(), false).await;
    let error = installed.err().ok_or("a success")?;
    assert_eq!(error.reason(), "TemplateFailed");
    let text = format!("{error} {error:?}");
    assert!(text.contains("c/templates/a.yaml:1:2") && !text.contains("v4lue"), "{text}");
    Ok(())
}
