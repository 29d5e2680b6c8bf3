//! The reader with the Kubernetes API. Everything is read when a hook is called: nothing has to be filled before the first
//! answer, and nothing is stale.

use async_trait::async_trait;
use capasg_api::{
    ASGMachinePool,
    names::{addons::Phase, labels::CLUSTER_NAME},
    time::from_kubernetes,
};
use chrono::{DateTime, Utc};
use k8s_openapi::{api::events::v1::Event, apimachinery::pkg::apis::meta::v1::Time};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::Value;
use tracing::warn;

use super::addons;
use crate::{
    blocks::Block,
    ports::{AddonFacts, Kind, Kubernetes, MachineFacts, ReadError},
    protocol::ClusterKey,
};

/// Core's label on the Machines of the control plane.
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// Objects in one page of a list.
const PAGE: u32 = 500;

/// Reads objects with a client.
#[derive(Clone)]
pub struct KubeReader(pub Client);

#[async_trait]
impl Kubernetes for KubeReader {
    async fn pools(&self, cluster: &ClusterKey) -> Result<Vec<ASGMachinePool>, ReadError> {
        let api: Api<ASGMachinePool> = Api::namespaced(self.0.clone(), &cluster.namespace);
        let mut pools = list(api, of_cluster(cluster), "ASGMachinePools").await?;
        pools.sort_by_key(ResourceExt::name_any);
        Ok(pools)
    }

    async fn machines(&self, cluster: &ClusterKey) -> Result<Vec<MachineFacts>, ReadError> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Machine"));
        let api: Api<DynamicObject> = Api::namespaced_with(self.0.clone(), &cluster.namespace, &kind);
        let machines = list(api, of_cluster(cluster), "Machines").await?;
        let mut machines: Vec<_> = machines.iter().map(facts_of).collect();
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(machines)
    }

    async fn addons(&self, cluster: &ClusterKey, phase: Phase) -> Result<Vec<AddonFacts>, ReadError> {
        let api = |kind| addons::api(self.0.clone(), kind, &cluster.namespace);
        let mut charts = list(api("HelmChartProxy"), ListParams::default(), "HelmChartProxies").await?;
        charts.retain(|chart| addons::asks(chart, phase));
        if charts.is_empty() {
            return Ok(Vec::new());
        }
        let releases = list(api("HelmReleaseProxy"), of_cluster(cluster), "HelmReleaseProxies").await?;
        let mut facts: Vec<_> =
            charts.iter().filter_map(|chart| addons::facts_of(chart, &cluster.name, &releases)).collect();
        facts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(facts)
    }

    async fn object(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>, ReadError> {
        let (resource, plural) = match kind {
            Kind::ClusterClass => {
                (GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "ClusterClass"), "ClusterClasses")
            }
            Kind::PoolTemplate => (
                GroupVersionKind::gvk(
                    "infrastructure.cluster.x-k8s.io",
                    "v1alpha1",
                    "ASGMachinePoolTemplate",
                ),
                "ASGMachinePoolTemplates",
            ),
        };
        let resource = ApiResource::from_gvk(&resource);
        let api: Api<DynamicObject> = Api::namespaced_with(self.0.clone(), namespace, &resource);
        let object = api.get_opt(name).await.map_err(|error| failed(&error, plural))?;
        // An object that was read can be written.
        Ok(object.and_then(|object| serde_json::to_value(object).ok()))
    }

    async fn blocked_since(&self, block: &Block) -> Result<Option<DateTime<Utc>>, ReadError> {
        let api: Api<Event> = Api::namespaced(self.0.clone(), &block.cluster.namespace);
        let event = api.get_opt(&block.event_name()).await.map_err(|error| failed(&error, "Events"))?;
        Ok(event.and_then(|event| event.event_time).map(|time| from_kubernetes(&Time(time.0))))
    }
}

fn of_cluster(cluster: &ClusterKey) -> ListParams {
    ListParams::default().labels(&format!("{CLUSTER_NAME}={}", cluster.name))
}

/// All objects of a list; none if the kind is not installed.
async fn list<K>(api: Api<K>, params: ListParams, kind: &'static str) -> Result<Vec<K>, ReadError>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    match all_pages(&api, params).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        listed => listed.map_err(|error| failed(&error, kind)),
    }
}

/// All objects of a list, page by page.
pub(super) async fn all_pages<K>(api: &Api<K>, params: ListParams) -> Result<Vec<K>, kube::Error>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut params = params.limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = api.list(&params).await?;
        all.extend(page.items);
        let Some(next) = page.metadata.continue_.filter(|token| !token.is_empty()) else { return Ok(all) };
        params = params.continue_token(&next);
    }
}

/// The cause is logged and stays out of answers.
fn failed(error: &kube::Error, kind: &'static str) -> ReadError {
    warn!(%error, kind, "failed to read objects for a hook");
    ReadError { kind }
}

fn facts_of(machine: &DynamicObject) -> MachineFacts {
    let text = |pointer: &str| machine.data.pointer(pointer).and_then(Value::as_str);
    MachineFacts {
        name: machine.name_any(),
        control_plane: machine.labels().contains_key(CONTROL_PLANE),
        of_pool: text("/spec/infrastructureRef/kind") == Some("ASGMachine"),
        deleting: machine.metadata.deletion_timestamp.is_some(),
        kubelet_version: text("/status/nodeInfo/kubeletVersion").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_of_a_machine_are_read_leniently() {
        let machine = |value| serde_json::from_value::<DynamicObject>(value).unwrap();
        let facts = facts_of(&machine(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": "a", "labels": {CONTROL_PLANE: ""}, "deletionTimestamp": "2026-03-01T00:00:00Z"},
            "spec": {"infrastructureRef": {"kind": "ASGMachine"}},
            "status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}},
        })));
        let expected = MachineFacts {
            name: "a".into(),
            control_plane: true,
            of_pool: true,
            deleting: true,
            kubelet_version: Some("v1.36.3".into()),
        };
        assert_eq!(facts, expected);
        let empty = facts_of(&machine(json!({"metadata": {"name": "b"}, "status": {"nodeInfo": 7}})));
        assert_eq!(empty, MachineFacts { name: "b".into(), ..MachineFacts::default() });
    }
}
