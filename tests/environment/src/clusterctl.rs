//! clusterctl with a local repository: the upstream providers from the cache, ours from its release folder.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{command::Runner, tools::Tools};

/// A release of our infrastructure provider, laid out as clusterctl expects: `<...>/infrastructure-asg/<version>/`. Our
/// other providers of the same version are found beside it.
#[derive(Debug, Clone)]
pub struct Release {
    folder: PathBuf,
    version: String,
}

/// A provider of ours beside that of the infrastructure: its name and label, clusterctl's type and flag, and its components.
struct Companion {
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    flag: &'static str,
    components: &'static str,
}

/// Our other providers.
const COMPANIONS: [Companion; 2] = [
    Companion {
        name: Release::NAME,
        label: "runtime-extension-asg",
        kind: "RuntimeExtensionProvider",
        flag: "--runtime-extension",
        components: "runtime-extension-components.yaml",
    },
    Companion {
        name: "asg-helm",
        label: "addon-asg-helm",
        kind: "AddonProvider",
        flag: "--addon",
        components: "addon-components.yaml",
    },
];

/// The file that every release of an infrastructure provider has.
const COMPONENTS: &str = "infrastructure-components.yaml";

/// The folder `<...>/<label>/<version>/` of another provider in the same release, beside
/// `<...>/infrastructure-asg/<version>/`.
#[must_use]
pub fn sibling_release(folder: &Path, label: &str) -> PathBuf {
    let provider = folder.parent().unwrap_or(folder).with_file_name(label);
    provider.join(folder.file_name().unwrap_or_default())
}

impl Release {
    /// The clusterctl name of our provider; its label, and so the name of the folder, is `infrastructure-asg`.
    pub const NAME: &'static str = "asg";

    /// Reads the version from the folder's name.
    ///
    /// # Errors
    /// When the folder is not laid out as clusterctl expects.
    pub fn at(folder: &Path) -> Result<Self> {
        let folder =
            folder.canonicalize().with_context(|| format!("there is no release in {}", folder.display()))?;
        let label = folder.parent().and_then(Path::file_name).unwrap_or_default();
        anyhow::ensure!(
            label == "infrastructure-asg",
            "{}: clusterctl wants the parent folder to be called infrastructure-asg",
            folder.display()
        );
        for file in [COMPONENTS, "metadata.yaml"] {
            anyhow::ensure!(folder.join(file).is_file(), "{} has no {file}", folder.display());
        }
        let version = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { folder, version })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The version, for example `v0.1.0`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Our other providers of this version, with the file of their components.
    fn companions(&self) -> impl Iterator<Item = (&'static Companion, PathBuf)> {
        let file = |companion: &'static Companion| {
            let file = sibling_release(&self.folder, companion.label).join(companion.components);
            file.is_file().then_some((companion, file))
        };
        COMPANIONS.iter().filter_map(file)
    }
}

/// The upstream providers: name, type, label.
const UPSTREAM: [(&str, &str, &str); 4] = [
    ("cluster-api", "CoreProvider", "cluster-api"),
    ("kubeadm", "BootstrapProvider", "bootstrap-kubeadm"),
    ("kubeadm", "ControlPlaneProvider", "control-plane-kubeadm"),
    ("docker", "InfrastructureProvider", "infrastructure-docker"),
];

/// clusterctl for one management cluster.
#[derive(Debug, Clone)]
pub struct Clusterctl {
    runner: Runner,
    config: PathBuf,
    upstream_version: &'static str,
    release: Option<Release>,
}

impl Clusterctl {
    /// Lays out the repository and the configuration under `folder`.
    ///
    /// `variables` are what templates and components may refer to; the gates that our tests need are set already.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn new(
        tools: &Tools,
        folder: &Path,
        kubeconfig: &Path,
        release: Option<Release>,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let version = tools.cluster_api_version();
        let mut providers = Vec::new();
        for (name, kind, label) in UPSTREAM {
            let target = folder.join("repository").join(label).join(version);
            fs::create_dir_all(&target)?;
            let components = target.join("components.yaml");
            fs::copy(tools.components(label), &components)?;
            fs::copy(tools.metadata(), target.join("metadata.yaml"))?;
            providers.push(json!({"name": name, "type": kind, "url": components}));
        }
        if let Some(release) = &release {
            let components = release.folder.join(COMPONENTS);
            providers
                .push(json!({"name": Release::NAME, "type": "InfrastructureProvider", "url": components}));
            providers.extend(release.companions().map(|(companion, components)| {
                json!({"name": companion.name, "type": companion.kind, "url": components})
            }));
        }
        let mut document = json!({
            "providers": providers,
            "EXP_MACHINE_POOL": "true",
            "CLUSTER_TOPOLOGY": "true",
            "EXP_RUNTIME_SDK": "true",
        });
        for (name, value) in variables {
            document[name] = Value::String(value.clone());
        }
        let config = folder.join("clusterctl.yaml");
        fs::write(&config, serde_saphyr::to_string(&document)?)?;
        let runner = Runner::new(tools.program("clusterctl"))
            .with("--config")
            .with(&config)
            .env("KUBECONFIG", kubeconfig)
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true");
        Ok(Self { runner, config, upstream_version: version, release })
    }

    /// Installs all providers into the management cluster. Nothing becomes available by this alone: there are no
    /// nodes, the managers are started as processes.
    ///
    /// # Errors
    /// When clusterctl fails; then with what it said.
    pub async fn init(&self, more: &[&str]) -> Result<String> {
        let version = self.upstream_version;
        let mut args = vec![
            "init".to_owned(),
            "--core".to_owned(),
            format!("cluster-api:{version}"),
            "--bootstrap".to_owned(),
            format!("kubeadm:{version}"),
            "--control-plane".to_owned(),
            format!("kubeadm:{version}"),
            "--infrastructure".to_owned(),
            format!("docker:{version}"),
        ];
        if let Some(release) = &self.release {
            let ours = |name: &str| format!("{name}:{}", release.version);
            args.extend(["--infrastructure".to_owned(), ours(Release::NAME)]);
            args.extend(release.companions().flat_map(|(one, _)| [one.flag.to_owned(), ours(one.name)]));
        }
        args.extend(more.iter().map(|arg| (*arg).to_owned()));
        let output = self.runner.output(&args, None).await?;
        anyhow::ensure!(output.success, "clusterctl init failed: {}{}", output.stderr, output.stdout);
        Ok(output.stderr + &output.stdout)
    }

    /// The command with its configuration and kubeconfig set, for any other call.
    #[must_use]
    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_in_a_folder_of_another_name_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let right = base.path().join("infrastructure-asg/v0.1.0");
        let wrong = base.path().join("asg/v0.1.0");
        for folder in [&right, &wrong] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(COMPONENTS), "").unwrap();
            fs::write(folder.join("metadata.yaml"), "").unwrap();
        }
        assert_eq!(Release::at(&right).unwrap().version(), "v0.1.0");
        assert!(Release::at(&wrong).unwrap_err().to_string().contains("infrastructure-asg"));
        fs::remove_file(right.join("metadata.yaml")).unwrap();
        assert!(Release::at(&right).unwrap_err().to_string().contains("has no metadata.yaml"));
    }
}
