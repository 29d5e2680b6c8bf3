//! Modules of a crate do not name items of each other in a circle.

use anyhow::{Result, ensure};
use capasg_conformance::modules;

/// The crates that have no cycle. One that becomes so is added; none is taken out.
const ACYCLIC: [&str; 10] = [
    "capasg",
    "capasg-api",
    "capasg-cloud",
    "capasg-cloud-aws",
    "capasg-conformance",
    "capasg-controllers",
    "capasg-e2e",
    "capasg-environment",
    "capasg-fake-aws",
    "capasg-simulation",
    "capasg-test-objects",
];

#[test]
fn modules_lead_one_way() -> Result<()> {
    let targets = modules::targets()?;
    for name in ACYCLIC {
        let mut crates = targets.iter().filter(|target| target.package == name).peekable();
        ensure!(crates.peek().is_some(), "there is no package {name}");
        for target in crates {
            let cycles = modules::graph(target)?.cycles_text();
            ensure!(cycles.is_empty(), "{cycles}");
        }
    }
    Ok(())
}

#[test]
fn every_source_belongs_to_a_module() -> Result<()> {
    let undeclared = modules::undeclared()?;
    ensure!(undeclared.is_empty(), "no module declares\n{}", undeclared.join("\n"));
    Ok(())
}
