//! Differences between a group and its desired state.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine_pool::model::call_kind::CallKind;

/// An attribute of the group that is not as desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its path in the spec, or its name if the spec does not have it.
    pub path: String,
    /// What AWS has.
    pub seen: String,
    /// What is desired.
    pub wanted: String,
    /// The kinds of call that correct it.
    pub calls: BTreeSet<CallKind>,
    /// Whether another actor changed it: it was as desired before.
    pub is_drift: bool,
}

/// The result of comparing a group with its desired state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What is not as desired.
    pub differences: Vec<Difference>,
    /// What is as desired: the value by path.
    pub agreed: BTreeMap<String, String>,
}
