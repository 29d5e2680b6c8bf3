//! What was seen of provider ID lists.

use std::collections::{BTreeMap, BTreeSet};

/// What was seen of the reports, by pool.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) lists: BTreeMap<String, Vec<String>>,
    pub(crate) ready: BTreeSet<String>,
    /// Instances that ever had an ASGMachine.
    pub(crate) claimed: BTreeSet<String>,
}

impl Seen {
    pub(crate) fn claimed(&mut self, instance: &str) {
        self.claimed.insert(instance.to_owned());
    }
}
