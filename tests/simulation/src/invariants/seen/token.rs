//! What was seen of bootstrap tokens in launch templates.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// What was seen of bootstrap tokens.
#[derive(Default)]
pub(crate) struct Seen {
    /// Until when the version that a pool's group launches from held the newest token, or could not be expected to.
    pub(crate) fresh: BTreeMap<String, DateTime<Utc>>,
    /// The version that was looked at last, with the token that was looked for and whether it was there.
    pub(crate) looked: BTreeMap<String, (String, u64, String, bool)>,
    /// The version that somebody else had a group launch from last.
    pub(crate) by_others: BTreeMap<String, DateTime<Utc>>,
}
