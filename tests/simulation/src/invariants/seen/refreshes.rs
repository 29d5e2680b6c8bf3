//! What was seen of instance refreshes.

use std::collections::{BTreeMap, BTreeSet};

use capasg_controllers::ObjectKey;
use chrono::{DateTime, Utc};

/// What was seen of refreshes.
#[derive(Default)]
pub(crate) struct Seen {
    /// Refreshes that we asked AWS to end.
    pub(crate) ended: BTreeSet<String>,
    /// When a start was sent that has not landed, and what was to be rolled out then, by group.
    pub(crate) sent: BTreeMap<String, (DateTime<Utc>, String)>,
    /// Refreshes that we started, with what was to be rolled out.
    pub(crate) ours: BTreeMap<String, String>,
    /// What is to be rolled out, and since when.
    pub(crate) since: BTreeMap<ObjectKey, (String, DateTime<Utc>)>,
    /// A refresh that is not wanted any more, since when that is known, and how many reconciles went well since.
    pub(crate) unwanted: BTreeMap<ObjectKey, (String, DateTime<Utc>, usize)>,
    /// The last status that was told.
    pub(crate) told: BTreeMap<String, &'static str>,
}
