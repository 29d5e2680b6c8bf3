//! The pause of an object and its cause. It is checked before everything else, a deletion included (F1).

use std::collections::BTreeMap;

use super::Cluster;
use crate::names::annotations;

/// The causes for which an object is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseState {
    /// `spec.paused` of its Cluster.
    pub cluster: bool,
    /// Core's annotation on the object, whatever its value.
    pub annotation: bool,
    /// clusterctl's annotation on an object that was moved; it replaces all other annotations, so it counts as a pause (M3).
    pub delete_for_move: bool,
}

impl PauseState {
    /// Whether the object is paused.
    #[must_use]
    pub fn is_paused(self) -> bool {
        self.cluster || self.annotation || self.delete_for_move
    }
}

/// The pause of an object with these annotations in this Cluster, if the Cluster exists.
#[must_use]
pub fn pause_state(cluster: Option<&Cluster>, object_annotations: &BTreeMap<String, String>) -> PauseState {
    PauseState {
        cluster: cluster.is_some_and(Cluster::is_paused),
        annotation: object_annotations.contains_key(annotations::PAUSED),
        delete_for_move: object_annotations.contains_key(annotations::DELETE_FOR_MOVE),
    }
}
