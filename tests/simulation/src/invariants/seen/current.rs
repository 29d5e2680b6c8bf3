//! What was seen of the desired state that launch template versions hold.

use std::collections::BTreeMap;

/// What was seen of versions.
#[derive(Default)]
pub(crate) struct Seen {
    /// The desired state for which we made each version, by the template's id and the version's number; `None` if it holds
    /// another one.
    pub(crate) states: BTreeMap<(String, u64), Option<String>>,
}
