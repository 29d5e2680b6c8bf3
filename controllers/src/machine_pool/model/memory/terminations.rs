//! The terminations that were requested, and why AWS terminates other instances.

use std::collections::BTreeMap;

use capasg_cloud::TerminationCause;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::{Blocker, Observed};

/// Reads and caches show an instance within this time.
const UNSEEN: TimeDelta = TimeDelta::minutes(1);

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

    /// Records the instances as they are observed now: others are forgotten. An older read may not list one that was just
    /// launched, and a cache may not show its ASGMachine yet.
    pub(super) fn observe(&mut self, observed: &Observed, now: DateTime<Utc>) {
        let known =
            |id: &String, at: &DateTime<Utc>| now - *at < UNSEEN || observed.instances.contains_key(id);
        self.requested.retain(|id, at| known(id, at));
        self.accepted.retain(|id, at| known(id, at));
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

    /// Records which instances run outside their group: what AWS accepted has not terminated them, since another actor detached
    /// them.
    pub(super) fn observe_blocker(&mut self, blocker: Option<&Blocker>) {
        if let Some(Blocker::Detached { instances }) = blocker {
            self.accepted.retain(|id, _| !instances.contains(id));
        }
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

    /// The causes, for a test to set.
    pub fn causes_mut(&mut self) -> &mut BTreeMap<String, TerminationCause> {
        &mut self.causes
    }

    /// What was accepted, for a test to set.
    pub fn accepted_mut(&mut self) -> &mut BTreeMap<String, DateTime<Utc>> {
        &mut self.accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};

    #[test]
    fn a_read_that_does_not_list_an_instance_does_not_forget_its_termination() {
        let (stage, mut terminations) = (Stage::new(1), Terminations::default());
        terminations.annotated("i-9", now());
        terminations.observe(&stage.observed, now() + TimeDelta::seconds(59));
        assert_eq!(terminations.requested_at("i-9"), Some(now()));
        terminations.observe(&stage.observed, now() + TimeDelta::seconds(60));
        assert_eq!(terminations.requested_at("i-9"), None);
    }
}
