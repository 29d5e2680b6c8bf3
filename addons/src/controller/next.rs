//! When an object is reconciled again.

use chrono::{DateTime, TimeDelta, Utc};

/// What no event announces, such as an API server that responds again, is tried again after this long.
pub(super) const RETRY: TimeDelta = TimeDelta::minutes(1);

/// When the object is reconciled again, unless it or its Cluster changes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once: a step was carried out.
    Now,
    /// At this time.
    At(DateTime<Utc>),
    /// After minutes, for changes of other actors.
    Later,
    /// Not at all.
    Never,
}
