//! The rules with what shows that they are kept: `docs/contributors/contract.md` in short, `out/contract.md` in full.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::Result;

use crate::{
    code::{self, Place},
    rules::{Rule, Rules},
    shown::{self, Runs, Test},
};

const SUMMARY_HEAD: &str = "# Rules of the contract

What core Cluster API and clusterctl require of an infrastructure provider of machine pools, and how many tests show \
that CAPASG keeps each rule. MUST\\* is what the written contract does not say, but without which core or clusterctl \
fail.

* `make conformance` runs the tests and prints the result of each rule; `RULES=D8,D10` selects rules, `CORE=` another \
version of core.
* `make evidence` writes `out/contract.md`: the code that keeps each rule, and the name of each test.

`make generate` writes this file. [Testing](testing.md) describes the kinds of tests.
";

const FULL_HEAD: &str = "# Rules of the contract, with code and tests

What core Cluster API and clusterctl require of an infrastructure provider of machine pools, the code that keeps each \
rule, and the tests that show it. `make evidence` writes this file.

MUST\\* is what the written contract does not say, but without which core or clusterctl fail. *Unit* tests call \
functions; *wire* tests send requests to the simulated AWS through the AWS SDK; *simulations* run the controllers in \
virtual time; *packaging* tests check the release artifacts; *real parts* are the upstream programs as processes.
";

/// `docs/contributors/contract.md`: a line for each rule.
///
/// # Errors
/// When a source cannot be read.
pub fn summary(rules: &Rules) -> Result<String> {
    let tests = shown::in_sources()?;
    let mut text = SUMMARY_HEAD.to_owned();
    for group in &rules.groups {
        write!(text, "\n## {}\n\n| rule | | verdict | tests |\n| --- | --- | --- | --- |\n", group.name)?;
        for rule in &group.rules {
            let count = count(tests.iter().filter(|test| test.rules.contains(&rule.id)));
            let verdict = match &rule.absent {
                Some(absent) => format!("{}: {}", absent.verdict(), absent.reason()),
                None => "kept".to_owned(),
            };
            writeln!(text, "| {} | {} | {verdict} | {count} |", heading(rule), rule.text)?;
        }
    }
    Ok(text)
}

/// `out/contract.md`: for each rule, the code that keeps it and the tests that show it.
///
/// # Errors
/// When a source cannot be read.
pub fn full(rules: &Rules) -> Result<String> {
    let (places, tests) = (code::places()?, shown::in_sources()?);
    let mut text = FULL_HEAD.to_owned();
    for group in &rules.groups {
        write!(text, "\n## {}\n\n| rule | | code | shown by |\n| --- | --- | --- | --- |\n", group.name)?;
        for rule in &group.rules {
            let shown = match &rule.absent {
                Some(absent) => format!("{}: {}", absent.verdict(), absent.reason()),
                None => shown_by(tests.iter().filter(|test| test.rules.contains(&rule.id))),
            };
            let kept = kept_by(places.iter().filter(|place| place.ids.contains(&rule.id)));
            writeln!(text, "| {} | {} | {kept} | {shown} |", heading(rule), rule.text)?;
        }
    }
    Ok(text)
}

/// The number of tests, and how many of them `make test` does not run.
fn count<'a>(tests: impl Iterator<Item = &'a Test>) -> String {
    let (always, ignored): (Vec<_>, Vec<_>) = tests.partition(|test| test.runs == Runs::Always);
    let all = always.len() + ignored.len();
    if ignored.is_empty() {
        all.to_string()
    } else {
        format!("{all}, {} in the long form alone", ignored.len())
    }
}

fn heading(rule: &Rule) -> String {
    format!("{} {}", rule.id, rule.level.as_str().replace('*', "\\*"))
}

fn kept_by<'a>(places: impl Iterator<Item = &'a Place>) -> String {
    let mut by_path: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for place in places {
        by_path.entry(&place.path).or_default().insert(&place.item);
    }
    let lines = by_path.into_iter().map(|(path, items)| {
        let items: Vec<String> =
            items.into_iter().filter(|item| !item.is_empty()).map(|item| format!(" `{item}`")).collect();
        format!("[{path}](../{path}){}", items.join(","))
    });
    lines.collect::<Vec<_>>().join("<br>")
}

fn shown_by<'a>(tests: impl Iterator<Item = &'a Test>) -> String {
    let mut by_means: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for test in tests {
        let runs = match test.runs {
            Runs::Always => "",
            Runs::Long => " (long form)",
            Runs::OlderCore => " (long form, with an older core)",
        };
        let line = format!("[{}](../{}){runs}", test.name, test.path);
        by_means.entry(test.means).or_default().push(line);
    }
    let lines =
        by_means.into_iter().map(|(means, tests)| format!("{}: {}", means.as_str(), tests.join(", ")));
    lines.collect::<Vec<_>>().join("<br>")
}
