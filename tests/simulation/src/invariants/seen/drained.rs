//! What was seen of terminations.

use std::collections::BTreeSet;

/// What was seen of ends.
#[derive(Default)]
pub(crate) struct Seen {
    /// Instances that a call of ours named to be ended.
    pub(crate) asked: BTreeSet<String>,
    /// Groups that we deleted by force.
    pub(crate) forced: BTreeSet<String>,
    /// Groups from which somebody else took our hook, which lets go of what it held.
    pub(crate) unhooked: BTreeSet<String>,
}
