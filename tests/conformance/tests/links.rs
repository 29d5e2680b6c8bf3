//! What links rules, code, tests and the document is whole.

use std::fs;

use anyhow::{Result, ensure};
use capasg_conformance::{document, results, root, rules::Rules, shown};

#[test]
fn tests_and_comments_name_rules_that_exist() -> Result<()> {
    let wrong = results::broken_links(&Rules::load()?, &shown::in_sources()?)?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn the_document_is_that_of_the_sources() -> Result<()> {
    let written = fs::read_to_string(root().join("docs/contributors/contract.md"))?;
    ensure!(
        written == document::summary(&Rules::load()?)?,
        "docs/contributors/contract.md is not current: run `make generate`"
    );
    Ok(())
}

// Pains: P35
#[test]
fn every_rule_has_a_test_or_a_reason_for_none() -> Result<()> {
    let (rules, tests) = (Rules::load()?, shown::in_sources()?);
    for rule in rules.all() {
        let shown = tests.iter().any(|test| test.rules.contains(&rule.id));
        ensure!(shown != rule.absent.is_some(), "{}: it needs either tests or a reason", rule.id);
    }
    Ok(())
}
