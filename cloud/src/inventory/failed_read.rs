//! How long a read that failed is not repeated, for the tables whose callers come with each reconcile.

use std::time::Duration;

use tokio::time::Instant;

use crate::{CloudError, inventory::cadence::Cadence};

/// How long a read that AWS rejects is not repeated at first.
const FIRST_REJECTION: Duration = Duration::from_secs(30);

/// A read that failed.
#[derive(Debug)]
pub(super) struct FailedRead {
    error: CloudError,
    /// How long the read is not repeated.
    kept: Duration,
    until: Instant,
}

impl FailedRead {
    /// A transient failure is kept for [`Cadence::negative`]. What a user has to change is not requested at each reconcile:
    /// the delay doubles while AWS rejects the read, up to [`Cadence::lookup`].
    pub(super) fn after(previous: Option<&Self>, error: CloudError, cadence: &Cadence, now: Instant) -> Self {
        let rejected = previous.filter(|failed| failed.error.class.is_permanent());
        let kept = if error.class.is_permanent() {
            rejected.map_or(FIRST_REJECTION, |before| before.kept.saturating_mul(2).min(cadence.lookup))
        } else {
            cadence.negative
        };
        Self { error, kept, until: now + kept }
    }

    /// Lets the reads of a table be repeated: AWS is reachable again.
    pub(super) fn expire<'a>(all: impl Iterator<Item = &'a mut Option<Self>>) {
        let now = Instant::now();
        all.flatten().for_each(|failed| failed.until = now);
    }

    pub(super) fn error(&self) -> &CloudError {
        &self.error
    }

    /// Whether the read is not to be repeated yet.
    pub(super) fn is_kept(&self, now: Instant) -> bool {
        now < self.until
    }
}
