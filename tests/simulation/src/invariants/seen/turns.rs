//! Whose turn it is: several reconciles may be under way.

use std::collections::BTreeMap;

use capasg_controllers::ObjectKey;

use super::begun::Begun;

/// Whose turn it is, and what is known of the reconciles of other pools.
#[derive(Default)]
pub(crate) struct Turns {
    pub(crate) now: Option<ObjectKey>,
    pub(crate) others: BTreeMap<ObjectKey, Turn>,
}

/// What is known of a reconcile.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) begun: Begun,
    /// Whether its caches showed a pause.
    pub(crate) paused: Option<ObjectKey>,
}
