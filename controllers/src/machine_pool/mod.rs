//! The pool controller: observe, decide, act, report. Only it writes to AWS.

pub mod act;
pub mod decide;
pub mod model;
pub mod observe;
mod reconcile;
pub mod report;
mod requeue;

pub use model::ReconcileError;
pub use model::memory::PoolMemory;
pub use reconcile::{forget, reconcile};
pub use requeue::Requeue;
