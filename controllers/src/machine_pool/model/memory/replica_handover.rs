//! The hand-over of replicas between the MachinePool and what scales the group in AWS: caches may lag behind our
//! writes.

use chrono::{DateTime, Utc};

/// What was reported and written for the hand-over.
#[derive(Debug, Clone, Default)]
pub struct ReplicaHandover {
    /// Whether this process reported last that replicas are managed externally; `None` if it reported nothing yet, or got no
    /// answer.
    reported_external: Option<bool>,
    /// What this process wrote last to the MachinePool's replicas, and when.
    written: Option<(i32, DateTime<Utc>)>,
}

impl ReplicaHandover {
    /// Whether this process reported last that replicas are managed externally; `None` if it reported nothing yet, or got no
    /// answer.
    #[must_use]
    pub fn reported_external(&self) -> Option<bool> {
        self.reported_external
    }

    /// When this process wrote this number to the MachinePool's replicas, if it is the last that it wrote.
    #[must_use]
    pub fn written_at(&self, replicas: i32) -> Option<DateTime<Utc>> {
        self.written.filter(|(written, _)| *written == replicas).map(|(_, at)| at)
    }

    /// Records that the MachinePool's replicas were written.
    pub(super) fn write(&mut self, replicas: i32, now: DateTime<Utc>) {
        self.written = Some((replicas, now));
    }

    /// Records whether the status reports that replicas are managed externally.
    pub(super) fn report(&mut self, external: bool) {
        self.reported_external = Some(external);
    }

    /// Records that a report of this failed, or that its answer was lost: then the status itself shows what it is.
    pub(super) fn lose_report(&mut self, external: bool) {
        self.reported_external = self.reported_external.filter(|before| *before == external);
    }
}
