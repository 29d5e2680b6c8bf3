//! What was seen of bootstrap tokens in launch templates.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// What was seen of bootstrap tokens.
#[derive(Default)]
pub(crate) struct Seen {
    /// Until when the version that a pool's group launches from held the newest token, or could not be expected to.
    pub(crate) fresh: BTreeMap<String, DateTime<Utc>>,
    /// The version that was looked at last, with the token that was looked for, whether it was there, and whether the data
    /// differed by more.
    pub(crate) looked: BTreeMap<String, (String, u64, String, (bool, bool))>,
    /// When somebody else last had a group launch from another version.
    pub(crate) by_others: BTreeMap<String, DateTime<Utc>>,
}
