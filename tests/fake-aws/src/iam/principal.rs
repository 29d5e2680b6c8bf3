//! A caller, once its credentials were found valid.

use std::collections::{BTreeMap, BTreeSet};

use super::Policy;

/// A caller whose credentials are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The ARN of a user, or of the session of a role.
    pub(crate) arn: String,
    pub(crate) account: String,
    /// The unique id of the principal.
    pub(crate) id: String,
    /// The role's ARN, if it is a session of one.
    pub(crate) role: Option<String>,
    pub(crate) is_revoked: bool,
    /// The session tags.
    pub(crate) tags: BTreeMap<String, String>,
    /// The keys of those that further sessions inherit.
    pub(crate) transitive: BTreeSet<String>,
    /// What is left of the permissions of the role.
    pub(crate) session_policy: Option<Policy>,
}
