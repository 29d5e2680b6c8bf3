//! What tests of the contract's rules stand on: a namespace, a region, a cluster and a manager of their own.

mod look;
pub mod manifest;
mod rig;

pub use look::{condition, dynamic_list, node_names, text};
pub use manifest::Pool;
pub use rig::{CLUSTER, Control, DEADLINE, Rig, Setup, eventually, rule, shared_workload_api};
