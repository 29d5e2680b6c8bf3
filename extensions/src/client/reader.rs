//! The reader with the Kubernetes API. Everything is read when a hook is called: nothing has to be filled before the first
//! answer, and nothing is stale.

use async_trait::async_trait;
use capasg_api::{
    ASGMachinePool, errors,
    names::{addons::Phase, labels::CLUSTER_NAME},
};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::Value;
use tracing::warn;

use super::addons;
use crate::{
    blocks::Record,
    names::annotations::HOOK_BLOCKS,
    ports::{AddonFacts, Kind, Kubernetes, MachineFacts, PoolList, ReadError},
    protocol::{Cluster, ClusterKey},
};

/// Core's label on the Machines of the control plane.
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// Versions of core's kinds, of which the fields that are read are the same. Cores up to v1.10 serve the older one alone.
const CORE_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
/// Objects in one page of a list.
const PAGE: u32 = 500;

/// Reads objects with a client.
#[derive(Clone)]
pub struct KubeReader(pub Client);

#[async_trait]
impl Kubernetes for KubeReader {
    async fn cluster(&self, claimed: &Cluster) -> Result<Option<Cluster>, ReadError> {
        let Some(key) = claimed.key() else { return Ok(None) };
        for version in CORE_VERSIONS {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", version, "Cluster"));
            let api: Api<DynamicObject> = Api::namespaced_with(self.0.clone(), &key.namespace, &kind);
            let found = api.get_opt(&key.name).await.map_err(|error| failed(&error, "Clusters"))?;
            // An object that was read can be written.
            if let Some(value) = found.and_then(|found| serde_json::to_value(found).ok()) {
                return Ok(Some(Cluster::from(value)).filter(|live| claimed.is_same_object(live)));
            }
        }
        Ok(None)
    }

    async fn pools(&self, cluster: &ClusterKey) -> Result<PoolList, ReadError> {
        let kind = ApiResource::erase::<ASGMachinePool>(&());
        let mut found = self.list_of(&kind, cluster, "ASGMachinePools").await?.unwrap_or_default();
        found.sort_by_key(ResourceExt::name_any);
        let mut list = PoolList::default();
        for object in found {
            let name = object.name_any();
            // One pool with a value of another version must not hide the others.
            match object.try_parse() {
                Ok(pool) => list.pools.push(pool),
                Err(error) => {
                    warn!(
                        error = errors::without_values(&error.to_string()),
                        name, "failed to decode an ASGMachinePool"
                    );
                    list.undecoded.push(name);
                }
            }
        }
        Ok(list)
    }

    async fn machines(&self, cluster: &ClusterKey) -> Result<Vec<MachineFacts>, ReadError> {
        for version in CORE_VERSIONS {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", version, "Machine"));
            if let Some(machines) = self.list_of(&kind, cluster, "Machines").await? {
                let mut machines: Vec<_> = machines.iter().map(facts_of).collect();
                machines.sort_by(|a, b| a.name.cmp(&b.name));
                return Ok(machines);
            }
        }
        warn!("the API server serves no known version of Machines");
        Err(ReadError { kind: "Machines" })
    }

    async fn addons(&self, cluster: &ClusterKey, phase: Phase) -> Result<Vec<AddonFacts>, ReadError> {
        let (charts, params) = (addons::resource("HelmChartProxy"), ListParams::default());
        let charts = self.list(&charts, &cluster.namespace, params, "HelmChartProxies").await?;
        let mut charts = charts.unwrap_or_default();
        charts.retain(|chart| addons::asks(chart, phase));
        if charts.is_empty() {
            return Ok(Vec::new());
        }
        let releases = addons::resource("HelmReleaseProxy");
        let releases = self.list_of(&releases, cluster, "HelmReleaseProxies").await?.unwrap_or_default();
        let mut facts: Vec<_> =
            charts.iter().filter_map(|chart| addons::facts_of(chart, &cluster.name, &releases)).collect();
        facts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(facts)
    }

    async fn object(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>, ReadError> {
        let (infrastructure, control_plane) =
            ("infrastructure.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io");
        let (group, version, kind, plural) = match kind {
            Kind::ClusterClass => ("cluster.x-k8s.io", "v1beta2", "ClusterClass", "ClusterClasses"),
            Kind::PoolTemplate => {
                (infrastructure, "v1alpha1", "ASGMachinePoolTemplate", "ASGMachinePoolTemplates")
            }
            // Cluster API Provider AWS serves this version since its version 2.0.
            Kind::ClusterTemplate => (infrastructure, "v1beta2", "AWSClusterTemplate", "AWSClusterTemplates"),
            Kind::ControlPlaneTemplate => (
                control_plane,
                "v1beta2",
                "AWSManagedControlPlaneTemplate",
                "AWSManagedControlPlaneTemplates",
            ),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with(self.0.clone(), namespace, &resource);
        let object = api.get_opt(name).await.map_err(|error| failed(&error, plural))?;
        // An object that was read can be written.
        Ok(object.and_then(|object| serde_json::to_value(object).ok()))
    }

    async fn record(&self, cluster: &ClusterKey) -> Result<Option<Record>, ReadError> {
        let api: Api<Event> = Api::namespaced(self.0.clone(), &cluster.namespace);
        let event = api.get_opt(&Record::event_name(cluster)).await;
        let event = event.map_err(|error| failed(&error, "Events"))?;
        Ok(event.and_then(|event| Record::from_json(event.annotations().get(HOOK_BLOCKS)?)))
    }
}

impl KubeReader {
    /// All objects of a list; `None` if the kind is not installed in this version.
    async fn list(
        &self,
        resource: &ApiResource,
        namespace: &str,
        params: ListParams,
        kind: &'static str,
    ) -> Result<Option<Vec<DynamicObject>>, ReadError> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.0.clone(), namespace, resource);
        match all_pages(&api, params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            listed => listed.map(Some).map_err(|error| failed(&error, kind)),
        }
    }

    /// Those of a Cluster.
    async fn list_of(
        &self,
        resource: &ApiResource,
        cluster: &ClusterKey,
        kind: &'static str,
    ) -> Result<Option<Vec<DynamicObject>>, ReadError> {
        let params = ListParams::default().labels(&format!("{CLUSTER_NAME}={}", cluster.name));
        self.list(resource, &cluster.namespace, params, kind).await
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
    warn!(error = errors::of_request(error), kind, "failed to read objects for a hook");
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
