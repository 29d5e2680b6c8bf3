//! Modules that lead back to themselves, and how high above the lowest each module stands.

use std::collections::BTreeSet;

use super::graph::Graph;

impl Graph {
    /// The modules that a module names items of.
    fn below(&self, module: usize) -> impl Iterator<Item = usize> {
        self.edges.range((module, 0)..=(module, usize::MAX)).map(|((_, to), _)| *to)
    }

    /// The groups of modules that can reach each other, lowest first, so that a group comes after all it leads to.
    pub(super) fn components(&self) -> Vec<Vec<usize>> {
        let none = vec![None; self.modules.len()];
        let mut search = Search {
            graph: self,
            order: none.clone(),
            low: none,
            open: Vec::new(),
            found: Vec::new(),
            next: 0,
        };
        for module in 0..self.modules.len() {
            if search.order[module].is_none() {
                search.visit(module);
            }
        }
        search.found
    }

    /// The groups of two modules or more that can reach each other.
    #[must_use]
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let mut cycles: Vec<_> = self.components().into_iter().filter(|group| group.len() > 1).collect();
        cycles.sort();
        cycles
    }

    /// A shortest way from a module back to itself.
    #[must_use]
    pub fn shortest(&self, cycle: &[usize]) -> Vec<usize> {
        let ways = cycle.iter().filter_map(|start| self.way_back(*start, cycle));
        ways.min_by_key(Vec::len).unwrap_or_default()
    }

    fn way_back(&self, start: usize, within: &[usize]) -> Option<Vec<usize>> {
        let mut ways: Vec<Vec<usize>> = vec![vec![start]];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                for next in way.last().map(|last| self.below(*last)).into_iter().flatten() {
                    if next == start {
                        return Some(way);
                    }
                    if within.contains(&next) && seen.insert(next) {
                        longer.push([way.as_slice(), &[next]].concat());
                    }
                }
            }
            ways = longer;
        }
        None
    }

    /// How many edges lead down from each module at most; those of a cycle count as one.
    pub(super) fn floors(&self) -> Vec<usize> {
        let mut floors = vec![0; self.modules.len()];
        for group in self.components() {
            let below = group.iter().flat_map(|module| self.below(*module));
            let floor = below.filter(|to| !group.contains(to)).map(|to| floors[to] + 1).max().unwrap_or(0);
            for module in group {
                floors[module] = floor;
            }
        }
        floors
    }
}

/// Tarjan's search for groups that can reach each other.
struct Search<'a> {
    graph: &'a Graph,
    /// When each module was reached.
    order: Vec<Option<usize>>,
    /// The earliest that it leads back to.
    low: Vec<Option<usize>>,
    open: Vec<usize>,
    found: Vec<Vec<usize>>,
    next: usize,
}

impl Search<'_> {
    fn visit(&mut self, module: usize) {
        self.order[module] = Some(self.next);
        self.low[module] = Some(self.next);
        self.next += 1;
        self.open.push(module);
        let graph = self.graph;
        for to in graph.below(module) {
            if self.order[to].is_none() {
                self.visit(to);
                self.low[module] = self.low[module].min(self.low[to]);
            } else if self.open.contains(&to) {
                self.low[module] = self.low[module].min(self.order[to]);
            }
        }
        if self.low[module] == self.order[module]
            && let Some(start) = self.open.iter().position(|open| *open == module)
        {
            let mut group = self.open.split_off(start);
            group.sort_unstable();
            self.found.push(group);
        }
    }
}
