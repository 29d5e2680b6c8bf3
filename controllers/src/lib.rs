//! Observe, decide, act and report for every pool and machine; knows ports, never an SDK.

pub mod access;
pub mod backoff;
pub mod client;
mod context;
pub mod identity;
mod key;
pub mod kubernetes;
pub mod machine;
pub mod machine_pool;
pub mod names;
pub mod observer;
mod runtime;

pub use context::Context;
pub use key::ObjectKey;
pub use observer::PoolObserver;
pub use runtime::{Observers, Options, ReconcileObserver, run};
