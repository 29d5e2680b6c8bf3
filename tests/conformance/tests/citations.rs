//! What documents and comments refer to is in this repository.

use anyhow::{Result, ensure};
use capasg_conformance::citations;

#[test]
fn what_is_cited_exists() -> Result<()> {
    let broken = citations::broken()?;
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}
