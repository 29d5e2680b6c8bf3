//! The one source of the time of day, so that tests can run in virtual time. Intervals and timeouts follow tokio's clock
//! instead, which is monotonic: the time of day may be set.

use chrono::{DateTime, Utc};

/// Gives the time of day; passed in wherever a rule depends on it.
pub trait Clock: Send + Sync + 'static {
    /// The current time of day.
    fn now(&self) -> DateTime<Utc>;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}
