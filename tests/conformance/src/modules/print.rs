//! The graph for people.

use std::fmt::Write as _;

use super::graph::{Graph, Place};

impl Graph {
    /// Each cycle: a shortest way round, then every edge of it with the places that make it. Empty without a cycle.
    #[must_use]
    pub fn cycles_text(&self) -> String {
        let mut text = String::new();
        for cycle in self.cycles() {
            let names = |modules: &[usize]| {
                modules.iter().map(|module| self.modules[*module].as_str()).collect::<Vec<_>>().join(" → ")
            };
            let shortest = self.shortest(&cycle);
            let round = [shortest.as_slice(), shortest.get(..1).unwrap_or_default()].concat();
            let _ = writeln!(text, "{}: a cycle of {} modules: {}", self.name, cycle.len(), names(&round));
            for ((from, to), places) in &self.edges {
                if cycle.contains(from) && cycle.contains(to) {
                    let _ = writeln!(text, "  {} → {}", self.modules[*from], self.modules[*to]);
                    text += &places_text(places);
                }
            }
        }
        text
    }

    /// The modules by how high they stand, highest first, each with those it names items of.
    #[must_use]
    pub fn tree(&self) -> String {
        let floors = self.floors();
        let mut text = String::new();
        for floor in (0..=floors.iter().max().copied().unwrap_or(0)).rev() {
            let _ = writeln!(text, "{floor}");
            let mut lines: Vec<String> = Vec::new();
            for (index, name) in self.modules.iter().enumerate().filter(|(index, _)| floors[*index] == floor)
            {
                let below = self.edges.keys().filter(|(from, _)| *from == index);
                let mut below: Vec<&str> = below.map(|(_, to)| self.modules[*to].as_str()).collect();
                below.sort_unstable();
                let arrow = if below.is_empty() { "" } else { " → " };
                lines.push(format!("  {name}{arrow}{}\n", below.join(", ")));
            }
            lines.sort();
            text += &lines.concat();
        }
        text
    }
}

/// So many places are enough to find the others.
const SHOWN: usize = 5;

fn places_text(places: &[Place]) -> String {
    let mut text = String::new();
    for place in places.iter().take(SHOWN) {
        let _ = writeln!(text, "    {}:{} {}", place.file, place.line, place.item);
    }
    if let Some(more) = places.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "    and {more} more");
    }
    text
}
