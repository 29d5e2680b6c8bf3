//! Every weakness and pain has a test or a reason for none, and the document says so.

use std::fs;

use anyhow::{Result, ensure};
use capasg_conformance::{
    pains::{self, Pains},
    root,
};

#[test]
fn every_number_has_a_test_or_a_reason_for_none() -> Result<()> {
    let gaps = Pains::load()?.gaps()?;
    ensure!(gaps.is_empty(), "{}", gaps.join("\n"));
    Ok(())
}

#[test]
fn the_comparison_is_that_of_the_sources() -> Result<()> {
    let written = fs::read_to_string(root().join("docs/contributors/compared.md"))?;
    ensure!(
        written == pains::summary(&Pains::load()?)?,
        "docs/contributors/compared.md is not current: run `make generate`"
    );
    Ok(())
}
