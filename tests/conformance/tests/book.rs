//! The pages in `docs` are a book.

use anyhow::{Result, ensure};
use capasg_conformance::book;

#[test]
fn every_page_is_in_the_summary_and_short_enough() -> Result<()> {
    let problems = book::problems()?;
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}
