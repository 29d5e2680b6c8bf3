//! What this replica remembers of the records of Clusters.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::{Cause, record::Record};
use crate::protocol::{ClusterKey, Hook};

/// A replica that did not answer a call for this long does not count the Cluster as blocked: core repeats a call after 15
/// seconds, and another replica may have answered that the hook no longer blocks.
const COUNTED: TimeDelta = TimeDelta::minutes(2);
/// The most Clusters that are remembered. One more takes the place of the one whose hook was called longest ago.
pub(super) const MOST: usize = 10_000;

/// What blocks a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentBlock {
    /// The Cluster.
    pub cluster: ClusterKey,
    /// The hook that blocks it.
    pub hook: Hook,
    /// Why.
    pub cause: Cause,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// The records of the Clusters whose hooks this replica answered. They are newer than their events for a moment, and
/// replace them while events cannot be read or written.
#[derive(Debug, Default)]
pub struct Blocks(Mutex<BTreeMap<ClusterKey, Record>>);

impl Blocks {
    /// Whether a record of the Cluster is remembered.
    #[must_use]
    pub fn is_known(&self, cluster: &ClusterKey) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(cluster)
    }

    /// The newer one of a record that was read and the one that is remembered.
    #[must_use]
    pub fn latest(&self, cluster: &ClusterKey, read: Option<Record>) -> Option<Record> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.into_iter().chain(known.get(cluster).cloned()).max_by_key(|record| record.last)
    }

    /// Remembers a record.
    pub fn remember(&self, cluster: ClusterKey, record: Record) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, other| other.is_remembered(record.last));
        if known.len() >= MOST
            && !known.contains_key(&cluster)
            && let Some(oldest) =
                known.iter().min_by_key(|(_, record)| record.last).map(|(cluster, _)| cluster.clone())
        {
            known.remove(&oldest);
        }
        known.insert(cluster, record);
    }

    /// How many are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// For each hook at which Clusters are blocked, their number and since when the first of them is.
    #[must_use]
    pub fn summary(&self, now: DateTime<Utc>) -> BTreeMap<Hook, (usize, DateTime<Utc>)> {
        let mut clusters: BTreeMap<(Hook, ClusterKey), DateTime<Utc>> = BTreeMap::new();
        for CurrentBlock { cluster, hook, since, .. } in self.current(now) {
            let first = clusters.entry((hook, cluster)).or_insert(since);
            *first = since.min(*first);
        }
        let mut blocked: BTreeMap<Hook, (usize, DateTime<Utc>)> = BTreeMap::new();
        for ((hook, _), since) in clusters {
            let (count, first) = blocked.entry(hook).or_insert((0, since));
            *count += 1;
            *first = since.min(*first);
        }
        blocked
    }

    /// What blocks Clusters now, each Cluster once for each cause.
    #[must_use]
    pub fn current(&self, now: DateTime<Utc>) -> Vec<CurrentBlock> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = known.iter().filter(|(_, record)| now - record.last < COUNTED);
        let blocks = counted.flat_map(|(cluster, record)| {
            record.blocks_of(record.hook).map(|(cause, block)| CurrentBlock {
                cluster: cluster.clone(),
                hook: record.hook,
                cause,
                since: block.since,
            })
        });
        blocks.collect()
    }
}
