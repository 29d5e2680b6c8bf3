//! What was seen of calls that AWS denies, or fails by itself.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// The operations that failed since the last success of each.
pub(crate) type Seen = BTreeMap<&'static str, Failing>;

/// The failures of an operation.
#[derive(Debug)]
pub(crate) struct Failing {
    /// AWS's code for the last one.
    pub(crate) code: String,
    /// Whether AWS denied the last one.
    pub(crate) denied: bool,
    /// Until when the last one is repeated, if the call is still needed.
    pub(crate) repeated_by: DateTime<Utc>,
    /// Since when no condition says so.
    pub(crate) unreported: Option<DateTime<Utc>>,
}
