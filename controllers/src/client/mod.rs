//! The Kubernetes port on a real API server: reads from the caches, live reads and patches of single fields.

mod access;
mod access_reader;
mod caches;
mod error;
mod events;
mod index;
mod patches;
mod watches;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use capasg_api::{
    ASGGuard, ASGIdentity, ASGIdentityStatus, ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool},
    names::{is_object_name, labels},
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    core::{Expression, Selector},
};
use serde_json::Value;

pub use access::Namespaces;
pub use access_reader::AccessReader;
pub use caches::Caches;
pub use index::Index;
pub use watches::{Scope, WATCH_TIMEOUT, Wakes, watch};

use access::References;
use error::port_error;

use crate::{
    ObjectKey,
    kubernetes::{
        AccessKey, AccessSource, BootstrapData, KubeEvent, KubeWrite, Kubernetes, PoolScope, Result,
        SecretPlace,
    },
};

/// The port on a real API server.
pub struct ApiServer {
    client: Client,
    caches: Caches,
    events: events::Publisher,
    references: References,
}

impl ApiServer {
    /// The port over `client` and caches that are kept by [`watch`].
    #[must_use]
    pub fn new(client: Client, caches: Caches, namespaces: Namespaces) -> Self {
        let events = events::Publisher::new(client.clone());
        let references = References::new(client.clone(), namespaces);
        Self { client, caches, events, references }
    }
}

#[async_trait]
impl Kubernetes for ApiServer {
    fn pool(&self, key: &ObjectKey) -> Option<Arc<ASGMachinePool>> {
        self.caches.pool(key)
    }

    fn machine_pool(&self, key: &ObjectKey) -> Option<Arc<MachinePool>> {
        self.caches.machine_pool(key)
    }

    fn machine_pools_of(&self, namespace: &str) -> Vec<Arc<MachinePool>> {
        self.caches.machine_pools_of(namespace)
    }

    fn cluster(&self, key: &ObjectKey) -> Option<Arc<Cluster>> {
        self.caches.cluster(key)
    }

    fn asg_machines(&self, pool: &ObjectKey) -> Vec<Arc<ASGMachine>> {
        self.caches.asg_machines(pool)
    }

    fn deleting_asg_machines(&self) -> Vec<Arc<ASGMachine>> {
        self.caches.deleting_asg_machines()
    }

    fn machine(&self, key: &ObjectKey) -> Option<Arc<Machine>> {
        self.caches.machine(key)
    }

    fn machines(&self, scope: &PoolScope) -> Vec<Arc<Machine>> {
        self.caches.machines(scope)
    }

    fn secret_version(&self, key: &ObjectKey) -> Option<String> {
        self.caches.secret_version(key)
    }

    fn pools_of(&self, namespace: &str) -> Vec<Arc<ASGMachinePool>> {
        self.caches.pools_of(namespace)
    }

    async fn list_asg_machines(&self, scope: &PoolScope) -> Result<Vec<Arc<ASGMachine>>> {
        let api: Api<ASGMachine> = Api::namespaced(self.client.clone(), &scope.pool.namespace);
        let list = api
            .list(&by_labels(scope))
            .await
            .map_err(|e| port_error(format!("listing ASGMachines of {}", scope.pool), &e))?;
        Ok(list.items.into_iter().filter(|m| self.caches.belongs_to(m, &scope.pool)).map(Arc::new).collect())
    }

    async fn list_machines(&self, scope: &PoolScope) -> Result<Vec<Arc<Machine>>> {
        let api: Api<Machine> = Api::namespaced(self.client.clone(), &scope.pool.namespace);
        let list = api
            .list(&by_labels(scope))
            .await
            .map_err(|e| port_error(format!("listing Machines of {}", scope.pool), &e))?;
        Ok(list.items.into_iter().map(Arc::new).collect())
    }

    async fn pool_exists(&self, key: &ObjectKey) -> Result<bool> {
        let api: Api<ASGMachinePool> = Api::namespaced(self.client.clone(), &key.namespace);
        let found = api.get_metadata_opt(&key.name).await;
        Ok(found.map_err(|e| port_error(format!("reading ASGMachinePool {key}"), &e))?.is_some())
    }

    async fn get_cluster(&self, key: &ObjectKey) -> Result<Option<Arc<Cluster>>> {
        let api: Api<Cluster> = Api::namespaced(self.client.clone(), &key.namespace);
        let found =
            api.get_opt(&key.name).await.map_err(|e| port_error(format!("reading Cluster {key}"), &e))?;
        Ok(found.map(Arc::new))
    }

    async fn bootstrap_data(&self, secret: &ObjectKey) -> Result<Option<BootstrapData>> {
        if !is_object_name(&secret.name) {
            return Ok(None);
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &secret.namespace);
        let found = api
            .get_opt(&secret.name)
            .await
            .map_err(|e| port_error(format!("reading Secret {secret}"), &e))?;
        Ok(found.map(|found| {
            let resource_version = found.resource_version().unwrap_or_default();
            let mut data = found.data.unwrap_or_default();
            let mut take = |key: &str| data.remove(key).map(|ByteString(bytes)| bytes);
            BootstrapData {
                resource_version,
                value: take("value").unwrap_or_default(),
                format: take("format").and_then(|bytes| String::from_utf8(bytes).ok()),
            }
        }))
    }

    async fn report_identity(&self, name: &str, status: &ASGIdentityStatus) -> Result<()> {
        access::report_identity(&self.client, name, status).await
    }

    async fn write(&self, write: &KubeWrite) -> Result<Option<String>> {
        patches::write(&self.client, &self.caches, write).await
    }

    async fn event(&self, event: KubeEvent) {
        self.events.publish(event).await;
    }
}

#[async_trait]
impl AccessSource for ApiServer {
    fn identities(&self) -> Vec<Arc<ASGIdentity>> {
        self.caches.identities.state()
    }

    fn guards(&self) -> Vec<Arc<ASGGuard>> {
        self.caches.guards.state()
    }

    fn namespace_labels(&self, namespace: &str) -> Option<BTreeMap<String, String>> {
        self.caches.namespace_labels(namespace)
    }

    fn aws_provider_namespace(&self) -> &str {
        self.references.aws_provider_namespace()
    }

    async fn referenced_spec(&self, api_group: &str, kind: &str, key: &ObjectKey) -> Result<Option<Value>> {
        self.references.referenced_spec(api_group, kind, key).await
    }

    async fn cluster_scoped_spec(&self, api_group: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        self.references.cluster_scoped_spec(api_group, kind, name).await
    }

    async fn access_key(&self, secret: &SecretPlace) -> Result<Option<AccessKey>> {
        self.references.access_key(secret).await
    }

    async fn may_use(&self, secret: &SecretPlace) -> Result<bool> {
        self.references.may_use(secret).await
    }
}

fn by_labels(scope: &PoolScope) -> ListParams {
    let cluster = Expression::Equal(labels::CLUSTER_NAME.to_owned(), scope.cluster.clone());
    let pool = Expression::In(labels::POOL_NAME.to_owned(), scope.pool_names.clone());
    let selector: Selector = [cluster, pool].into_iter().collect();
    ListParams::default().labels_from(&selector)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rules: D3
    #[test]
    fn d3_a_list_has_the_machines_of_earlier_machine_pools() {
        let scope = PoolScope {
            pool: ObjectKey::new("ns", "p"),
            cluster: "c".to_owned(),
            pool_names: ["new", "old"].map(str::to_owned).into(),
        };
        assert_eq!(
            by_labels(&scope).label_selector.as_deref(),
            Some("cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/pool-name in (new,old)")
        );
    }
}
