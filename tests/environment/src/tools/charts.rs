//! The charts of the add-on set for AWS, as far as Go modules have them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{
    build::{self, Say},
    module::CHARTS,
};
use crate::cache;

/// Module, folder in it, and name of each chart.
const SOURCES: [(&str, &str, &str); 2] = [
    ("github.com/cilium/cilium", "install/kubernetes/cilium", "cilium"),
    ("k8s.io/cloud-provider-aws", "charts/aws-cloud-controller-manager", "aws-cloud-controller-manager"),
];

/// The folders of the charts. The first time, their modules are downloaded, with 100 MB.
///
/// # Errors
/// When Go is missing, or a module cannot be downloaded.
pub fn add_on_charts(say: Say<'_>) -> Result<[PathBuf; 2]> {
    let folder = build::ensure(&cache::folder()?.join("tools"), &CHARTS, say, |build| {
        for (module, path, name) in SOURCES {
            copy(&build.source_of(module)?.join(path), &build.folder().join(name))?;
        }
        Ok(())
    })?;
    Ok(SOURCES.map(|(_, _, name)| folder.join(name)))
}

/// Without the permissions of the module cache, which is read-only.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("there is no chart in {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::write(target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}
