//! The shared rate limit of one identity and region: mirrors how AWS counts, so that we slow down before AWS throttles. Runs
//! on tokio's clock.
//!
//! Waiting calls go by priority, terminations first; every fifth call at the latest is the one that has waited longest, so
//! that none starves.

mod bucket;
mod limits;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use bucket::Bucket;
use limits::BucketKey;
pub use limits::{Limits, Rate};

use crate::Priority;

/// The buckets of one identity and region.
#[derive(Debug)]
pub struct Throttle {
    limits: Limits,
    buckets: Mutex<BTreeMap<BucketKey, Arc<Bucket>>>,
}

impl Throttle {
    /// Full buckets.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, buckets: Mutex::default() }
    }

    fn bucket(&self, api: &'static str) -> Arc<Bucket> {
        let key = BucketKey::of(api);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.entry(key).or_insert_with(|| Arc::new(Bucket::new(self.limits.rate(key)))).clone()
    }

    /// Waits until `api` may be called. Dropping the future gives the place in the queue up.
    pub async fn acquire(&self, api: &'static str, priority: Priority) {
        self.bucket(api).acquire(priority).await;
    }

    /// AWS throttled a call of `api`: halves the rate of its bucket for all calls; it recovers gradually.
    pub fn throttled(&self, api: &'static str) {
        self.bucket(api).throttled();
    }
}
