//! The tests that show rules, as the sources name them.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use crate::{
    ids,
    tree::{self, File},
};

/// What a test stands on, from fast and narrow to slow and wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// Functions alone.
    Unit,
    /// The simulated AWS behind the real SDK.
    Wire,
    /// The model of API server and core, in virtual time.
    Simulation,
    /// What is released.
    Packaging,
    /// The upstream programs as processes.
    RealParts,
}

impl Means {
    /// As it is printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Wire => "wire",
            Self::Simulation => "simulation",
            Self::Packaging => "packaging",
            Self::RealParts => "real parts",
        }
    }

    fn of(path: &str) -> Self {
        let by_folder = [
            ("cloud/aws/tests/", Self::Wire),
            ("tests/simulator/", Self::Wire),
            ("tests/model/", Self::Simulation),
            ("tests/e2e/", Self::RealParts),
            ("tests/environment/tests/", Self::RealParts),
            ("tests/clusterctl", Self::RealParts),
            ("tests/conditions", Self::RealParts),
            ("tests/manager", Self::RealParts),
            ("tests/packaging", Self::Packaging),
            ("tests/command_line", Self::Packaging),
        ];
        by_folder.iter().find(|(folder, _)| path.starts_with(folder)).map_or(Self::Unit, |(_, means)| *means)
    }
}

/// A test that shows rules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    /// What it stands on.
    pub means: Means,
    /// From the root of the tree.
    pub path: String,
    /// The function.
    pub name: String,
    /// The rules, from the name.
    pub ids: Vec<String>,
}

/// All of them, by name.
///
/// # Errors
/// When a file cannot be read, or two tests have the same name: a result could not be told from the other's.
pub fn in_sources() -> Result<BTreeMap<String, Test>> {
    of(ids::leading)
}

/// Those that show what became of a weakness or a pain of others, by name.
///
/// # Errors
/// When a file cannot be read, or two tests have the same name.
pub fn of_pains() -> Result<BTreeMap<String, Test>> {
    of(ids::pains)
}

fn of(ids: fn(&str) -> Vec<String>) -> Result<BTreeMap<String, Test>> {
    let mut tests = BTreeMap::new();
    for file in tree::files(&["api", "cloud", "controllers", "src", "tests"], "rs")? {
        for name in names(&file, ids) {
            let test = Test {
                means: Means::of(&file.path),
                path: file.path.clone(),
                ids: ids(&name),
                name: name.clone(),
            };
            let other = tests.insert(name.clone(), test);
            ensure!(
                other.is_none(),
                "two tests are named {name}: in {} and in {}",
                file.path,
                other.map(|test: Test| test.path).unwrap_or_default()
            );
        }
    }
    Ok(tests)
}

/// The tests of a file whose names begin with an ID.
fn names(file: &File, ids: fn(&str) -> Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in file.text.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if is_test && !ids(&name).is_empty() {
                found.push(name);
            }
            is_test = false;
        } else if !line.starts_with("//") {
            is_test = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_a_function_that_is_marked_as_one() {
        let text = "#[test]\nfn b6_one() {}\n#[tokio::test(flavor = \"x\")]\n// Why.\n#[ignore]\nasync fn b7_b8_two() {}\n\
                    fn b9_helper() {}\n#[test]\nfn without() {}\n";
        let file = File { path: "api/src/a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(names(&file, ids::leading), ["b6_one", "b7_b8_two"]);
        assert_eq!(Means::of("tests/model/tests/scenarios/a.rs"), Means::Simulation);
        assert_eq!(Means::of("api/tests/crds.rs"), Means::Unit);
    }
}
