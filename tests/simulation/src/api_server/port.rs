//! The controllers' port on the model: cached reads from the lagging views, live reads and writes on the objects.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use capasg_api::{
    ASGGuard, ASGIdentity, ASGIdentityStatus, ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool, pool_owner_of_machine},
    names::{labels, must_format_value},
};
use capasg_cloud::Clock;
use capasg_controllers::{
    ObjectKey,
    kubernetes::{
        AccessKey, AccessSource, BootstrapData, KubeError, KubeEvent, KubeWrite, Kubernetes, PoolScope,
        Result, SecretPlace,
    },
};
use chrono::TimeDelta;
use kube::ResourceExt;
use serde_json::Value;

use super::{ApiServer, writes};
use crate::{Entry, Port, journal::Moment};

impl ApiServer {
    /// A call of the controllers arrives: others had their turn meanwhile, and the API server may be down.
    async fn arrive(&self, what: &str) -> Result<()> {
        self.meanwhile();
        self.journal.called().await;
        let mut state = self.state();
        if state.failures > 0 {
            state.failures -= 1;
            let message = "etcdserver: request timed out".to_owned();
            return Err(KubeError::Other { what: what.to_owned(), message });
        }
        Ok(())
    }

    /// A LIST arrives.
    async fn arrive_list(&self, what: &str) -> Result<()> {
        self.arrive(what).await?;
        if !self.state().fails_lists {
            return Ok(());
        }
        let message = "too many requests, please try again later".to_owned();
        Err(KubeError::Other { what: what.to_owned(), message })
    }

    async fn apply(&self, write: &KubeWrite) -> Result<bool> {
        self.arrive(&write.what()).await?;
        if let Some(millis) = self.journal.take_late() {
            self.state()
                .late
                .push((self.clock.now() + TimeDelta::milliseconds(millis.cast_signed()), write.clone()));
            self.journal.die().await;
        }
        let mut state = self.state();
        if state.conflicts > 0 {
            state.conflicts -= 1;
            return Err(KubeError::Conflict { what: write.what() });
        }
        writes::apply(&mut state, write)
    }
}

fn is_of_pool(machine: &ASGMachine, pool: &ObjectKey) -> bool {
    machine.metadata.namespace.as_ref() == Some(&pool.namespace)
        && pool_owner_of_machine(machine).is_some_and(|owner| owner.name == pool.name)
}

fn is_in_scope(machine: &Machine, scope: &PoolScope, label: &String) -> bool {
    machine.metadata.namespace.as_ref() == Some(&scope.pool.namespace)
        && has_labels(machine.labels(), scope, label)
}

/// Whether something has the labels of a scope; `label` is what the `MachinePool`'s name is as a label.
fn has_labels(labels: &BTreeMap<String, String>, scope: &PoolScope, label: &String) -> bool {
    labels.get(labels::CLUSTER_NAME) == Some(&scope.cluster) && labels.get(labels::POOL_NAME) == Some(label)
}

#[async_trait]
impl Kubernetes for ApiServer {
    fn pool(&self, key: &ObjectKey) -> Option<Arc<ASGMachinePool>> {
        self.state().pools.cached(key)
    }

    fn machine_pool(&self, key: &ObjectKey) -> Option<Arc<MachinePool>> {
        self.state().machine_pools.cached(key)
    }

    fn cluster(&self, key: &ObjectKey) -> Option<Arc<Cluster>> {
        self.state().clusters.cached(key)
    }

    fn asg_machines(&self, pool: &ObjectKey) -> Vec<Arc<ASGMachine>> {
        let state = self.state();
        state.asg_machines.all_cached().filter(|machine| is_of_pool(machine, pool)).cloned().collect()
    }

    fn deleting_asg_machines(&self) -> Vec<Arc<ASGMachine>> {
        let state = self.state();
        let all = state.asg_machines.all_cached();
        all.filter(|machine| machine.metadata.deletion_timestamp.is_some()).cloned().collect()
    }

    fn machines(&self, scope: &PoolScope) -> Vec<Arc<Machine>> {
        let (state, label) = (self.state(), must_format_value(&scope.machine_pool));
        state.machines.all_cached().filter(|machine| is_in_scope(machine, scope, &label)).cloned().collect()
    }

    fn secret_version(&self, key: &ObjectKey) -> Option<String> {
        self.state().secrets.cached(key)?.resource_version()
    }

    fn pools_of(&self, namespace: &str) -> Vec<Arc<ASGMachinePool>> {
        let state = self.state();
        state
            .pools
            .all_cached()
            .filter(|pool| pool.namespace().as_deref() == Some(namespace))
            .cloned()
            .collect()
    }

    async fn list_asg_machines(&self, scope: &PoolScope) -> Result<Vec<Arc<ASGMachine>>> {
        self.arrive_list("listing ASGMachines").await?;
        let (state, label) = (self.state(), must_format_value(&scope.machine_pool));
        let all = state.asg_machines.iter().map(|(_, machine)| machine);
        Ok(all
            .filter(|machine| is_of_pool(machine, &scope.pool) && has_labels(machine.labels(), scope, &label))
            .cloned()
            .collect())
    }

    async fn list_machines(&self, scope: &PoolScope) -> Result<Vec<Arc<Machine>>> {
        self.arrive_list("listing Machines").await?;
        let (state, label) = (self.state(), must_format_value(&scope.machine_pool));
        let all = state.machines.iter().map(|(_, machine)| machine);
        Ok(all.filter(|machine| is_in_scope(machine, scope, &label)).cloned().collect())
    }

    async fn pool_exists(&self, key: &ObjectKey) -> Result<bool> {
        self.arrive("reading an ASGMachinePool").await?;
        Ok(self.state().pools.get(key).is_some())
    }

    async fn get_cluster(&self, key: &ObjectKey) -> Result<Option<Arc<Cluster>>> {
        self.arrive("reading a Cluster").await?;
        Ok(self.state().clusters.get(key))
    }

    async fn bootstrap_data(&self, secret: &ObjectKey) -> Result<Option<BootstrapData>> {
        self.arrive("reading bootstrap data").await?;
        let Some(secret) = self.state().secrets.get(secret) else { return Ok(None) };
        let entry =
            |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).map(|value| value.0.clone());
        Ok(Some(BootstrapData {
            resource_version: secret.resource_version().unwrap_or_default(),
            value: entry("value").unwrap_or_default(),
            format: entry("format").and_then(|format| String::from_utf8(format).ok()),
        }))
    }

    async fn report_identity(&self, name: &str, status: &ASGIdentityStatus) -> Result<()> {
        self.arrive("writing the status of an ASGIdentity").await?;
        if let Some(identity) = self.state().operators.identities.get_mut(name) {
            Arc::make_mut(identity).status = Some(status.clone());
        }
        Ok(())
    }

    async fn write(&self, write: &KubeWrite) -> Result<Option<String>> {
        let result = self.apply(write).await;
        let changed = matches!(result, Ok(true));
        self.journal.tell(Moment::Kubernetes { write, changed });
        self.journal
            .wrote(Entry { at: self.clock.now(), port: Port::Kubernetes, what: write.what(), changed })
            .await;
        let KubeWrite::AnnotateRolloutStopped { pool, .. } = write else { return result.map(|_| None) };
        result.map(|_| self.state().pools.get(pool).and_then(|pool| pool.resource_version()))
    }

    async fn event(&self, event: KubeEvent) {
        let now = self.clock.now();
        self.state().events.push((now, event));
    }
}

#[async_trait]
impl AccessSource for ApiServer {
    fn identities(&self) -> Vec<Arc<ASGIdentity>> {
        self.state().operators.identities.values().cloned().collect()
    }

    fn guards(&self) -> Vec<Arc<ASGGuard>> {
        self.state().operators.guards.values().cloned().collect()
    }

    fn namespace_labels(&self, namespace: &str) -> Option<BTreeMap<String, String>> {
        let mut labels = self.state().operators.namespaces.get(namespace).cloned().unwrap_or_default();
        // The API server sets it.
        labels.insert("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
        Some(labels)
    }

    fn aws_provider_namespace(&self) -> &'static str {
        "capa-system"
    }

    async fn referenced_spec(&self, _api_group: &str, _kind: &str, key: &ObjectKey) -> Result<Option<Value>> {
        self.arrive("reading an object that is referred to").await?;
        let config = self.state().configs.get(key);
        Ok(config.map(|config| config.data.get("spec").cloned().unwrap_or(Value::Null)))
    }

    async fn cluster_scoped_spec(&self, _: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        self.arrive("reading an identity").await?;
        Ok(self.state().operators.others.get(&(kind.to_owned(), name.to_owned())).cloned())
    }

    async fn access_key(&self, secret: &SecretPlace) -> Result<Option<AccessKey>> {
        self.arrive("reading an access key").await?;
        Ok(self.state().operators.keys.get(&secret.name).cloned())
    }

    async fn may_use(&self, _: &SecretPlace) -> Result<bool> {
        self.arrive("reviewing an access").await?;
        Ok(true)
    }
}
