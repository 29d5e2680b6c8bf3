//! What access to AWS is resolved from: the part of the port that a process without the caches of the controllers provides, too.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use capasg_api::{ASGGuard, ASGIdentity};
use capasg_cloud::SecretText;
use serde_json::Value;

use super::error::Result;
use crate::ObjectKey;

/// An access key as its Secret holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Key `AccessKeyID`.
    pub access_key_id: String,
    /// Key `SecretAccessKey`.
    pub secret_access_key: SecretText,
    /// Key `SessionToken`.
    pub session_token: Option<SecretText>,
}

/// A Secret with an access key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretPlace {
    /// The namespace; that of the manager if none.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => write!(f, "{} in the namespace of the controller", self.name),
        }
    }
}

/// What access to AWS is resolved from.
#[async_trait]
pub trait AccessSource: Send + Sync + 'static {
    /// Who resolves, for messages.
    fn who(&self) -> &'static str {
        "this controller"
    }

    /// The identities.
    fn identities(&self) -> Vec<Arc<ASGIdentity>>;
    /// The guards.
    fn guards(&self) -> Vec<Arc<ASGGuard>>;
    /// The labels of a namespace; `None` if they are not known.
    fn namespace_labels(&self, namespace: &str) -> Option<BTreeMap<String, String>>;
    /// The namespace of Cluster API Provider AWS, with the Secrets of its static identities.
    fn aws_provider_namespace(&self) -> &str;

    /// A live GET of the spec of an object that another one refers to without its version, such as a bootstrap config.
    async fn referenced_spec(&self, api_group: &str, kind: &str, key: &ObjectKey) -> Result<Option<Value>>;
    /// A live GET of the spec of a cluster-scoped object of a kind that may not be installed.
    async fn cluster_scoped_spec(&self, api_group: &str, kind: &str, name: &str) -> Result<Option<Value>>;
    /// A live GET of an access key.
    async fn access_key(&self, secret: &SecretPlace) -> Result<Option<AccessKey>>;
    /// Whether RBAC gives this process the verb `use` on a Secret.
    async fn may_use(&self, secret: &SecretPlace) -> Result<bool>;
}
