//! Who may write: a mutation is sent only while this process leads, and its deadline ends before the lease.

use chrono::{DateTime, Utc};

/// Tells whether this process may change the cloud.
pub trait WriteGuard: Send + Sync + 'static {
    /// The moment by which a write that starts now must have ended; `None` if this process does not lead.
    fn deadline(&self) -> Option<DateTime<Utc>>;
}

/// Always leads: for a single process without leader election, and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysLeading;

impl WriteGuard for AlwaysLeading {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        Some(DateTime::<Utc>::MAX_UTC)
    }
}
