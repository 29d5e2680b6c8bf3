//! What is kept about identities.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    policy::{Policy, Request},
    role::Role,
    session::Session,
};

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
    /// Of users and roles, by ARN; who has none may do everything.
    pub(crate) policies: BTreeMap<String, Arc<[Policy]>>,
    /// What was asked of the policies of each of them, once a test wants to know.
    pub(crate) asked: Option<BTreeMap<String, BTreeSet<Request>>>,
    /// ARNs of roles, by account and instance profile.
    pub(crate) profiles: BTreeMap<(String, String), String>,
    /// The service-linked roles that exist, by account and service.
    pub(crate) service_linked: BTreeSet<(String, String)>,
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
