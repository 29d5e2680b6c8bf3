//! What tests of the contract's rules stand on: a namespace, a region, a cluster and a manager of their own.
//!
//! A test asks things of its [`Rig`]; what it can ask is in one module for each topic.

mod addons;
mod audit;
mod autoscaling;
mod caaph;
mod cloud;
mod events;
mod extension;
mod kills;
mod look;
mod managers;
pub mod manifest;
mod moves;
mod objects;
mod on_aws;
mod on_stub;
mod operators;
mod patience;
mod pools;
mod rig;
mod secrecy;
mod service;
mod setup;
pub mod target;
mod topology;

pub use addons::{Addons, Charts, DEMO, MAP, add_ons};
pub use autoscaling::{Autoscaler, NodeShape};
pub use caaph::Caaph;
pub use extension::Extension;
pub use kills::{KILLS, Random, SEED, seed};
pub use look::{condition, condition_of, dynamic_list, node_names, text};
pub use manifest::Pool;
pub use on_aws::{CLASS_ON_AWS, NODE_SECURITY_GROUPS, PRIVATE_SUBNET};
pub use on_stub::{TopologyOnStub, Versions};
pub use patience::{DEADLINE, eventually};
pub use rig::{Rig, rule, shared_workload_api};
pub use service::{COMPLETE, END, Service, ends_of, first_call};
pub use setup::{CLUSTER, Control, Setup};
pub use topology::{CLASS, TOPOLOGY, Topology, TopologyPool, applied_by_topology};
