//! What was seen of stopped rollouts.

use std::collections::BTreeMap;

use capasg_controllers::ObjectKey;

/// The pools whose rollout was stopped, with what was to be rolled out then.
#[derive(Default)]
pub(crate) struct Seen(pub(crate) BTreeMap<ObjectKey, String>);

impl Seen {
    pub(crate) fn is_stopped(&self, pool: &ObjectKey) -> bool {
        self.0.contains_key(pool)
    }
}
