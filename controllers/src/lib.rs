//! Observe, decide, act and report for every pool and machine; knows ports, never an SDK.

mod key;
pub mod kubernetes;
pub mod machine_pool;
pub mod names;

pub use key::ObjectKey;
