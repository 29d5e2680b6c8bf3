//! The right to write, as the rest of the process sees it: until when no other replica can have it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use capasg_cloud::WriteGuard;
use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// Shared by the election, which renews it, and by every write to the cloud, which checks it.
#[derive(Debug)]
pub struct Seat(Mutex<Term>);

#[derive(Debug, Clone, Copy)]
enum Term {
    /// Another replica may write.
    None,
    /// No other replica writes before this time.
    Until(Instant),
    /// There is no election: this replica may always write.
    Always,
}

impl Seat {
    /// A seat that an election has yet to win.
    #[must_use]
    pub fn vacant() -> Self {
        Self(Mutex::new(Term::None))
    }

    /// The seat of the only replica.
    #[must_use]
    pub fn always() -> Self {
        Self(Mutex::new(Term::Always))
    }

    /// Whether this replica may write now.
    #[must_use]
    pub fn is_held(&self) -> bool {
        match *self.term() {
            Term::None => false,
            Term::Until(end) => Instant::now() < end,
            Term::Always => true,
        }
    }

    pub(super) fn hold_until(&self, end: Instant) {
        *self.term() = Term::Until(end);
    }

    pub(super) fn leave(&self) {
        *self.term() = Term::None;
    }

    fn term(&self) -> MutexGuard<'_, Term> {
        // A `Term` is replaced as a whole: there is no half-written state behind a poisoned lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteGuard for Seat {
    fn deadline(&self) -> Option<DateTime<Utc>> {
        match *self.term() {
            Term::None => None,
            // Counted from now each time, so that a clock that is set does not lengthen the term.
            Term::Until(end) => {
                let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
                Some(Utc::now() + left)
            }
            Term::Always => Some(DateTime::<Utc>::MAX_UTC),
        }
    }
}
