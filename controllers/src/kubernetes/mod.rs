//! The Kubernetes port: what the controllers read and write. The kube client implements it, and so does the
//! simulation; decide names its writes without knowing either.

mod write;

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use capasg_api::{
    ASGGuard, ASGIdentity, ASGIdentityStatus, ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool},
};
use capasg_cloud::SecretText;
use serde_json::Value;

pub use write::{DeletionReason, EventType, KubeEvent, KubeWrite};

use crate::ObjectKey;

/// The result of a call to the API server.
pub type Result<T, E = KubeError> = std::result::Result<T, E>;

/// A failed call to the API server.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KubeError {
    /// The object does not exist, or another object of its name does.
    #[error("{what}: the object does not exist")]
    NotFound {
        /// The object concerned.
        what: String,
    },
    /// Another actor wrote first, or the precondition on its uid failed: requeue.
    #[error("{what}: the object has been modified")]
    Conflict {
        /// The object concerned.
        what: String,
    },
    /// Anything else.
    #[error("{what}: {message}")]
    Other {
        /// What was attempted.
        what: String,
        /// The API server's message.
        message: String,
    },
}

impl KubeError {
    /// The bounded label of metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "KubernetesNotFound",
            Self::Conflict { .. } => "KubernetesConflict",
            Self::Other { .. } => "KubernetesError",
        }
    }
}

/// Bootstrap data as its Secret holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapData {
    /// The Secret's resourceVersion.
    pub resource_version: String,
    /// Key `value`. A secret: never logged.
    pub value: Vec<u8>,
    /// Key `format`: `cloud-config` (the default) or `ignition`.
    pub format: Option<String>,
}

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

/// The Machines and ASGMachines of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolScope {
    /// The ASGMachinePool.
    pub pool: ObjectKey,
    /// Name of the Cluster.
    pub cluster: String,
    /// Name of the owner MachinePool.
    pub machine_pool: String,
}

/// The API server as the controllers see it.
#[async_trait]
pub trait Kubernetes: Send + Sync + 'static {
    /// A pool from the cache.
    fn pool(&self, key: &ObjectKey) -> Option<Arc<ASGMachinePool>>;
    /// A MachinePool from the cache.
    fn machine_pool(&self, key: &ObjectKey) -> Option<Arc<MachinePool>>;
    /// A Cluster from the cache.
    fn cluster(&self, key: &ObjectKey) -> Option<Arc<Cluster>>;
    /// The ASGMachines of a pool (by owner reference) from the cache.
    fn asg_machines(&self, pool: &ObjectKey) -> Vec<Arc<ASGMachine>>;
    /// The ASGMachines in the cache that are being deleted, of any pool.
    fn deleting_asg_machines(&self) -> Vec<Arc<ASGMachine>>;
    /// The Machines of a pool (by labels) from the cache.
    fn machines(&self, scope: &PoolScope) -> Vec<Arc<Machine>>;
    /// The resourceVersion of a Secret in the cache.
    fn secret_version(&self, key: &ObjectKey) -> Option<String>;

    /// The identities in the cache.
    fn identities(&self) -> Vec<Arc<ASGIdentity>>;
    /// The guards in the cache.
    fn guards(&self) -> Vec<Arc<ASGGuard>>;
    /// The labels of a namespace in the cache; `None` if the cache does not have it.
    fn namespace_labels(&self, namespace: &str) -> Option<BTreeMap<String, String>>;
    /// The pools of a namespace in the cache.
    fn pools_of(&self, namespace: &str) -> Vec<Arc<ASGMachinePool>>;
    /// The namespace of Cluster API Provider AWS, with the Secrets of its static identities.
    fn aws_provider_namespace(&self) -> &str;

    /// A live LIST of the ASGMachines of a pool.
    async fn list_asg_machines(&self, scope: &PoolScope) -> Result<Vec<Arc<ASGMachine>>>;
    /// A live LIST of the Machines of a pool.
    async fn list_machines(&self, scope: &PoolScope) -> Result<Vec<Arc<Machine>>>;
    /// Whether a pool exists, by a live GET of its metadata.
    async fn pool_exists(&self, key: &ObjectKey) -> Result<bool>;
    /// A live GET of a Cluster.
    async fn get_cluster(&self, key: &ObjectKey) -> Result<Option<Arc<Cluster>>>;
    /// A live GET of bootstrap data.
    async fn bootstrap_data(&self, secret: &ObjectKey) -> Result<Option<BootstrapData>>;
    /// A live GET of the spec of an object that another one refers to without its version, such as a bootstrap config.
    async fn referenced_spec(&self, api_group: &str, kind: &str, key: &ObjectKey) -> Result<Option<Value>>;

    /// A live GET of the spec of a cluster-scoped object of a kind that may not be installed.
    async fn cluster_scoped_spec(&self, api_group: &str, kind: &str, name: &str) -> Result<Option<Value>>;
    /// A live GET of an access key.
    async fn access_key(&self, secret: &SecretPlace) -> Result<Option<AccessKey>>;
    /// Whether RBAC gives this controller the verb `use` on a Secret.
    async fn may_use(&self, secret: &SecretPlace) -> Result<bool>;

    /// Writes the status of an ASGIdentity (merge patch).
    async fn report_identity(&self, name: &str, status: &ASGIdentityStatus) -> Result<()>;

    /// Carries out one write. Returns the resource version of the object since then, if it is known.
    async fn write(&self, write: &KubeWrite) -> Result<Option<String>>;
    /// Publishes an event; failures are only logged, since nothing may depend on an event.
    async fn event(&self, event: KubeEvent);
}

/// A random owner id, made once for each pool.
pub trait Randomness: Send + Sync + 'static {
    /// A new id of 16 hexadecimal digits.
    fn owner_id(&self) -> String;
}
