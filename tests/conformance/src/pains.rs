//! Problems of other systems, as `pains.yaml` lists them, and the documents made of it: `docs/contributors/compared.md`
//! in short, `out/compared.md` in full.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::shown::{self, Test};

/// How many weaknesses and pains there are.
const NUMBERS: [(char, usize); 2] = [('W', 27), ('P', 55)];

const SUMMARY_HEAD: &str = "# Compared

Problems of other machine pools, node groups and autoscalers, and what CAPASG does about each. W are weaknesses found \
by reading the code of other providers, P are problems that users report in public. \
[Alternatives](../users/alternatives.md) says what else there is, and when to choose it.

`make evidence` writes `out/compared.md`, with the name of each test. `make generate` writes this file, from \
`tests/conformance/pains.yaml`.
";

const FULL_HEAD: &str = "# Compared, with tests

Problems of other machine pools, node groups and autoscalers, what CAPASG does about each, and the tests that show it. \
`make evidence` writes this file, from `tests/conformance/pains.yaml`.
";

/// All of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pains {
    weaknesses: Vec<Pain>,
    pains: Vec<Pain>,
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pain {
    /// For example `W11`.
    pub id: String,
    /// What users of other systems experience.
    pub problem: String,
    /// What CAPASG does about it.
    #[serde(default)]
    pub answer: String,
    /// Why no test shows it; such a line may have neither answer nor test.
    pub absent: Option<String>,
}

impl Pains {
    /// Those that this program was built with.
    ///
    /// # Errors
    /// When the file cannot be read, a number is missing, twice or out of order, or a line says neither answer nor reason.
    pub fn load() -> Result<Self> {
        let pains: Self =
            serde_saphyr::from_str(include_str!("../pains.yaml")).context("cannot read pains.yaml")?;
        for ((letter, count), list) in NUMBERS.into_iter().zip([&pains.weaknesses, &pains.pains]) {
            ensure!(list.len() == count, "pains.yaml has {} of {count} {letter}", list.len());
            for (index, pain) in list.iter().enumerate() {
                let expected = format!("{letter}{}", index + 1);
                ensure!(pain.id == expected, "pains.yaml has {} instead of {expected}", pain.id);
                ensure!(
                    pain.answer.is_empty() == pain.absent.is_some() && !pain.problem.is_empty(),
                    "{expected}: it needs a problem, and either an answer or a reason"
                );
            }
        }
        Ok(pains)
    }

    /// All in order.
    pub fn all(&self) -> impl Iterator<Item = &Pain> {
        self.weaknesses.iter().chain(&self.pains)
    }

    /// What is missing: numbers without a test or a reason, tests of those that have a reason for none, and names with
    /// numbers that do not exist.
    ///
    /// # Errors
    /// When a source cannot be read.
    pub fn gaps(&self) -> Result<Vec<String>> {
        let tests = shown::in_sources()?;
        let mut gaps = Vec::new();
        for pain in self.all() {
            let shown = tests.iter().any(|test| test.pains.contains(&pain.id));
            // What is not done yet may be shown in part.
            let partly = pain.absent.as_ref().is_some_and(|reason| reason.starts_with("not yet"));
            if shown == pain.absent.is_some() && !(shown && partly) {
                gaps.push(format!("{}: it needs either a test or a reason for none", pain.id));
            }
        }
        for test in &tests {
            let unknown = test.pains.iter().filter(|id| self.all().all(|pain| pain.id != **id));
            gaps.extend(
                unknown.map(|id| format!("{} in {} names {id}, which does not exist", test.name, test.path)),
            );
        }
        Ok(gaps)
    }
}

/// `docs/contributors/compared.md`: a line for each, with the number of its tests.
///
/// # Errors
/// When a source cannot be read.
pub fn summary(pains: &Pains) -> Result<String> {
    let tests = shown::in_sources()?;
    table(pains, SUMMARY_HEAD, |pain| {
        let count = tests.iter().filter(|test| test.pains.contains(&pain.id)).count();
        if count == 0 { "none".to_owned() } else { count.to_string() }
    })
}

/// `out/compared.md`: a line for each, with its tests.
///
/// # Errors
/// When a source cannot be read.
pub fn full(pains: &Pains) -> Result<String> {
    let tests = shown::in_sources()?;
    table(pains, FULL_HEAD, |pain| shown_by(&pain.id, &tests))
}

fn table(pains: &Pains, head: &str, tests: impl Fn(&Pain) -> String) -> Result<String> {
    let mut text = head.to_owned();
    for (title, list) in [("Weaknesses", &pains.weaknesses), ("Pains", &pains.pains)] {
        write!(text, "\n## {title}\n\n| | problem | CAPASG | tests |\n| --- | --- | --- | --- |\n")?;
        for pain in list {
            let answer = pain.absent.as_deref().unwrap_or(&pain.answer);
            writeln!(text, "| {} | {} | {answer} | {} |", pain.id, pain.problem, tests(pain))?;
        }
    }
    Ok(text)
}

fn shown_by(id: &str, tests: &[Test]) -> String {
    let own = tests.iter().filter(|test| test.pains.iter().any(|one| one == id));
    own.map(|test| format!("[{}](../{})", test.name, test.path)).collect::<Vec<_>>().join("<br>")
}
