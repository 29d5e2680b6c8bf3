//! What a path means in a module: another module, or an item and the module that defines it.

use std::{cell::RefCell, collections::HashSet};

use super::source::{Crate, Kind};

/// What a name stands for. A name may be several at once: a module and a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Module(usize),
    /// An item of this module, or something inside of one: a variant, an associated function.
    ItemOf(usize),
}

/// Looks names up in a crate.
pub struct Scope<'a> {
    pub krate: &'a Crate,
    /// The globs through which a name was found: module, and index among its imports.
    pub used_globs: RefCell<HashSet<(usize, usize)>>,
}

impl<'a> Scope<'a> {
    pub fn new(krate: &'a Crate) -> Self {
        Self { krate, used_globs: RefCell::new(HashSet::new()) }
    }

    /// What a path means in a module; nothing, if it leads outside of the crate.
    pub fn resolve(&self, module: usize, path: &[String]) -> Vec<Meaning> {
        self.walk(module, path, &mut HashSet::new())
    }

    /// What a path means that begins with something known.
    pub fn resolve_from(&self, start: Vec<Meaning>, rest: &[String]) -> Vec<Meaning> {
        self.follow(start, rest, &mut HashSet::new())
    }

    /// The module among the parents that defines a macro without its being imported.
    pub fn macro_by_order(&self, module: usize, name: &str) -> Option<usize> {
        let parents = std::iter::successors(Some(module), |index| self.krate.modules[*index].parent);
        parents.into_iter().find(|index| self.krate.modules[*index].items.get(name) == Some(&Kind::Macro))
    }

    fn walk(&self, module: usize, path: &[String], seen: &mut HashSet<(usize, String)>) -> Vec<Meaning> {
        let Some((first, mut rest)) = path.split_first() else { return Vec::new() };
        let parent = |index: usize| self.krate.modules[index].parent;
        let mut relative = match first.as_str() {
            "crate" => Some(0),
            "self" => Some(module),
            "super" => parent(module),
            name => return self.follow(self.look_up(module, name, seen), rest, seen),
        };
        while let (Some(index), Some((next, others))) = (relative, rest.split_first())
            && next == "super"
        {
            (relative, rest) = (parent(index), others);
        }
        self.follow(relative.map(Meaning::Module).into_iter().collect(), rest, seen)
    }

    fn follow(
        &self,
        start: Vec<Meaning>,
        rest: &[String],
        seen: &mut HashSet<(usize, String)>,
    ) -> Vec<Meaning> {
        let mut at = start;
        for name in rest {
            let found: Vec<Meaning> = at
                .iter()
                .flat_map(|meaning| match meaning {
                    Meaning::Module(module) => self.look_up(*module, name, seen),
                    Meaning::ItemOf(_) => Vec::new(),
                })
                .collect();
            at = if found.is_empty() {
                // Something inside of an item, or an item that a macro makes.
                let item = at.iter().find(|meaning| matches!(meaning, Meaning::ItemOf(_)));
                let module = item.or(at.first()).map(|meaning| match meaning {
                    Meaning::Module(module) | Meaning::ItemOf(module) => Meaning::ItemOf(*module),
                });
                module.into_iter().collect()
            } else {
                found
            };
        }
        at
    }

    /// What a name means in a module: what it defines goes before what it imports, and that before globs.
    fn look_up(&self, index: usize, name: &str, seen: &mut HashSet<(usize, String)>) -> Vec<Meaning> {
        let module = &self.krate.modules[index];
        let mut found: Vec<Meaning> = Vec::new();
        found.extend(module.children.get(name).map(|child| Meaning::Module(*child)));
        found.extend(module.items.get(name).map(|_| Meaning::ItemOf(index)));
        if !seen.insert((index, name.to_owned())) {
            return found;
        }
        for import in module.imports.iter().filter(|import| !import.glob && import.name == name) {
            found.extend(self.walk(index, &import.path, seen));
        }
        if found.is_empty() {
            let globs = module.imports.iter().enumerate().filter(|(_, import)| import.glob);
            for (number, import) in globs {
                for target in self.walk(index, &import.path, seen) {
                    let Meaning::Module(target) = target else { continue };
                    let through = self.look_up(target, name, seen);
                    if !through.is_empty() {
                        self.used_globs.borrow_mut().insert((index, number));
                    }
                    found.extend(through);
                }
            }
        }
        seen.remove(&(index, name.to_owned()));
        found.dedup();
        found
    }
}
