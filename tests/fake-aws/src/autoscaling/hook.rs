//! A lifecycle hook.

use std::collections::BTreeMap;

use crate::Tree;

/// A lifecycle hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) transition: String,
    /// Seconds.
    pub(crate) timeout: i64,
    pub(crate) default_result: String,
    /// Notification members, echoed.
    pub(super) rest: BTreeMap<String, Tree>,
}
