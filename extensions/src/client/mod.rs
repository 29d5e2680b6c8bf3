//! The ports with the Kubernetes API.

mod addons;
mod events;
mod history;
mod rate;
mod reader;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use events::{KubeJournal, Publisher};
pub use history::history;
pub use reader::KubeReader;
