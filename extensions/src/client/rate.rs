//! How many events and records are written: bounds for each Cluster, and for all of them together.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::protocol::ClusterKey;

/// A rate of writes, with the most that are made at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) burst: f64,
    pub(super) per_second: f64,
}

/// Events of one Cluster. An upgrade causes about ten at each of its steps, which take many minutes; the API server keeps an
/// event for an hour. client-go limits the events of one object alike, to 25 and one more every 5 minutes.
const EVENTS: Rate = Rate { burst: 50.0, per_second: 1.0 / 60.0 };
/// Records and requests of one Cluster: they change objects that exist, and core calls one hook at a time.
const CHANGES: Rate = Rate { burst: 100.0, per_second: 1.0 };
/// All writes of this replica.
pub(super) const ALL: Rate = Rate { burst: 100.0, per_second: 20.0 };

/// Tokens that arrive at a rate.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: Rate,
    tokens: f64,
    refilled: Instant,
    /// Whether the last attempt found no token.
    is_empty: bool,
}

impl Bucket {
    pub(super) fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.burst, refilled: now, is_empty: false }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// If there is none: when the next one arrives, and whether the attempt before found one.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Empty> {
        self.refill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            self.is_empty = false;
            return Ok(());
        }
        let next = Duration::from_secs_f64((1.0 - self.tokens) / self.rate.per_second);
        Err(Empty { next, is_new: !std::mem::replace(&mut self.is_empty, true) })
    }

    fn refill(&mut self, now: Instant) {
        let arrived = now.duration_since(self.refilled).as_secs_f64() * self.rate.per_second;
        self.tokens = (self.tokens + arrived).min(self.rate.burst);
        self.refilled = now;
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.tokens >= self.rate.burst
    }
}

/// There is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Empty {
    /// When one arrives.
    pub(super) next: Duration,
    /// Whether there was one before.
    pub(super) is_new: bool,
}

/// The bounds of Clusters. Only Clusters that exist have any, and one that was not written for an hour has none.
#[derive(Debug, Default)]
pub(super) struct Clusters(HashMap<ClusterKey, (Bucket, Bucket)>);

impl Clusters {
    /// Takes a token for an event of a Cluster.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn event(&mut self, cluster: &ClusterKey, now: Instant) -> Result<(), Empty> {
        self.of(cluster, now).0.take(now)
    }

    /// Takes a token for a record or a request of a Cluster.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn change(&mut self, cluster: &ClusterKey, now: Instant) -> Result<(), Empty> {
        self.of(cluster, now).1.take(now)
    }

    fn of(&mut self, cluster: &ClusterKey, now: Instant) -> &mut (Bucket, Bucket) {
        self.0.retain(|_, (events, changes)| !(events.is_full(now) && changes.is_full(now)));
        let new = || (Bucket::new(EVENTS, now), Bucket::new(CHANGES, now));
        self.0.entry(cluster.clone()).or_insert_with(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str) -> ClusterKey {
        ClusterKey { namespace: "teams".into(), name: name.into(), uid: name.into() }
    }

    #[tokio::test]
    async fn the_events_of_one_cluster_are_bounded_and_others_have_theirs() {
        let (mut clusters, start) = (Clusters::default(), Instant::now());
        let written = (0..1000).filter(|_| clusters.event(&cluster("a"), start).is_ok()).count();
        assert_eq!(written, 50);
        assert!(clusters.event(&cluster("b"), start).is_ok());
        assert!(clusters.change(&cluster("a"), start).is_ok(), "its record is written");
        let empty = clusters.event(&cluster("a"), start).unwrap_err();
        assert_eq!(empty.next, Duration::from_mins(1));
        let hour = start + Duration::from_hours(1);
        let refused: Vec<bool> = (0..1000)
            .filter_map(|_| clusters.event(&cluster("a"), hour).err().map(|empty| empty.is_new))
            .collect();
        assert_eq!(refused.len(), 950);
        assert!(refused[0] && refused[1..].iter().all(|is_new| !is_new), "it is reported once");
        clusters.event(&cluster("c"), hour).unwrap();
        assert_eq!(clusters.0.len(), 2, "what is not needed is forgotten");
    }
}
