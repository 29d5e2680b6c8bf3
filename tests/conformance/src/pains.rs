//! What users of other systems live with, as `pains.yaml` has it, and `docs/compared.md` that is made of it.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::shown::{self, Test};

/// How many weaknesses and pains there are.
const NUMBERS: [(char, usize); 2] = [('W', 27), ('P', 55)];

const HEAD: &str = "# Compared

What users of other machine pools, node groups and autoscalers live with, one line each; what CAPASG does about it; and \
the tests that show it. W are weaknesses that reading the code of others has found, P what people complain of in public. \
This file is written by `make generate`, from `tests/conformance/pains.yaml`; tests are found by the numbers in their \
names. A line without a test says why it has none.
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
    /// What users suffer.
    pub suffer: String,
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
                    pain.answer.is_empty() == pain.absent.is_some() && !pain.suffer.is_empty(),
                    "{expected}: it needs what is suffered, and either an answer or a reason"
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
        let tests = shown::of_pains()?;
        let mut gaps = Vec::new();
        for pain in self.all() {
            let shown = tests.values().any(|test| test.ids.contains(&pain.id));
            // What is not done yet may be shown in part.
            let partly = pain.absent.as_ref().is_some_and(|reason| reason.starts_with("not yet"));
            if shown == pain.absent.is_some() && !(shown && partly) {
                gaps.push(format!("{}: it needs either a test or a reason for none", pain.id));
            }
        }
        for test in tests.values() {
            let unknown = test.ids.iter().filter(|id| self.all().all(|pain| pain.id != **id));
            gaps.extend(
                unknown.map(|id| format!("{} in {} names {id}, which does not exist", test.name, test.path)),
            );
        }
        Ok(gaps)
    }
}

/// The whole of `docs/compared.md`.
///
/// # Errors
/// When a source cannot be read.
pub fn compared(pains: &Pains) -> Result<String> {
    let tests = shown::of_pains()?;
    let mut text = HEAD.to_owned();
    for (title, list) in [("Weaknesses", &pains.weaknesses), ("Pains", &pains.pains)] {
        write!(text, "\n## {title}\n\n| | suffered | here | shown by |\n| --- | --- | --- | --- |\n")?;
        for pain in list {
            let (answer, shown) = match &pain.absent {
                Some(reason) => (reason.as_str(), String::new()),
                None => (pain.answer.as_str(), shown_by(&pain.id, &tests)),
            };
            writeln!(text, "| {} | {} | {answer} | {shown} |", pain.id, pain.suffer)?;
        }
    }
    Ok(text)
}

fn shown_by(id: &str, tests: &BTreeMap<String, Test>) -> String {
    let mut own: Vec<&Test> = tests.values().filter(|test| test.ids.iter().any(|one| one == id)).collect();
    own.sort();
    own.iter().map(|test| format!("[{}](../{})", test.name, test.path)).collect::<Vec<_>>().join("<br>")
}
