//! What documents and comments refer to exists in this repository: links with their anchors, paths in backticks, and
//! documents that comments cite. Sections of documents are not cited by number, since numbers move.

mod comments;
mod links;
mod paths;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use anyhow::Result;

use crate::tree::{self, File};
use paths::{Paths, extension};

/// The kinds of files that are read, by the ends of their names.
const KINDS: [&str; 9] = ["md", "rs", "yaml", "toml", "patch", "go", "Makefile", "Dockerfile", "sh"];

/// References to what does not exist, by path and line.
///
/// # Errors
/// When a file cannot be read.
pub fn broken() -> Result<Vec<String>> {
    let paths = Paths::new(tree::paths()?);
    let mut broken = BTreeSet::new();
    for path in paths.all() {
        // What earlier releases wrote is kept as it was; and these tests cite what does not exist.
        let left_out = ["tests/fixtures/", "tests/conformance/src/citations/tests.rs"];
        let is_read = KINDS.iter().any(|kind| path.ends_with(kind));
        if is_read && !left_out.iter().any(|left_out| path.starts_with(left_out)) {
            broken.extend(in_file(&tree::read(path)?, &paths));
        }
    }
    Ok(broken.into_iter().map(|(path, line, what)| format!("{path}:{line}: {what}")).collect())
}

/// Path, line, and what is wrong there.
type Broken = (String, usize, String);

fn in_file(file: &File, paths: &Paths) -> Vec<Broken> {
    let mut found = Vec::new();
    let mut report = |line: usize, what: String| found.push((file.path.clone(), line, what));
    if extension(&file.path) == Some("md") {
        links::check(file, paths, &mut report);
    } else {
        comments::check(file, paths, &mut report);
    }
    found
}
