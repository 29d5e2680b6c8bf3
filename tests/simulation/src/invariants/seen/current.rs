//! What was seen of the desired state that launch template versions hold.

use std::collections::BTreeMap;

/// What was seen of versions.
#[derive(Default)]
pub(crate) struct Seen {
    /// The desired state for which each version was requested, by the template's id and its description; `None` if it holds
    /// another one.
    pub(crate) states: BTreeMap<(String, String), Option<String>>,
}
