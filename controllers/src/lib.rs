//! Observe, decide, act and report for every pool and machine; knows ports, never an SDK.

pub mod backoff;
mod context;
mod key;
pub mod kubernetes;
pub mod machine_pool;
pub mod names;

pub use context::Context;
pub use key::ObjectKey;
