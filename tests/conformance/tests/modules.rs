//! Modules of a crate do not name items of each other in a circle.

use anyhow::{Result, ensure};
use capasg_conformance::modules;

#[test]
fn modules_lead_one_way() -> Result<()> {
    let targets = modules::targets()?;
    ensure!(!targets.is_empty(), "there are no crates");
    for target in &targets {
        let cycles = modules::graph(target)?.cycles_text();
        ensure!(cycles.is_empty(), "{cycles}");
    }
    Ok(())
}

#[test]
fn every_source_belongs_to_a_module() -> Result<()> {
    let undeclared = modules::undeclared()?;
    ensure!(undeclared.is_empty(), "no module declares\n{}", undeclared.join("\n"));
    Ok(())
}
