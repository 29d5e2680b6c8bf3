//! Modules and the edges between them.

use std::collections::BTreeMap;

/// Which module of a crate names items of which.
#[derive(Debug)]
pub struct Graph {
    /// The crate, as `cargo` names it.
    pub name: String,
    /// The paths of the modules from the root of the crate, which is `crate`.
    pub modules: Vec<String>,
    /// Where the first module names an item of the second, by their indexes.
    pub edges: BTreeMap<(usize, usize), Vec<Place>>,
}

/// A place that names an item of another module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From the root of the tree.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// As it is written there.
    pub item: String,
}
