//! Observe, decide, act and report for every pool and machine; knows ports, never an SDK.

pub mod backoff;
pub mod client;
mod context;
mod key;
pub mod kubernetes;
pub mod machine;
pub mod machine_pool;
pub mod names;
mod runtime;

pub use context::{Context, PoolObserver};
pub use key::ObjectKey;
pub use runtime::{Observers, Options, ReconcileObserver, run};
