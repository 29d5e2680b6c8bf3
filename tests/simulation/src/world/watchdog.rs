//! What the rules that hold after every action remember.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::pool::Pool;

/// For how long after a change of replicas an older wish may still be acted on.
const GRACE: TimeDelta = TimeDelta::seconds(5);

/// What was seen so far.
pub(super) struct Watchdog {
    pub(super) on: bool,
    /// Wishes for replicas by pool name, with the moment until which each is the newest.
    pub(super) wishes: BTreeMap<String, Vec<(DateTime<Utc>, i32)>>,
    pub(super) desired: BTreeMap<String, i64>,
    pub(super) seen_calls: u64,
    /// Instances that were ended by a call of ours, with whether desired shrank by it.
    pub(super) ended: BTreeMap<String, bool>,
    /// Objects that a person ended without a drain.
    pub(super) undrained: BTreeSet<String>,
}

impl Watchdog {
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            wishes: BTreeMap::new(),
            desired: BTreeMap::new(),
            seen_calls: 0,
            ended: BTreeMap::new(),
            undrained: BTreeSet::new(),
        }
    }

    pub(super) fn asked(&mut self, now: DateTime<Utc>, pool: &Pool, replicas: i32) {
        self.wishes.entry(pool.key.name.clone()).or_default().push((now, replicas));
    }

    /// A person deleted an object such that nobody drains.
    pub(super) fn undrained(&mut self, name: &str) {
        self.undrained.insert(name.to_owned());
    }

    /// The smallest number that may still be acted on.
    pub(super) fn least(&self, pool: &str, replicas: i32, now: DateTime<Utc>) -> i64 {
        let recent = self.wishes.get(pool).into_iter().flatten().filter(|(at, _)| now - *at <= GRACE);
        recent.map(|(_, wish)| *wish).chain([replicas]).min().map_or(0, i64::from)
    }
}
