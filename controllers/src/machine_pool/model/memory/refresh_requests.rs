//! The requests to start, cancel or roll back an instance refresh, which listings of AWS may not show yet, and when listings
//! first showed that one ended.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::RefreshesView;
use chrono::{DateTime, Utc};

/// What was last requested of instance refreshes, and what was rejected.
#[derive(Debug, Clone, Default)]
pub struct RefreshRequests {
    /// When AWS was last requested to start one.
    start: Option<DateTime<Utc>>,
    /// Whether the rollout that it was requested for is over, or was stopped.
    is_rollout_over: bool,
    /// When AWS was last requested to cancel one, or to roll it back.
    stop: Option<DateTime<Utc>>,
    /// The one that the status reports as stopped, until a request finds it in progress.
    announced: Option<String>,
    /// Those that were stopped: the status reports one of them, and none once its rollout is over.
    stopped: BTreeSet<String>,
    /// Those in progress by the last listing.
    in_progress: BTreeSet<String>,
    /// Those that a listing showed in progress: when the first listing that shows that they ended was requested.
    seen_ended: BTreeMap<String, DateTime<Utc>>,
    /// Whether AWS rejected to roll one back.
    rollback_rejected: bool,
    /// Whether AWS rejected the last change of what the group launches: an instance refresh may be in progress.
    launch_change_rejected: bool,
}

impl RefreshRequests {
    /// When AWS was last requested to start one.
    #[must_use]
    pub fn start_requested_at(&self) -> Option<DateTime<Utc>> {
        self.start
    }

    /// When AWS was last requested to start one; `None` if the rollout is over since, or was stopped.
    #[must_use]
    pub fn start_of_rollout(&self) -> Option<DateTime<Utc>> {
        self.start.filter(|_| !self.is_rollout_over)
    }

    /// When AWS was last requested to cancel one, or to roll it back.
    #[must_use]
    pub fn stop_requested_at(&self) -> Option<DateTime<Utc>> {
        self.stop
    }

    /// Whether the status reports one as stopped by this process, which has not stopped it: another actor ended it.
    #[must_use]
    pub fn is_only_announced(&self, id: &str) -> bool {
        self.announced.as_deref() == Some(id)
    }

    /// Whether this process stopped one.
    #[must_use]
    pub fn is_stopped(&self, id: &str) -> bool {
        self.stopped.contains(id)
    }

    /// Whether AWS rejected to roll one back.
    #[must_use]
    pub fn is_rollback_rejected(&self) -> bool {
        self.rollback_rejected
    }

    /// Whether AWS rejected the last change of what the group launches: an instance refresh may be in progress.
    #[must_use]
    pub fn is_launch_change_rejected(&self) -> bool {
        self.launch_change_rejected
    }

    /// When this process first saw that one ended, by the clock of the host, if it saw it in progress before.
    #[must_use]
    pub fn seen_ended_at(&self, id: &str) -> Option<DateTime<Utc>> {
        self.seen_ended.get(id).copied()
    }

    /// Records a listing.
    pub(super) fn observe(&mut self, view: &RefreshesView) {
        let ids = |finished: bool| {
            let such = view.refreshes.iter().filter(move |refresh| refresh.status.is_finished() == finished);
            such.map(|refresh| refresh.id.clone())
        };
        for id in ids(true).filter(|id| self.in_progress.contains(id)) {
            // A listing may be older than the one before.
            self.seen_ended.entry(id).or_insert(view.as_of);
        }
        let is_listed = |id: &String| view.refreshes.iter().any(|refresh| refresh.id == *id);
        self.seen_ended.retain(|id, _| is_listed(id));
        self.stopped.retain(is_listed);
        self.in_progress = ids(false).collect();
    }

    /// Records that a start is about to be requested: the instance refresh may have ended when the answer arrives.
    pub(super) fn request_start(&mut self, now: DateTime<Utc>) {
        (self.start, self.is_rollout_over) = (Some(now), false);
    }

    /// Records that a start was accepted.
    pub(super) fn accept_start(&mut self) {
        self.rollback_rejected = false;
    }

    /// Records that a start was rejected.
    pub(super) fn reject_start(&mut self) {
        self.start = None;
    }

    /// Records that the rollout is over, or stopped: what was requested before does not count for another one, or once a user
    /// continues it.
    pub(super) fn end_rollout(&mut self) {
        self.is_rollout_over = true;
    }

    /// Records that the status now reports this one as stopped.
    pub(super) fn announce_stop(&mut self, id: Option<String>) {
        self.announced = id;
    }

    /// Records that the status reports that this one continues: AWS did not receive the request to stop it.
    pub(super) fn withdraw_stop(&mut self, id: &str) {
        self.stopped.remove(id);
    }

    /// Records that a cancellation or rollback was requested, and whether it found one in progress: otherwise another
    /// actor ended it before.
    pub(super) fn request_stop(&mut self, now: DateTime<Utc>, is_found: bool) {
        self.stop = Some(now);
        self.stopped.extend(self.announced.take_if(|_| is_found));
    }

    /// Records that a rollback was rejected.
    pub(super) fn reject_rollback(&mut self) {
        self.rollback_rejected = true;
    }

    /// Records that a change of what the group launches was accepted.
    pub(super) fn accept_launch_change(&mut self) {
        self.launch_change_rejected = false;
    }

    /// Records that a change of what the group launches was rejected.
    pub(super) fn reject_launch_change(&mut self) {
        self.launch_change_rejected = true;
    }
}

#[cfg(test)]
impl RefreshRequests {
    /// When a start was requested, for a test to set.
    pub fn start_mut(&mut self) -> &mut Option<DateTime<Utc>> {
        &mut self.start
    }

    /// When a cancellation or rollback was requested, for a test to set.
    pub fn stop_mut(&mut self) -> &mut Option<DateTime<Utc>> {
        &mut self.stop
    }

    /// Whether a rollback was rejected, for a test to set.
    pub fn rollback_rejected_mut(&mut self) -> &mut bool {
        &mut self.rollback_rejected
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::TimeDelta;

    use super::*;
    use crate::machine_pool::decide::testing::refresh;

    #[test]
    fn a_stop_that_finds_none_in_progress_ended_none() {
        let now = DateTime::UNIX_EPOCH;
        let mut requests = RefreshRequests::default();
        requests.announce_stop(Some("r".to_owned()));
        requests.request_stop(now, false);
        assert!(
            requests.is_only_announced("r") && !requests.is_stopped("r"),
            "another actor ended it before"
        );
        requests.request_stop(now, true);
        assert!(!requests.is_only_announced("r") && requests.stop == Some(now));
        requests.announce_stop(Some("other".to_owned()));
        requests.request_start(now);
        assert!(requests.is_stopped("r"), "the status reports another one");
        requests.withdraw_stop("r");
        assert!(!requests.is_stopped("r"), "it continues");
    }

    #[test]
    fn an_older_listing_does_not_change_when_an_end_was_seen() {
        let begin = DateTime::UNIX_EPOCH;
        let mut requests = RefreshRequests::default();
        for (seconds, status) in [(0, "InProgress"), (10, "Failed"), (15, "InProgress"), (30, "Failed")] {
            let as_of = begin + TimeDelta::seconds(seconds);
            requests.observe(&RefreshesView { refreshes: Arc::new(vec![refresh(status)]), as_of });
        }
        assert_eq!(requests.seen_ended_at("r"), Some(begin + TimeDelta::seconds(10)));
        requests.observe(&RefreshesView { refreshes: Arc::default(), as_of: begin + TimeDelta::hours(1) });
        assert_eq!(requests.seen_ended_at("r"), None, "AWS lists it no more");
    }
}
