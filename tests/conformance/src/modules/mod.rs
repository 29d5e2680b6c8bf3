//! The graph of the modules inside each crate, and the cycles in it.
//!
//! An edge leads from a module to another whose item it names: in a `use`, in code, in a type, in a pattern, in an
//! attribute, in the arguments of a macro. A name that is re-exported leads to the module that defines the item. The
//! declaration of a child (`mod child;`) and the public re-export of a descendant's item are no edges. What is compiled
//! for tests alone does not count. Methods and fields are not seen, since only the compiler knows whose they are.

mod crates;
mod cycles;
mod graph;
mod names;
mod print;
mod scope;
mod source;
#[cfg(test)]
mod tests;
mod tokens;

pub use crates::{Target, targets};
pub use graph::{Graph, Place};
pub(crate) use source::{attributes, for_tests as only_for_tests};
pub(crate) use tokens::literals;

use std::collections::BTreeSet;

use anyhow::Result;

use crate::{root, tree};

/// The graph of a crate of the workspace.
///
/// # Errors
/// When a source cannot be read or parsed.
pub fn graph(target: &Target) -> Result<Graph> {
    Ok(names::graph(&source::load(target)?))
}

/// The files in the folders of crates that no module declares: the compiler never sees them.
///
/// # Errors
/// When a source cannot be read or parsed.
pub fn undeclared() -> Result<Vec<String>> {
    let (mut declared, mut folders) = (BTreeSet::new(), BTreeSet::new());
    for target in crates::with_tests()? {
        declared.extend(source::files(&target)?);
        let is_folder = target.source.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs");
        if let (true, Some(folder)) = (is_folder, target.source.parent()) {
            folders.insert(folder.strip_prefix(root())?.to_string_lossy().into_owned());
        }
    }
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let files = tree::files(&folders, "rs")?.into_iter().map(|file| file.path);
    Ok(files.filter(|path| !declared.contains(path)).collect::<BTreeSet<_>>().into_iter().collect())
}
