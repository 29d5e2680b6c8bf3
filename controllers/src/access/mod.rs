//! What a pool may use in AWS, as operators say it: its identity, with the credentials, and the guards of its namespace.
//! Resolved from caches before anything is observed.

mod aws_provider;
mod chain;
mod kept;
mod resolve;

use std::{collections::BTreeMap, sync::Arc};

use capasg_api::{ASGGuard, ASGIdentity, guard::Guards, identity::IdentityInUse};
use capasg_cloud::Identity;

pub use kept::AccessCache;
pub use resolve::{access, identity_of};

/// Why a pool may not use its identity, or which part of it is missing. It is the condition `CloudReachable`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One of [`capasg_api::reasons::cloud_reachable`].
    pub reason: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal for a reason, in words.
    #[must_use]
    pub fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message }
    }
}

/// What operators say about a namespace at one time.
#[derive(Debug, Clone)]
pub struct AccessSnapshot {
    /// The namespace.
    pub namespace: String,
    /// All identities.
    pub identities: Vec<Arc<ASGIdentity>>,
    /// All guards.
    pub guards: Vec<Arc<ASGGuard>>,
    /// The labels of the namespace; `None` if it does not exist.
    pub labels: Option<BTreeMap<String, String>>,
}

/// What a pool may use.
#[derive(Debug, Clone)]
pub struct Access {
    /// The identity, or why there is none.
    pub identity: Result<Arc<Identity>, Refusal>,
    /// The identity by name, and what determines it, for the status.
    pub in_use: Option<IdentityInUse>,
    /// The guards of the namespace.
    pub guards: Arc<Guards>,
}

impl Access {
    /// Everything that the credentials of this process may use, for tests of what builds on it.
    #[must_use]
    pub fn of_process() -> Self {
        Self { identity: Ok(Arc::new(Identity::process())), in_use: None, guards: Arc::default() }
    }
}
