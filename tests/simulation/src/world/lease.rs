//! The leader lease of the process that works: until when it may change the cloud.

use std::sync::{Mutex, PoisonError};

use capasg_cloud::WriteGuard;
use chrono::{DateTime, Utc};

/// The lease; held for ever unless somebody lets it run out.
#[derive(Debug, Default)]
pub(super) struct Lease(Mutex<Option<DateTime<Utc>>>);

impl Lease {
    /// It is not renewed any more: no write may be under way after this moment.
    pub(super) fn ends(&self, at: DateTime<Utc>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Another process has it.
    pub(super) fn renew(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl WriteGuard for Lease {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        let ends = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(ends.unwrap_or(DateTime::<Utc>::MAX_UTC))
    }
}
