//! The events that were published, so that none is repeated for what has not changed.

use chrono::{DateTime, TimeDelta, Utc};

/// The same drift, if it is corrected repeatedly, is published this often.
const SAME_DRIFT: TimeDelta = TimeDelta::hours(1);
/// For an attribute with another value each time, this many events are published within that time.
const OTHER_VALUES: usize = 3;

/// What events were last published about.
#[derive(Debug, Clone, Default)]
pub struct PublishedEvents {
    /// The blocker.
    blocker: Option<String>,
    /// Whether the adoption of the group was published: the pool's record of it may lag.
    adoption: bool,
    /// Whether a rollout was in progress; the pool's status reports it as well, but may lag.
    rolling_out: Option<bool>,
    /// The reason of `NodesReady`; the pool's status reports it as well, but may lag.
    nodes: Option<&'static str>,
    /// Why AWS rejected to describe the instance types.
    instance_types: Option<String>,
    /// Drift that was corrected, and when.
    drift: Vec<(Drift, DateTime<Utc>)>,
}

/// Drift as an event describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The paths of what changed.
    pub paths: String,
    /// The event's message.
    pub message: String,
}

impl PublishedEvents {
    /// Whether no event was published for this blocker.
    #[must_use]
    pub fn is_new_blocker(&self, blocker: Option<&String>) -> bool {
        self.blocker.as_ref() != blocker
    }

    /// Whether the adoption of the group was published.
    #[must_use]
    pub fn has_adoption(&self) -> bool {
        self.adoption
    }

    /// Whether a rollout was in progress by the last event; `None` if this process published none.
    #[must_use]
    pub fn rolling_out(&self) -> Option<bool> {
        self.rolling_out
    }

    /// The reason of `NodesReady` that was last reported; `None` if this process reported none.
    #[must_use]
    pub fn nodes(&self) -> Option<&'static str> {
        self.nodes
    }

    /// Whether no event was published for this rejection of `DescribeInstanceTypes`.
    #[must_use]
    pub fn is_new_instance_types(&self, message: Option<&String>) -> bool {
        self.instance_types.as_ref() != message
    }

    /// Whether an event is due for corrected drift.
    #[must_use]
    pub fn is_new_drift(&self, drift: &Drift, now: DateTime<Utc>) -> bool {
        let recent = self.drift.iter().filter(|(_, at)| now - *at < SAME_DRIFT);
        let same_paths = recent.filter(|(before, _)| before.paths == drift.paths);
        same_paths.clone().all(|(before, _)| before != drift) && same_paths.count() < OTHER_VALUES
    }

    /// Records that a blocker was published, or that there is none any more.
    pub(super) fn set_blocker(&mut self, blocker: Option<String>) {
        self.blocker = blocker;
    }

    /// Records that the adoption of the group was published.
    pub(super) fn add_adoption(&mut self) {
        self.adoption = true;
    }

    /// Records whether a rollout is in progress.
    pub(super) fn set_rolling_out(&mut self, rolling_out: bool) {
        self.rolling_out = Some(rolling_out);
    }

    /// Records the reason of `NodesReady`.
    pub(super) fn set_nodes(&mut self, reason: &'static str) {
        self.nodes = Some(reason);
    }

    /// Records that a rejection of `DescribeInstanceTypes` was published, or that it is accepted again.
    pub(super) fn set_instance_types(&mut self, message: Option<String>) {
        self.instance_types = message;
    }

    /// Records that corrected drift was published.
    pub(super) fn add_drift(&mut self, drift: Drift, now: DateTime<Utc>) {
        self.drift.retain(|(_, at)| now - *at < SAME_DRIFT);
        self.drift.push((drift, now));
    }
}
