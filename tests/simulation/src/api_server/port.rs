//! The controllers' port on the model: cached reads from the lagging views, live reads and writes on the objects.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use capasg_api::{
    ASGGuard, ASGIdentity, ASGIdentityStatus, ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool},
    names::labels,
};
use capasg_cloud::Clock;
use capasg_controllers::{
    ObjectKey,
    kubernetes::{
        AccessKey, AccessSource, BootstrapData, KubeError, KubeEvent, KubeWrite, Kubernetes, PoolScope,
        Result, SecretPlace, belongs_to,
    },
};
use chrono::TimeDelta;
use kube::ResourceExt;
use serde_json::Value;

use super::{ApiServer, is_ready, on_its_way::OnItsWay, writes};
use crate::{Entry, Port, journal::Moment, latency::pass};

/// The API server answers any request within this time (`--request-timeout`); the client waits longer.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A reply that has yet to arrive.
#[must_use]
struct Reply(Duration);

impl Reply {
    /// Gives what was answered once it has arrived.
    async fn with<T>(self, answer: T) -> T {
        pass(self.0).await;
        answer
    }
}

/// What became of a write.
struct Applied {
    result: Result<bool>,
    changed: bool,
    reply: Reply,
}

impl ApiServer {
    /// A call of the controllers arrives: others had their turn meanwhile, and the API server may be down.
    async fn arrive(&self, what: &str) -> Result<Reply> {
        self.meanwhile();
        self.journal.called().await;
        let delay = self.delays.draw(Port::Kubernetes);
        pass(delay.there).await;
        self.receive(what).map(|()| Reply(delay.back))
    }

    /// The API server may be down.
    fn receive(&self, what: &str) -> Result<()> {
        let mut state = self.state();
        if state.failures > 0 {
            state.failures -= 1;
            let message = "etcdserver: request timed out".to_owned();
            return Err(KubeError::Other { what: what.to_owned(), message });
        }
        Ok(())
    }

    /// A LIST arrives.
    async fn arrive_list(&self, what: &str) -> Result<Reply> {
        let reply = self.arrive(what).await?;
        if !self.state().fails_lists {
            return Ok(reply);
        }
        let message = "too many requests, please try again later".to_owned();
        Err(KubeError::Other { what: what.to_owned(), message })
    }

    async fn apply(&self, write: &KubeWrite) -> Applied {
        self.meanwhile();
        self.journal.called().await;
        let delay = self.delays.draw(Port::Kubernetes);
        if !delay.there.is_zero() {
            OnItsWay::new(self, write, delay.there).arrives().await;
        }
        let result = match self.receive(&write.what()) {
            Ok(()) => self.carry_out(write).await,
            Err(error) => Err(error),
        };
        let changed = matches!(result, Ok(true));
        let mut state = self.state();
        if result.is_ok() && state.lost_replies > 0 {
            state.lost_replies -= 1;
            let message = "connection closed before message completed".to_owned();
            let lost = Err(KubeError::Other { what: write.what(), message });
            let wait = delay.back + self.delays.lost(REQUEST_TIMEOUT);
            state.waits_for_lost = Some(self.clock.now() + wait);
            let reply = Reply(wait);
            return Applied { result: lost, changed, reply };
        }
        Applied { result, changed, reply: Reply(delay.back) }
    }

    async fn carry_out(&self, write: &KubeWrite) -> Result<bool> {
        if let Some(millis) = self.journal.take_late() {
            let due = self.clock.now() + TimeDelta::milliseconds(millis.cast_signed());
            self.state().late.push((due, write.clone()));
            self.journal.die().await;
        }
        let mut state = self.state();
        if state.conflicts > 0 {
            state.conflicts -= 1;
            return Err(KubeError::Conflict { what: write.what() });
        }
        if state.rejects.is_some_and(|rejects| rejects(write)) {
            let message =
                "admission webhook \"policy.example.com\" denied the request: denied by policy".to_owned();
            return Err(KubeError::Rejected { what: write.what(), message });
        }
        writes::apply(&mut state, write)
    }
}

fn is_in_scope(machine: &Machine, scope: &PoolScope) -> bool {
    machine.metadata.namespace.as_ref() == Some(&scope.pool.namespace) && has_labels(machine.labels(), scope)
}

/// Whether something has the labels of a scope.
fn has_labels(labels: &BTreeMap<String, String>, scope: &PoolScope) -> bool {
    labels.get(labels::CLUSTER_NAME) == Some(&scope.cluster)
        && labels.get(labels::POOL_NAME).is_some_and(|name| scope.pool_names.contains(name))
}

#[async_trait]
impl Kubernetes for ApiServer {
    fn pool(&self, key: &ObjectKey) -> Option<Arc<ASGMachinePool>> {
        self.state().pools.cached(key)
    }

    fn machine_pool(&self, key: &ObjectKey) -> Option<Arc<MachinePool>> {
        self.state().machine_pools.cached(key)
    }

    fn machine_pools_of(&self, namespace: &str) -> Vec<Arc<MachinePool>> {
        let state = self.state();
        let all = state.machine_pools.all_cached();
        all.filter(|owner| owner.metadata.namespace.as_deref() == Some(namespace)).cloned().collect()
    }

    fn cluster(&self, key: &ObjectKey) -> Option<Arc<Cluster>> {
        self.state().clusters.cached(key)
    }

    fn asg_machines(&self, pool: &ObjectKey) -> Vec<Arc<ASGMachine>> {
        let state = self.state();
        let object = state.pools.cached(pool);
        let all = state.asg_machines.all_cached();
        all.filter(|machine| belongs_to(machine, pool, object.as_deref())).cloned().collect()
    }

    fn deleting_asg_machines(&self) -> Vec<Arc<ASGMachine>> {
        let state = self.state();
        let all = state.asg_machines.all_cached();
        all.filter(|machine| machine.metadata.deletion_timestamp.is_some()).cloned().collect()
    }

    fn machine(&self, key: &ObjectKey) -> Option<Arc<Machine>> {
        self.state().machines.cached(key)
    }

    fn machines(&self, scope: &PoolScope) -> Vec<Arc<Machine>> {
        self.state().machines.all_cached().filter(|machine| is_in_scope(machine, scope)).cloned().collect()
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
        let reply = self.arrive_list("listing ASGMachines").await?;
        let found = {
            let state = self.state();
            let all = state.asg_machines.iter().map(|(_, machine)| machine);
            let pool = state.pools.cached(&scope.pool);
            let is_in = |machine: &&Arc<ASGMachine>| {
                belongs_to(machine, &scope.pool, pool.as_deref()) && has_labels(machine.labels(), scope)
            };
            all.filter(is_in).cloned().collect()
        };
        Ok(reply.with(found).await)
    }

    async fn list_machines(&self, scope: &PoolScope) -> Result<Vec<Arc<Machine>>> {
        let reply = self.arrive_list("listing Machines").await?;
        let found: Vec<Arc<Machine>> = {
            let mut state = self.state();
            let all = state.machines.iter().map(|(_, machine)| machine);
            let found: Vec<_> = all.filter(|machine| is_in_scope(machine, scope)).cloned().collect();
            let ready = found.iter().filter(|machine| is_ready(machine)).map(|machine| machine.name_any());
            let ready = ready.collect();
            state.listed.insert(scope.pool.clone(), ready);
            found
        };
        Ok(reply.with(found).await)
    }

    async fn pool_exists(&self, key: &ObjectKey) -> Result<bool> {
        let reply = self.arrive("reading an ASGMachinePool").await?;
        let exists = self.state().pools.get(key).is_some();
        Ok(reply.with(exists).await)
    }

    async fn get_cluster(&self, key: &ObjectKey) -> Result<Option<Arc<Cluster>>> {
        let reply = self.arrive("reading a Cluster").await?;
        let found = self.state().clusters.get(key);
        Ok(reply.with(found).await)
    }

    async fn bootstrap_data(&self, secret: &ObjectKey) -> Result<Option<BootstrapData>> {
        let reply = self.arrive("reading bootstrap data").await?;
        let found = self.state().secrets.get(secret);
        let Some(secret) = reply.with(found).await else { return Ok(None) };
        let entry =
            |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).map(|value| value.0.clone());
        Ok(Some(BootstrapData {
            resource_version: secret.resource_version().unwrap_or_default(),
            value: entry("value").unwrap_or_default(),
            format: entry("format").and_then(|format| String::from_utf8(format).ok()),
        }))
    }

    async fn report_identity(&self, name: &str, status: &ASGIdentityStatus) -> Result<()> {
        let reply = self.arrive("writing the status of an ASGIdentity").await?;
        if let Some(identity) = self.state().operators.identities.get_mut(name) {
            Arc::make_mut(identity).status = Some(status.clone());
        }
        reply.with(Ok(())).await
    }

    async fn write(&self, write: &KubeWrite) -> Result<Option<String>> {
        let Applied { result, changed, reply } = self.apply(write).await;
        self.journal.tell(Moment::Kubernetes { write, changed });
        self.journal
            .wrote(Entry { at: self.clock.now(), port: Port::Kubernetes, what: write.what(), changed })
            .await;
        let version = match write {
            KubeWrite::AnnotateRolloutStopped { pool, .. } => {
                self.state().pools.get(pool).and_then(|pool| pool.resource_version())
            }
            _ => None,
        };
        reply.with(result.map(|_| version)).await
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
        let reply = self.arrive("reading an object that is referred to").await?;
        let config = self.state().configs.get(key);
        let config = reply.with(config).await;
        Ok(config.map(|config| config.data.get("spec").cloned().unwrap_or(Value::Null)))
    }

    async fn cluster_scoped_spec(&self, _: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        let reply = self.arrive("reading an identity").await?;
        let found = self.state().operators.others.get(&(kind.to_owned(), name.to_owned())).cloned();
        Ok(reply.with(found).await)
    }

    async fn access_key(&self, secret: &SecretPlace) -> Result<Option<AccessKey>> {
        let reply = self.arrive("reading an access key").await?;
        let found = self.state().operators.keys.get(&secret.name).cloned();
        Ok(reply.with(found).await)
    }

    async fn may_use(&self, _: &SecretPlace) -> Result<bool> {
        Ok(self.arrive("reviewing an access").await?.with(true).await)
    }
}
