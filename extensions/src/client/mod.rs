//! The ports with the Kubernetes API.

mod events;
mod reader;

pub use events::{KubeJournal, Publisher};
pub use reader::KubeReader;
