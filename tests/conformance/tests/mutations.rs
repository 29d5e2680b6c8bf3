//! Each mutation patch applies to this tree without fuzz: one whose surroundings changed may plant another mistake.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use capasg_conformance::root;

#[test]
fn every_mutation_patch_applies_without_fuzz() -> Result<()> {
    let script = root().join("scripts/mutations");
    let output = Command::new(script).arg("--check").output().context("cannot start scripts/mutations")?;
    let reasons = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{reasons}{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
