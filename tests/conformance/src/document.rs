//! `docs/contract.md`: for each rule, the code that keeps it and the tests that show it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::Result;

use crate::{
    code::{self, Place},
    rules::Rules,
    shown::{self, Test},
};

const HEAD: &str = "# Rules of the contract

What core Cluster API and clusterctl ask of a provider of machine pools, the code that keeps each rule, and the tests \
that show it. `make conformance` runs these tests, with `CORE=` on another version of core, and prints the result of \
each rule. This file is written by `make generate`.

Code is found by the ID in its comments, tests by the IDs that lead their names. MUST\\* is what the written contract \
does not say, but without which core or clusterctl fail. *Unit* tests call functions; *wire* tests speak to the \
simulated AWS through the real SDK; *simulations* run the controllers in virtual time; *packaging* looks at what is \
released; *real parts* are the upstream programs as processes ([testing](testing.md)).
";

/// The whole document.
///
/// # Errors
/// When a source cannot be read.
pub fn contract(rules: &Rules) -> Result<String> {
    let (places, tests) = (code::places()?, shown::in_sources()?);
    let mut text = HEAD.to_owned();
    for group in &rules.groups {
        write!(text, "\n## {}\n\n| rule | | code | shown by |\n| --- | --- | --- | --- |\n", group.name)?;
        for rule in &group.rules {
            let shown = match &rule.absent {
                Some(reason) => format!("not applicable: {reason}"),
                None => shown_by(tests.values().filter(|test| test.ids.contains(&rule.id))),
            };
            let kept = kept_by(places.iter().filter(|place| place.ids.contains(&rule.id)));
            writeln!(
                text,
                "| {} {} | {} | {kept} | {shown} |",
                rule.id,
                rule.level.as_str().replace('*', "\\*"),
                rule.text
            )?;
        }
    }
    Ok(text)
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
        let line = format!("[{}](../{})", test.name, test.path);
        by_means.entry(test.means).or_default().push(line);
    }
    let lines =
        by_means.into_iter().map(|(means, tests)| format!("{}: {}", means.as_str(), tests.join(", ")));
    lines.collect::<Vec<_>>().join("<br>")
}
