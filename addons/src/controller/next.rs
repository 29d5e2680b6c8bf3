//! When an object is reconciled again.

use chrono::{DateTime, Utc};

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
