//! The tests of the tree, and what each shows, as the sources say.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};

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
            ("tests/fake-aws/", Self::Wire),
            ("tests/simulation/", Self::Simulation),
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

/// When a test runs, by the reason of its `#[ignore]`. A test that is ignored for another reason always counts as ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runs {
    /// In `make test`.
    Always,
    /// In the long form alone: `long form: ...`.
    Long,
    /// In the long form with another version of Cluster API than the default one: `older core: ...`.
    OlderCore,
}

impl Runs {
    /// From a line of attributes.
    fn of(line: &str) -> Option<Self> {
        let reason = line.strip_prefix("#[ignore = \"")?;
        match reason.split_once(": ")?.0 {
            "long form" => Some(Self::Long),
            "older core" => Some(Self::OlderCore),
            _ => None,
        }
    }
}

/// A test, and what it shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    /// What it stands on.
    pub means: Means,
    /// From the root of the tree.
    pub path: String,
    /// The function.
    pub name: String,
    /// When it runs.
    pub runs: Runs,
    /// The rules, from the line above it or from its name; empty if it shows none.
    pub rules: Vec<String>,
    /// The weaknesses and pains, from the line above it or from its name.
    pub pains: Vec<String>,
}

/// All tests of the tree, also those that show nothing.
///
/// # Errors
/// When a file cannot be read, a list of IDs holds something else, or two tests of a file have the same name.
pub fn in_sources() -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for file in tree::files(&["addons", "api", "cloud", "controllers", "extensions", "src", "tests"], "rs")? {
        let of_file = tests_of(&file)?;
        let mut names = BTreeSet::new();
        for test in of_file {
            ensure!(names.insert(test.name.clone()), "two tests of {} are named {}", file.path, test.name);
            tests.push(test);
        }
    }
    tests.sort();
    Ok(tests)
}

/// The tests of a file.
fn tests_of(file: &File) -> Result<Vec<Test>> {
    let mut found = Vec::new();
    let mut is_test = false;
    let mut runs = Runs::Always;
    let mut listed = Vec::new();
    for line in file.text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("//") {
            listed.extend(ids::listed(comment).with_context(|| file.path.clone())?);
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
            runs = Runs::of(line).unwrap_or(runs);
        } else if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let listed = std::mem::take(&mut listed);
            let runs = std::mem::replace(&mut runs, Runs::Always);
            if std::mem::take(&mut is_test) {
                found.push(test(file, name, runs, listed));
            } else {
                ensure!(listed.is_empty(), "{}: {name} lists {listed:?} and is no test", file.path);
            }
        } else {
            ensure!(listed.is_empty(), "{}: {listed:?} stand above no test", file.path);
            is_test = false;
        }
    }
    Ok(found)
}

fn test(file: &File, name: String, runs: Runs, listed: Vec<String>) -> Test {
    let (mut pains, mut rules): (Vec<String>, Vec<String>) =
        listed.into_iter().partition(|id| ids::is_pain(id));
    rules.extend(ids::leading(&name));
    pains.extend(ids::pains(&name));
    Test { means: Means::of(&file.path), path: file.path.clone(), name, runs, rules, pains }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<(String, Vec<String>)>> {
        let file = File { path: "api/src/a.rs".to_owned(), text: text.to_owned() };
        let all = tests_of(&file)?.into_iter();
        Ok(all.map(|test| (test.name, [test.rules, test.pains].concat())).collect())
    }

    fn test(name: &str, ids: &[&str]) -> (String, Vec<String>) {
        (name.to_owned(), ids.iter().map(|id| (*id).to_owned()).collect())
    }

    #[test]
    fn a_test_is_a_function_with_the_attribute_of_one() {
        let text = "#[test]\nfn b6_one() {}\n#[tokio::test(flavor = \"x\")]\n// Why.\n#[ignore]\nasync fn b7_b8_two() {}\n\
                    fn b9_helper() {}\n#[test]\nfn without() {}\n";
        let expected = [test("b6_one", &["B6"]), test("b7_b8_two", &["B7", "B8"]), test("without", &[])];
        assert_eq!(shown(text).unwrap(), expected);
        assert_eq!(Means::of("tests/simulation/tests/scenarios/a.rs"), Means::Simulation);
        assert_eq!(Means::of("api/tests/crds.rs"), Means::Unit);
    }

    #[test]
    fn the_reason_of_an_ignored_test_says_when_it_runs() {
        let text = "#[test]\n#[ignore = \"long form: builds it\"]\nfn one() {}\n#[test]\nfn two() {}\n\
                    #[test]\n#[ignore = \"older core: v1.13\"]\nfn three() {}\n#[test]\n#[ignore = \"by hand\"]\nfn four() {}\n";
        let file = File { path: "api/src/a.rs".to_owned(), text: text.to_owned() };
        let runs: Vec<Runs> = tests_of(&file).unwrap().into_iter().map(|test| test.runs).collect();
        assert_eq!(runs, [Runs::Long, Runs::Always, Runs::OlderCore, Runs::Always]);
    }

    #[test]
    fn the_line_above_a_test_counts_as_its_name_does() {
        let text = "/// Why.\n// Rules: B6\n#[test]\nfn one() {}\n\n#[test]\n// Rules: B7, B8\n// Pains: P4\nfn b9_two() {}\n";
        let expected = [test("one", &["B6"]), test("b9_two", &["B7", "B8", "B9", "P4"])];
        assert_eq!(shown(text).unwrap(), expected);
    }

    #[test]
    fn a_list_that_belongs_to_no_test_is_an_error() {
        assert!(shown("// Rules: B6\nfn helper() {}\n").is_err());
        assert!(shown("// Rules: B6\n\n#[test]\nfn one() {}\n").is_err());
        assert!(shown("// Rules: B6 B7\n#[test]\nfn one() {}\n").is_err());
    }
}
