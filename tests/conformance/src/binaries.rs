//! The compiled tests of the workspace.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{ids, root};

/// A program of libtest.
#[derive(Debug, Clone)]
pub struct Binary {
    /// Package and target, for people.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Where cargo would run it.
    pub folder: PathBuf,
    /// Its tests: the function's name, and its path in the program.
    pub tests: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    executable: Option<PathBuf>,
    #[serde(default)]
    target: Target,
    #[serde(default)]
    profile: Profile,
}

#[derive(Deserialize, Default)]
struct Target {
    name: String,
}

#[derive(Deserialize, Default)]
struct Profile {
    test: bool,
}

/// What knows neither the SDK of AWS nor the control plane.
const FAST: [&str; 8] =
    ["-p", "capasg-api", "-p", "capasg-cloud", "-p", "capasg-controllers", "-p", "capasg-model"];

/// Compiles all tests and asks each program what it holds. Programs without tests that show rules are left out; those
/// that need the control plane longest come last. Fast are those that need none of it.
///
/// # Errors
/// When something does not compile.
pub fn build(fast: bool) -> Result<Vec<Binary>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // The whole workspace: another selection has other features, and would be compiled again.
    cargo.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    cargo.args(if fast { &FAST[..] } else { &["--workspace"] });
    if std::env::var_os("CI").is_some() {
        cargo.arg("--locked");
    }
    let output = cargo.current_dir(root()).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests do not compile");
    let mut binaries = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Message = serde_json::from_str(line).context("cannot read what cargo says")?;
        let (Some(program), true) = (message.executable, message.profile.test) else { continue };
        let folder = message.manifest_path.parent().unwrap_or(root()).to_owned();
        let package = folder.strip_prefix(root()).unwrap_or(&folder).display().to_string();
        let tests = list(&program)?;
        if tests.keys().any(|name| shows_rules(name)) {
            let name = if package.is_empty() {
                message.target.name
            } else {
                format!("{package} {}", message.target.name)
            };
            binaries.push(Binary { name, program, folder, tests });
        }
    }
    binaries.sort_by_key(|binary| (binary.name.starts_with("tests/e2e"), binary.name.clone()));
    Ok(binaries)
}

fn list(program: &Path) -> Result<BTreeMap<String, String>> {
    let output = Command::new(program)
        .args(["--list", "--format", "terse"])
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let text = String::from_utf8(output.stdout)?;
    let paths = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(paths.map(|path| (last(path).to_owned(), path.to_owned())).collect())
}

impl Binary {
    /// The names of its tests that show rules.
    pub fn showing_rules(&self) -> impl Iterator<Item = &str> {
        self.tests.keys().map(String::as_str).filter(|name| shows_rules(name))
    }
}

fn shows_rules(name: &str) -> bool {
    !ids::leading(name).is_empty()
}

/// The function of a test's path.
pub(crate) fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}
