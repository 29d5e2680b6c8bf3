//! The pages on conditions and events are those of the sources, and problems have remedies.

use std::fs;

use anyhow::{Result, ensure};
use capasg_conformance::{reasons, root};

#[test]
fn the_pages_are_those_of_the_sources() -> Result<()> {
    for (page, text) in [
        ("docs/reference/conditions.md", reasons::conditions()?),
        ("docs/reference/kubernetes-events.md", reasons::events()?),
    ] {
        ensure!(fs::read_to_string(root().join(page))? == text, "{page} is not current: run `make generate`");
    }
    Ok(())
}

#[test]
fn every_problem_has_a_remedy() -> Result<()> {
    let missing = reasons::without_remedy()?;
    ensure!(missing.is_empty(), "no remedy in api/src/reasons.rs: {}", missing.join(", "));
    Ok(())
}
