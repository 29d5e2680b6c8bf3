//! The terminations that were requested, and why AWS terminates other instances.

use std::collections::BTreeMap;

use capasg_cloud::TerminationCause;
use chrono::{DateTime, Utc};

use crate::machine_pool::model::Observed;

/// Terminations as this process requested them: annotations and the group may not show them yet.
#[derive(Debug, Clone, Default)]
pub struct Terminations {
    /// When the termination of an instance was annotated, shortly before the call.
    requested: BTreeMap<String, DateTime<Utc>>,
    /// When AWS accepted our call to terminate an instance.
    accepted: BTreeMap<String, DateTime<Utc>>,
    /// Why AWS terminates instances without our call.
    causes: BTreeMap<String, TerminationCause>,
}

impl Terminations {
    /// When this process requested the termination of an instance.
    #[must_use]
    pub fn requested_at(&self, id: &str) -> Option<DateTime<Utc>> {
        self.requested.get(id).copied()
    }

    /// When AWS accepted our call to terminate an instance.
    #[must_use]
    pub fn accepted_at(&self, id: &str) -> Option<DateTime<Utc>> {
        self.accepted.get(id).copied()
    }

    /// Why AWS terminates an instance without our call, once that was read.
    #[must_use]
    pub fn cause(&self, id: &str) -> Option<TerminationCause> {
        self.causes.get(id).copied()
    }

    /// Records the instances as they are observed now: others are forgotten.
    pub(super) fn observe(&mut self, observed: &Observed) {
        let known = |id: &String| observed.instances.contains_key(id);
        self.requested.retain(|id, _| known(id));
        self.accepted.retain(|id, _| known(id));
    }

    /// Records the causes that were read now.
    pub(super) fn learn(&mut self, causes: Vec<(String, TerminationCause)>, observed: &Observed) {
        self.causes.retain(|id, _| observed.instances.contains_key(id));
        self.causes.extend(causes);
    }

    /// Records that the annotation of a request was written.
    pub(super) fn annotated(&mut self, id: &str, at: DateTime<Utc>) {
        self.requested.insert(id.to_owned(), at);
    }

    /// Records that AWS accepted a call.
    pub(super) fn accept<'a>(&mut self, ids: impl Iterator<Item = &'a String>, now: DateTime<Utc>) {
        self.accepted.extend(ids.map(|id| (id.clone(), now)));
    }
}

#[cfg(test)]
impl Terminations {
    /// What was requested, for a test to set.
    pub fn requested_mut(&mut self) -> &mut BTreeMap<String, DateTime<Utc>> {
        &mut self.requested
    }

    /// What was accepted, for a test to set.
    pub fn accepted_mut(&mut self) -> &mut BTreeMap<String, DateTime<Utc>> {
        &mut self.accepted
    }
}
