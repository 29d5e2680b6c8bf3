//! Pause: who asks for it. It is looked at before everything, deletion included (F1).

use std::collections::BTreeMap;

use super::Cluster;
use crate::names::annotations;

/// Why an object is left alone, if it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseState {
    /// `spec.paused` of its Cluster.
    pub cluster: bool,
    /// Core's annotation on the object, whatever its value.
    pub annotation: bool,
    /// clusterctl's annotation on an object that has moved; it replaces all others, so it counts as a pause (M3).
    pub delete_for_move: bool,
}

impl PauseState {
    /// Whether anything asks for a pause.
    #[must_use]
    pub fn is_paused(self) -> bool {
        self.cluster || self.annotation || self.delete_for_move
    }
}

/// Who asks for a pause of an object with these annotations in this Cluster, if the Cluster is there.
#[must_use]
pub fn pause_state(cluster: Option<&Cluster>, object_annotations: &BTreeMap<String, String>) -> PauseState {
    PauseState {
        cluster: cluster.is_some_and(Cluster::is_paused),
        annotation: object_annotations.contains_key(annotations::PAUSED),
        delete_for_move: object_annotations.contains_key(annotations::DELETE_FOR_MOVE),
    }
}
