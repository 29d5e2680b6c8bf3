//! Since when the desired state is unchanged, and the rollout status that was last reported: the status in a cache may
//! be older than our report.

use capasg_api::{
    ASGMachinePool,
    pool::{RolloutStatus, RolloutWait},
    time::to_second,
};
use chrono::{DateTime, TimeDelta, Utc};

/// However long a rollout has waited for new instances when a new leader continues it, it waits at least this much
/// longer before it is stopped: without a leader, no ASGMachines were created for new instances.
const GRACE: TimeDelta = TimeDelta::minutes(5);

/// The rollout of a pool as this process knows it.
#[derive(Debug, Clone, Default)]
pub struct RolloutClock {
    /// What is rolled out, and since when this process has known it.
    desired: Option<(String, DateTime<Utc>)>,
    /// The rollout as the status reported it last.
    reported: Option<RolloutStatus>,
    /// Whether `reported` was taken over from the status that the previous leader wrote.
    taken_over: bool,
    /// The revision in the rollout-stopped annotation that this process wrote and has not read back yet.
    stopped: Option<String>,
    /// The resource version of the pool since that write.
    stopped_in: Option<String>,
    /// Whether AWS is unreachable, so that what is observed may be old.
    aws_unreachable: bool,
}

impl RolloutClock {
    /// Since when the desired state has had this identity; `None` if it has just changed.
    #[must_use]
    pub fn desired_since(&self, identity: Option<&String>) -> Option<DateTime<Utc>> {
        let known = self.desired.as_ref().filter(|(known, _)| Some(known) == identity);
        known.map(|(_, since)| *since)
    }

    /// The rollout as the status reported it last.
    #[must_use]
    pub fn reported(&self) -> Option<&RolloutStatus> {
        self.reported.as_ref()
    }

    /// The same, if it is for a revision.
    #[must_use]
    pub fn reported_for(&self, revision: Option<&String>) -> Option<&RolloutStatus> {
        self.reported().filter(|status| status.to_hash.as_ref() == revision)
    }

    /// The revision in the rollout-stopped annotation that was written and has not been read back yet.
    #[must_use]
    pub fn stopped(&self) -> Option<&String> {
        self.stopped.as_ref()
    }

    /// Whether AWS is unreachable, so that what is observed may be old.
    #[must_use]
    pub fn is_aws_unreachable(&self) -> bool {
        self.aws_unreachable
    }

    /// Records the identity of the desired state.
    pub(super) fn set_desired(&mut self, identity: &str, now: DateTime<Utc>) {
        if self.desired.as_ref().is_none_or(|(known, _)| known != identity) {
            self.desired = Some((identity.to_owned(), now));
        }
    }

    /// Continues the rollout as the previous leader reported it: until this process reports itself, since its first caches may
    /// be old.
    pub(super) fn take_over(&mut self, pool: &ASGMachinePool, now: DateTime<Utc>) {
        if self.taken_over {
            return;
        }
        self.reported = pool.status.as_ref().and_then(|status| status.rollout.clone());
        let deadline = pool.spec.rollout(1).progress_deadline;
        let latest = to_second(now - (deadline - GRACE).max(TimeDelta::zero()));
        // Only this wait has a deadline; since when a rollout waits for something else is reported as it was.
        let waiting = |rollout: &&mut RolloutStatus| rollout.waiting_for == Some(RolloutWait::NewInstances);
        let rollout = self.reported.as_mut().filter(waiting);
        if let Some(since) = rollout.and_then(|rollout| rollout.waiting_since.as_mut()) {
            *since = (*since).max(latest);
        }
    }

    /// Restarts the wait that the progress deadline limits, because time in which no progress was possible does not
    /// count.
    pub(super) fn restart_wait(&mut self) {
        if let Some(rollout) = &mut self.reported {
            rollout.waiting_since = None;
        }
    }

    /// Records whether AWS is unreachable. Time in which it was unreachable does not count.
    pub(super) fn set_aws_unreachable(&mut self, unreachable: bool) {
        if std::mem::replace(&mut self.aws_unreachable, unreachable) && !unreachable {
            self.restart_wait();
        }
    }

    /// Records that the rollout-stopped annotation was written, or removed.
    pub(super) fn annotated(&mut self, revision: Option<&String>, resource_version: Option<&str>) {
        self.stopped = revision.cloned();
        self.stopped_in = resource_version.map(str::to_owned);
    }

    /// Records that the pool was read with this resource version. If that is not older than our write, the annotation
    /// is as the pool has it: a user may have removed it since, before any read showed it.
    pub(super) fn show(&mut self, resource_version: Option<&str>) {
        if let (Some(read), Some(written)) = (resource_version, &self.stopped_in)
            && shows_write(read, written)
        {
            (self.stopped, self.stopped_in) = (None, None);
        }
    }

    /// Records the rollout-stopped annotation as the pool has it.
    pub(super) fn read_back(&mut self, stopped: Option<&String>) {
        self.stopped.take_if(|written| Some(&*written) == stopped);
    }

    /// Records that the status reports this rollout.
    pub(super) fn report(&mut self, rollout: Option<&RolloutStatus>) {
        self.reported = rollout.cloned();
        self.taken_over = true;
    }
}

/// Whether an object that was read with one resource version shows the write that led to another. They grow, and can be
/// compared as numbers (Kubernetes, "API concepts: Resource versions").
fn shows_write(read: &str, written: &str) -> bool {
    match (read.parse::<u64>(), written.parse::<u64>()) {
        (Ok(read), Ok(written)) => read >= written,
        _ => read == written,
    }
}

#[cfg(test)]
impl RolloutClock {
    /// What is rolled out and since when, for a test to set.
    pub fn desired_mut(&mut self) -> &mut Option<(String, DateTime<Utc>)> {
        &mut self.desired
    }

    /// What is reported, for a test to set.
    pub fn reported_mut(&mut self) -> &mut Option<RolloutStatus> {
        &mut self.reported
    }

    /// The annotation that is not read back, for a test to set.
    pub fn stopped_mut(&mut self) -> &mut Option<String> {
        &mut self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_removed_before_it_was_read_is_not_expected_for_ever() {
        let mut clock = RolloutClock::default();
        clock.annotated(Some(&"r".to_owned()), Some("99"));
        clock.show(Some("98"));
        assert!(clock.stopped().is_some(), "a cache that is behind");
        clock.show(Some("100"));
        assert!(clock.stopped().is_none(), "a user removed it meanwhile");
    }
}
