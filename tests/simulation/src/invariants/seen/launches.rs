//! What was seen of launches that fail.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// What was seen of launches that fail.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// When the activities were last looked at.
    pub(crate) looked: DateTime<Utc>,
    /// Since when launches of a pool fail and its status says nothing of it, by its name.
    pub(crate) unreported: BTreeMap<String, DateTime<Utc>>,
}
