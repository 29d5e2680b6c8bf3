//! What was seen of terminations.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use capasg_api::ASGMachinePool;
use chrono::{DateTime, Utc};

/// What was seen of ends.
#[derive(Default)]
pub(crate) struct Seen {
    /// Instances that a call of ours named to be ended.
    pub(crate) asked: BTreeSet<String>,
    /// Groups that we deleted by force.
    pub(crate) forced: BTreeSet<String>,
    /// When somebody else took our hook from a group, which lets go of what it held.
    pub(crate) unhooked: BTreeMap<String, DateTime<Utc>>,
    /// Until when our hook was on a group, or was not to be.
    pub(crate) hooked: BTreeMap<String, DateTime<Utc>>,
    /// Each pool as it was last, by name: what it says of drains holds when it is gone as well.
    pub(crate) last: BTreeMap<String, Arc<ASGMachinePool>>,
    /// Machines whose Node joined.
    pub(crate) joined: BTreeSet<String>,
}
