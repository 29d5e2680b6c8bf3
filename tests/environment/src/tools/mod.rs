//! The upstream programs and manifests, built once from pinned Go modules into a cache outside the clone.
//!
//! Nothing here is a copy or a mock: etcd, kube-apiserver, kube-controller-manager, kubectl, clusterctl, core
//! Cluster API, the kubeadm bootstrap and control plane providers and the docker provider (for its in-memory
//! clusters) are compiled from the modules that `tests/tools/*/go.mod` pin. A second run finds them and is instant.

mod build;
mod capa;
mod charts;
mod core;
mod filter;
mod module;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use self::{
    build::Build,
    core::Core,
    module::{ADD_ONS, ARGO_CD, CAAPH, CERT_MANAGER, CONDITIONS, ETCD, KSTATUS, KUBERNETES, Module},
};
pub use self::{
    build::Say,
    capa::{Capa, capa, capa_definitions},
    charts::add_on_charts,
    filter::filter,
};
use crate::cache;

/// What clusterctl asks of cert-manager: these kinds exist. Nothing runs behind them here.
const CERT_MANAGER_DEFINITIONS: [&str; 2] =
    ["cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml"];

/// The built programs and manifests.
#[derive(Debug, Clone)]
pub struct Tools {
    folder: PathBuf,
    kubernetes_version: &'static str,
    cluster_api_version: &'static str,
}

impl Tools {
    /// Builds what the cache does not hold yet, and answers where everything is. `CAPASG_CORE` chooses the version
    /// of Cluster API.
    ///
    /// This blocks, the first time for about ten minutes on two cores; call it outside an async runtime's workers.
    ///
    /// # Errors
    /// When Go is missing, a module cannot be downloaded, a build fails, or `CAPASG_CORE` is no version of ours.
    pub fn ready(say: Say<'_>) -> Result<Self> {
        Self::ready_in(&cache::folder()?.join("tools"), Core::chosen()?, say)
    }

    fn ready_in(cache: &Path, core: &Core, say: Say<'_>) -> Result<Self> {
        fs::create_dir_all(cache).with_context(|| format!("cannot make {}", cache.display()))?;
        let etcd = build::ensure(cache, &ETCD, say, |_| Ok(()))?;
        let kubernetes = build::ensure(cache, &KUBERNETES, say, |_| Ok(()))?;
        let kubectl = kubernetes.join("kubectl");
        let cluster_api =
            build::ensure(cache, core.module, say, |build| write_components(build, core, &kubectl))?;
        let cert_manager = build::ensure(cache, &CERT_MANAGER, say, copy_definitions)?;
        let conditions = build::ensure(cache, &CONDITIONS, say, |_| Ok(()))?;
        let kstatus = build::ensure(cache, &KSTATUS, say, |_| Ok(()))?;
        let parts = [
            (&ETCD, etcd.as_path()),
            (&KUBERNETES, kubernetes.as_path()),
            (core.module, cluster_api.as_path()),
            (&CERT_MANAGER, cert_manager.as_path()),
            (&CONDITIONS, conditions.as_path()),
            (&KSTATUS, kstatus.as_path()),
        ];
        Ok(Self {
            folder: link(cache, &parts)?,
            kubernetes_version: KUBERNETES.version_of(KUBERNETES.release)?,
            cluster_api_version: core.version()?,
        })
    }

    /// One folder that holds every program under its name, fit for `PATH`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A program, for example `kubectl`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The components of an upstream provider, by its clusterctl label, for example `bootstrap-kubeadm`.
    #[must_use]
    pub fn components(&self, label: &str) -> PathBuf {
        self.folder.join("manifests").join(format!("{label}.yaml"))
    }

    /// The `metadata.yaml` of the upstream providers.
    #[must_use]
    pub fn metadata(&self) -> PathBuf {
        self.folder.join("manifests/metadata.yaml")
    }

    /// cert-manager's custom resource definitions.
    #[must_use]
    pub fn cert_manager_definitions(&self) -> Vec<PathBuf> {
        CERT_MANAGER_DEFINITIONS.iter().map(|name| self.folder.join("cert-manager").join(name)).collect()
    }

    /// The version of Kubernetes, for example `v1.36.3`.
    #[must_use]
    pub fn kubernetes_version(&self) -> &'static str {
        self.kubernetes_version
    }

    /// The version of Cluster API, for example `v1.14.2`.
    #[must_use]
    pub fn cluster_api_version(&self) -> &'static str {
        self.cluster_api_version
    }
}

/// Builds the programs of the add-on provider if the cache does not hold them yet, and answers their folder: it has `helm` and
/// `capasg-values`. The first time takes about two minutes on two cores.
///
/// # Errors
/// When Go is missing, a module cannot be downloaded, or a build fails.
pub fn add_on_programs(say: Say<'_>) -> Result<PathBuf> {
    let cache = cache::folder()?.join("tools");
    fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    build::ensure(&cache, &ADD_ONS, say, |_| Ok(()))
}

/// The program `argocd-health`, which runs health scripts as Argo CD does, built within seconds if the cache does not hold it yet.
///
/// # Errors
/// When Go is missing, a module cannot be downloaded, or a build fails.
pub fn argocd_health(say: Say<'_>) -> Result<PathBuf> {
    let cache = cache::folder()?.join("tools");
    fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    Ok(build::ensure(&cache, &ARGO_CD, say, |_| Ok(()))?.join("argocd-health"))
}

/// The folder of Cluster API Add-on Provider for Helm, which is built if the cache does not hold it yet: the program `caaph`, and
/// its components in `addon-helm.yaml`, whose variables are not replaced. The first time takes about two minutes on two cores.
///
/// # Errors
/// When Go is missing, a module cannot be downloaded, or a build fails.
pub fn caaph(tools: &Tools, say: Say<'_>) -> Result<PathBuf> {
    build::ensure(&cache::folder()?.join("tools"), &CAAPH, say, |build| {
        let folder = build.source_of(CAAPH.release)?.join("config/default");
        let mut command = Command::new(tools.program("kubectl"));
        command.arg("kustomize").arg(folder);
        fs::write(
            build.folder().join("addon-helm.yaml"),
            build.watched(command, "rendering its components")?,
        )?;
        Ok(())
    })
}

/// Renders the upstream providers' manifests. The module cache is read-only, so they are written beside the programs.
fn write_components(build: &Build<'_>, core: &Core, kubectl: &Path) -> Result<()> {
    let manifests = build.folder().join("manifests");
    fs::create_dir(&manifests)?;
    for (label, module, kustomization) in core.components {
        build.say(&format!("rendering the components of {label}"));
        let mut command = Command::new(kubectl);
        command.arg("kustomize").arg(build.source_of(module)?.join(kustomization));
        let rendered = build.watched(command, &format!("rendering {label}"))?;
        fs::write(manifests.join(format!("{label}.yaml")), rendered)?;
    }
    let metadata = build.source_of("sigs.k8s.io/cluster-api")?.join("metadata.yaml");
    fs::write(manifests.join("metadata.yaml"), fs::read(metadata)?)?;
    Ok(())
}

fn copy_definitions(build: &Build<'_>) -> Result<()> {
    let target = build.folder().join("cert-manager");
    fs::create_dir(&target)?;
    let source = build.source_of(CERT_MANAGER.release)?.join("deploy/crds");
    for name in CERT_MANAGER_DEFINITIONS {
        let text = fs::read(source.join(name)).with_context(|| format!("cert-manager has no {name}"))?;
        fs::write(target.join(name), text)?;
    }
    Ok(())
}

/// Makes the folder with links to all parts, named by the parts' keys together.
fn link(cache: &Path, parts: &[(&Module, &Path)]) -> Result<PathBuf> {
    let mut hash = Sha256::new();
    for (module, _) in parts {
        hash.update(module.key()?);
    }
    let folder = cache.join(format!("all-{}", module::hex(&hash.finalize())));
    if folder.is_dir() {
        return Ok(folder);
    }
    let partial = tempfile::Builder::new().prefix("all-").suffix(".partial").tempdir_in(cache)?;
    for (_, path) in parts {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_name() != "source" {
                std::os::unix::fs::symlink(entry.path(), partial.path().join(entry.file_name()))?;
            }
        }
    }
    let partial = partial.keep();
    if let Err(error) = fs::rename(&partial, &folder) {
        fs::remove_dir_all(&partial)?;
        // Another process may have made it in the meantime.
        if !folder.is_dir() {
            return Err(error).with_context(|| format!("cannot make {}", folder.display()));
        }
    }
    Ok(folder)
}
