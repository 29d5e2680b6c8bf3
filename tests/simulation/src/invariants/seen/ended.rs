//! What was seen of drained instances that are to be terminated.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

/// What was seen of calls for terminations.
#[derive(Default)]
pub(crate) struct Seen {
    /// Instances that their groups began to terminate.
    pub(crate) ending: BTreeSet<String>,
    /// How the call for terminations under way failed: whether AWS rejected it.
    pub(crate) failed: Option<bool>,
    /// Since when each drained instance could have been terminated.
    pub(crate) since: BTreeMap<String, DateTime<Utc>>,
    /// How often AWS rejected each of them alone.
    pub(crate) rejected: BTreeMap<String, u32>,
    /// Instances that AWS rejected together with others.
    pub(crate) rejected_together: BTreeSet<String>,
}
