//! The Kubernetes port: what the controllers read and write. The kube client implements it, and so does the
//! simulation; decide names its writes without knowing either.

mod access;
mod error;
mod membership;
mod write;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use capasg_api::{
    ASGIdentityStatus, ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool},
};

pub use access::{AccessKey, AccessSource, SecretPlace};
pub use error::{KubeError, Result};
pub use membership::{belongs_to, pools_of_asg_machine};
pub use write::{DeletionReason, EventType, KubeEvent, KubeWrite};

use crate::ObjectKey;

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

/// The Machines and ASGMachines of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolScope {
    /// The ASGMachinePool.
    pub pool: ObjectKey,
    /// Name of the Cluster.
    pub cluster: String,
    /// The values of their label `cluster.x-k8s.io/pool-name`: of the owner MachinePool, and of those before it.
    pub pool_names: BTreeSet<String>,
}

/// The API server as the controllers see it.
#[async_trait]
pub trait Kubernetes: AccessSource {
    /// A pool from the cache.
    fn pool(&self, key: &ObjectKey) -> Option<Arc<ASGMachinePool>>;
    /// A MachinePool from the cache.
    fn machine_pool(&self, key: &ObjectKey) -> Option<Arc<MachinePool>>;
    /// The MachinePools of a namespace in the cache.
    fn machine_pools_of(&self, namespace: &str) -> Vec<Arc<MachinePool>>;
    /// A Cluster from the cache.
    fn cluster(&self, key: &ObjectKey) -> Option<Arc<Cluster>>;
    /// The ASGMachines of a pool (by owner reference) from the cache.
    fn asg_machines(&self, pool: &ObjectKey) -> Vec<Arc<ASGMachine>>;
    /// The ASGMachines in the cache that are being deleted, of any pool.
    fn deleting_asg_machines(&self) -> Vec<Arc<ASGMachine>>;
    /// A Machine from the cache.
    fn machine(&self, key: &ObjectKey) -> Option<Arc<Machine>>;
    /// The Machines of a pool (by labels) from the cache.
    fn machines(&self, scope: &PoolScope) -> Vec<Arc<Machine>>;
    /// The resourceVersion of a Secret in the cache.
    fn secret_version(&self, key: &ObjectKey) -> Option<String>;

    /// The pools of a namespace in the cache.
    fn pools_of(&self, namespace: &str) -> Vec<Arc<ASGMachinePool>>;

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
