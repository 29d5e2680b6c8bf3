//! The crates of the workspace, as cargo lists them.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::root;

/// A library, a program, or an integration test of the workspace: a crate to the compiler.
#[derive(Debug, Clone)]
pub struct Target {
    /// The package, and the target where a package has several: `capasg-simulation bin capasg-simulate`.
    pub name: String,
    /// The package.
    pub package: String,
    /// The file that the compiler begins with.
    pub source: PathBuf,
    /// Whether it ships: everything outside `tests`.
    pub product: bool,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

/// The libraries and programs of the workspace, those that ship first.
///
/// # Errors
/// When cargo cannot list them.
pub fn targets() -> Result<Vec<Target>> {
    of_kinds(&["lib", "bin"])
}

/// Those, and the integration tests.
pub(super) fn with_tests() -> Result<Vec<Target>> {
    of_kinds(&["lib", "bin", "test"])
}

fn of_kinds(kinds: &[&str]) -> Result<Vec<Target>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().context("cannot start cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cannot read cargo's list")?;
    let mut targets: Vec<Target> =
        metadata.packages.iter().flat_map(|package| of_package(package, kinds)).collect();
    targets.sort_by_key(|target| (!target.product, target.name.clone()));
    Ok(targets)
}

fn of_package(package: &Package, kinds: &[&str]) -> Vec<Target> {
    let product = !package.manifest_path.starts_with(root().join("tests"));
    let targets = package.targets.iter().filter_map(|target| {
        let kind = target.kind.iter().find(|kind| kinds.contains(&kind.as_str()))?;
        let name = if kind == "lib" || target.name == package.name {
            package.name.clone()
        } else {
            format!("{} {kind} {}", package.name, target.name)
        };
        Some(Target { name, package: package.name.clone(), source: target.src_path.clone(), product })
    });
    targets.collect()
}
