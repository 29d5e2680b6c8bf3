//! `ASGGuard`: what the pools of namespaces may use in AWS, as an operator says it.

mod changes;
mod rules;
mod spec;

pub use rules::{Guards, NODES_PROFILE, SizeLimit};
pub use spec::{ASGGuard, ASGGuardSpec, AdoptionRule, GuardLimits};
