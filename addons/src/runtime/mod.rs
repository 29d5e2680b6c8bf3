//! Runs the controllers of both kinds: watches wake objects, and a queue reconciles each by at most one worker at a time.

mod backoff;
mod gauges;
mod index;
mod item;
mod known;
mod queue;
mod references;
mod run;
mod views;
mod watches;

pub use gauges::ReleaseGauges;
pub use index::ReleaseCounts;
pub use item::Item;
pub use queue::Limits;
pub use run::{Options, ReconcileObserver, run};
