//! The compiled tests of the workspace, and which test of the sources each is.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{root, shown::Test};

/// A program of libtest.
#[derive(Debug, Clone)]
pub struct Binary {
    /// Package and target, for people.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Where cargo would run it.
    pub folder: PathBuf,
    /// The file that holds the root of its modules, from the root of the tree.
    source: PathBuf,
    /// Its tests by their paths in the program: `module::tests::name`.
    pub tests: Vec<String>,
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
    #[serde(default)]
    src_path: PathBuf,
}

#[derive(Deserialize, Default)]
struct Profile {
    test: bool,
}

/// The integration tests, by their targets, that know neither the SDK of AWS nor the control plane.
const FAST: [&str; 7] =
    ["crds", "foreign", "foreign_generated", "serialization", "summary", "published_types", "scenarios"];

/// Compiles all tests and requests its list from each program. Those that need the control plane longest come last; fast
/// are those that need none of it.
///
/// # Errors
/// When something does not compile.
pub fn build(fast: bool) -> Result<Vec<Binary>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Always the whole workspace: another selection of packages has other features, and would be compiled again.
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    if fast {
        cargo.arg("--lib").args(FAST.iter().flat_map(|target| ["--test", target]));
    }
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
        let source =
            message.target.src_path.strip_prefix(root()).unwrap_or(&message.target.src_path).to_owned();
        let name = if package.is_empty() {
            message.target.name
        } else {
            format!("{package} {}", message.target.name)
        };
        binaries.push(Binary { name, program, folder, source, tests });
    }
    binaries.sort_by_key(|binary| (binary.name.starts_with("tests/e2e"), binary.name.clone()));
    Ok(binaries)
}

fn list(program: &Path) -> Result<Vec<String>> {
    let output = Command::new(program)
        .args(["--list", "--format", "terse"])
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

impl Binary {
    /// Each of its tests as the sources have it, where they do.
    pub fn matched<'a>(&'a self, sources: &'a [Test]) -> impl Iterator<Item = (&'a str, Option<&'a Test>)> {
        self.tests.iter().map(|path| (path.as_str(), self.source_of(path, sources)))
    }

    /// The test of that name in the innermost module that has a file of its own; a file that is mounted elsewhere than its
    /// name says is found where no other has a test of that name.
    fn source_of<'a>(&self, path: &str, sources: &'a [Test]) -> Option<&'a Test> {
        let named: Vec<(&Test, Vec<String>)> = sources
            .iter()
            .filter(|test| test.name == last(path))
            .filter_map(|test| Some((test, self.modules(Path::new(&test.path))?)))
            .collect();
        let within = |modules: &[String]| {
            let mut parts = path.split("::");
            modules.iter().all(|module| parts.next() == Some(module))
        };
        let innermost =
            named.iter().filter(|(_, modules)| within(modules)).max_by_key(|(_, modules)| modules.len());
        match (innermost, named.as_slice()) {
            (Some((test, _)), _) | (None, [(test, _)]) => Some(test),
            _ => None,
        }
    }

    /// The modules of a file, if it can belong to this program.
    fn modules(&self, file: &Path) -> Option<Vec<String>> {
        if file == self.source {
            return Some(Vec::new());
        }
        let file = file.strip_prefix(self.source.parent()?).ok()?.with_extension("");
        let mut modules: Vec<String> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if modules.last().is_some_and(|last| last == "mod") {
            modules.pop();
        }
        Some(modules)
    }
}

/// The function of a test's path.
fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::{Means, Runs};

    fn test(path: &str) -> Test {
        Test {
            means: Means::Unit,
            path: path.to_owned(),
            name: "one".to_owned(),
            runs: Runs::Always,
            rules: Vec::new(),
            pains: Vec::new(),
        }
    }

    fn found<'a>(source: &str, path: &str, tests: &'a [Test]) -> Option<&'a str> {
        let binary = Binary {
            name: String::new(),
            program: PathBuf::new(),
            folder: PathBuf::new(),
            source: PathBuf::from(source),
            tests: Vec::new(),
        };
        binary.source_of(path, tests).map(|test| test.path.as_str())
    }

    #[test]
    fn a_test_is_found_by_its_name_and_its_module() {
        let files =
            ["a/src/lib.rs", "a/src/pool/mod.rs", "a/src/pool/size.rs", "a/tests/b.rs", "c/src/odd_tests.rs"];
        let tests: Vec<Test> = files.iter().map(|path| test(path)).collect();
        let lib = "a/src/lib.rs";
        assert_eq!(found(lib, "tests::one", &tests), Some("a/src/lib.rs"));
        assert_eq!(found(lib, "pool::tests::one", &tests), Some("a/src/pool/mod.rs"));
        assert_eq!(found(lib, "pool::size::tests::one", &tests), Some("a/src/pool/size.rs"));
        assert_eq!(found("a/tests/b.rs", "one", &tests), Some("a/tests/b.rs"));
        assert_eq!(found("a/tests/c/main.rs", "one", &tests), None);
        assert_eq!(found("c/src/lib.rs", "odd::tests::one", &tests), Some("c/src/odd_tests.rs"));
    }
}
