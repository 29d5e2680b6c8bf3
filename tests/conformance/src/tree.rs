//! Files of the source tree.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// The root of the source tree.
#[must_use]
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// A file of the tree: its path from the root, and its text.
#[derive(Debug)]
pub struct File {
    pub path: String,
    pub text: String,
}

/// The files below `folders` whose names end so, by their paths.
pub fn files(folders: &[&str], extension: &str) -> Result<Vec<File>> {
    let mut paths = Vec::new();
    for folder in folders {
        collect(&root().join(folder), extension, &mut paths)?;
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root())?.to_string_lossy().into_owned();
            Ok(File { path, text })
        })
        .collect()
}

/// The paths of all files of the tree, without what is built and without hidden folders but `.ci`.
pub fn paths() -> Result<Vec<String>> {
    let mut paths = Vec::new();
    list(root(), &mut paths)?;
    paths.sort();
    Ok(paths)
}

fn list(folder: &Path, paths: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let skipped = ["target", "out"].contains(&name.as_str()) || (name.starts_with('.') && name != ".ci");
        match (path.is_dir(), skipped) {
            (true, false) => list(&path, paths)?,
            (true, true) => {}
            (false, _) => paths.push(path.strip_prefix(root())?.to_string_lossy().into_owned()),
        }
    }
    Ok(())
}

/// The file of a path from the root.
pub fn read(path: &str) -> Result<File> {
    let text = fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))?;
    Ok(File { path: path.to_owned(), text })
}

fn collect(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, extension, paths)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    Ok(())
}
