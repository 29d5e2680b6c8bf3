//! Whether this process may write: a write is sent only while it leads, and times out before the lease ends.

use chrono::{DateTime, Utc};

/// Decides whether this process may change the cloud.
pub trait WriteGuard: Send + Sync + 'static {
    /// By when a write that starts now must have finished; `None` if this process does not lead.
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
