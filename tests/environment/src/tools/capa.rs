//! Cluster API Provider AWS, of whose network and control plane our pools are a part: built on demand only.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{
    Tools,
    build::{self, Build, Say},
    module::{CAPA, CAPA_DEFINITIONS},
};
use crate::cache;

/// The file of the components, as clusterctl calls that of an infrastructure provider.
const COMPONENTS: &str = "infrastructure-components.yaml";

/// What `kubectl kustomize` of the module gives where only the definitions are asked for.
const DEFINITIONS: &str = "definitions.yaml";

/// The built provider.
#[derive(Debug, Clone)]
pub struct Capa {
    /// Its manager.
    pub manager: PathBuf,
    /// The folder of its command `clusterawsadm`.
    pub folder: PathBuf,
    /// Its components (infrastructure-components.yaml in a folder of the provider and the version), with `metadata.yaml`
    /// beside: the URL of the provider `aws` in `clusterctl.yaml`. Its variables are not replaced.
    pub components: PathBuf,
    /// The version, for example `v2.13.0`.
    pub version: &'static str,
}

/// Cluster API Provider AWS, built if the cache does not hold it yet: the first time takes about five minutes on two idle cores,
/// and 3.5 GB of memory.
///
/// # Errors
/// When Go is missing, a module cannot be downloaded, or a build fails.
pub fn capa(tools: &Tools, say: Say<'_>) -> Result<Capa> {
    let version = CAPA.version_of(CAPA.release)?;
    let release = PathBuf::from("infrastructure-aws").join(version);
    let folder = build::ensure(&cache::folder()?.join("tools"), &CAPA, say, |build| {
        let target = build.folder().join(&release);
        fs::create_dir_all(&target)?;
        fs::write(target.join(COMPONENTS), kustomize(build, tools, "config/default")?)?;
        let metadata = build.source_of(CAPA.release)?.join("metadata.yaml");
        fs::write(target.join("metadata.yaml"), fs::read(metadata)?)?;
        Ok(())
    })?;
    let components = folder.join(release).join(COMPONENTS);
    Ok(Capa { manager: folder.join("capa"), components, folder, version })
}

/// One file with the definitions of Cluster API Provider AWS, without conversion, since no manager serves it. Nothing is
/// compiled: the module is downloaded once.
///
/// # Errors
/// When Go is missing, or the module cannot be downloaded or rendered.
pub fn capa_definitions(tools: &Tools, say: Say<'_>) -> Result<PathBuf> {
    let folder = build::ensure(&cache::folder()?.join("tools"), &CAPA_DEFINITIONS, say, |build| {
        let rendered = kustomize(build, tools, "config/crd")?;
        let text = String::from_utf8(rendered).context("the definitions are not text")?;
        let mut definitions: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        for definition in &mut definitions {
            if let Some(spec) = definition["spec"].as_object_mut() {
                spec.remove("conversion");
            }
        }
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": definitions});
        fs::write(build.folder().join(DEFINITIONS), serde_json::to_vec(&list)?)?;
        Ok(())
    })?;
    Ok(folder.join(DEFINITIONS))
}

fn kustomize(build: &Build<'_>, tools: &Tools, folder: &str) -> Result<Vec<u8>> {
    let mut command = Command::new(tools.program("kubectl"));
    command.arg("kustomize").arg(build.source_of(CAPA.release)?.join(folder));
    build.watched(command, &format!("rendering {folder}"))
}
