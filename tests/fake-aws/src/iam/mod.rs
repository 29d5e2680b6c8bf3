//! Who may call: roles, access keys and the sessions that STS gives, over all accounts.

mod assume;
mod caller;
mod pod_identity;
mod principal;
mod role;
mod session;
mod sessions;
mod web_identity;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use assume::{Asked, assume_role, bearer, caller_identity, with_web_identity};
pub(crate) use pod_identity::credentials as pod_credentials;
pub(crate) use principal::Caller;
pub(crate) use role::parts as role_parts;
pub use role::{Role, WebIdentity};
use session::Session;
pub use session::{Credentials, SessionDump};

/// Everything that is kept about identities.
#[derive(Debug, Default)]
pub(crate) struct Iam {
    /// By ARN.
    pub(crate) roles: BTreeMap<String, Role>,
    /// Roles that were not declared can be assumed by anybody.
    pub(crate) any_role: bool,
    /// ARNs of users, by access key.
    pub(crate) users: BTreeMap<String, String>,
    /// Access keys that exist no more.
    pub(crate) deleted: BTreeSet<String>,
    /// By access key.
    pub(crate) sessions: BTreeMap<String, Session>,
    /// Roles by `system:serviceaccount:<namespace>:<name>`, as EKS Pod Identity associates them.
    pub(crate) associations: BTreeMap<String, String>,
    /// Sessions given so far.
    pub(crate) issued: u64,
}

impl Iam {
    /// Forgets what was declared; sessions that somebody holds go on.
    pub(crate) fn reset(&mut self) {
        let (sessions, issued) = (std::mem::take(&mut self.sessions), self.issued);
        *self = Self { sessions, issued, ..Self::default() };
    }
}
