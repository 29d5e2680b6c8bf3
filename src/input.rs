//! The text of a file that a user names, for commands that read objects.

use std::{
    fs,
    io::{Read as _, stdin},
    path::Path,
};

use anyhow::{Context as _, Result};

/// The text of a file; `-` is standard input.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn text(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        stdin().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
