//! The leader lease of the process that works: until when it may change the cloud.

use std::sync::{Arc, Mutex, PoisonError};

use capasg_cloud::WriteGuard;
use chrono::{DateTime, Utc};

use crate::VirtualClock;

/// The lease; held unless somebody lets it run out.
#[derive(Debug)]
pub(super) struct Lease {
    ends: Mutex<Option<DateTime<Utc>>>,
    clock: Arc<VirtualClock>,
}

impl Lease {
    pub(super) fn new(clock: Arc<VirtualClock>) -> Self {
        Self { ends: Mutex::default(), clock }
    }

    /// It is not renewed any more: no write may be under way after this moment.
    pub(super) fn ends(&self, at: DateTime<Utc>) {
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Another process has it.
    pub(super) fn renew(&self) {
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl WriteGuard for Lease {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        let ends = *self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        // By the clock of its host, as the product counts it.
        Some(ends.map_or(DateTime::<Utc>::MAX_UTC, |at| at + self.clock.off()))
    }
}
