//! What metrics say about single releases, from the objects that the watch of `HelmReleaseProxies` shows.

use capasg_api::conditions::ConditionState;
use kube::{ResourceExt as _, core::DynamicObject, runtime::watcher::Event};
use serde::Deserialize as _;
use serde_json::Value;

use super::known::{Change, Known};
use crate::{controller::ObjectKey, names};

/// The state of a `HelmReleaseProxy` for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleaseGauges {
    /// The name of its Cluster.
    pub cluster: String,
    /// The name of its `HelmChartProxy`; empty if it has none.
    pub chart_proxy: String,
    /// The name of the chart.
    pub chart: String,
    /// The requested version of the chart; empty for the newest.
    pub version: String,
    /// The namespace of the release in the workload cluster.
    pub release_namespace: String,
    /// The name of the release; empty while it has none.
    pub release: String,
    /// The status of the release as Helm reports it; empty while it is not known.
    pub state: String,
    /// Its conditions.
    pub conditions: Vec<ConditionState>,
}

impl ReleaseGauges {
    /// The gauges of an object. It need not be valid: what is missing is empty.
    fn of(object: &DynamicObject) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let at = |pointer: &str| text(object.data.pointer(pointer));
        let conditions =
            object.data.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let condition = |value: &Value| ConditionState::deserialize(value).unwrap_or_default();
        Self {
            cluster: at("/spec/clusterRef/name"),
            chart_proxy: object.labels().get(names::CHART_PROXY_LABEL).cloned().unwrap_or_default(),
            chart: at("/spec/chartName"),
            version: at("/spec/version"),
            release_namespace: at("/spec/namespace"),
            release: at("/spec/releaseName"),
            state: at("/status/status"),
            conditions: conditions.map(condition).collect(),
        }
    }
}

/// The gauges of all releases.
#[derive(Debug, Default)]
pub(super) struct AllGauges(Known<ReleaseGauges>);

impl AllGauges {
    /// The releases whose gauges an event changes, each with the new ones, or `None` for an object that was deleted.
    pub(super) fn take(
        &mut self,
        event: &Event<DynamicObject>,
    ) -> impl Iterator<Item = (ObjectKey, Option<ReleaseGauges>)> + use<> {
        let changes = self.0.take(event, |object| Some(ReleaseGauges::of(object)));
        changes.into_iter().map(|Change { key, new, .. }| (key, new))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn release(status: &Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmReleaseProxy",
            "metadata": {"name": "cni-prod-x", "namespace": "teams", "labels": {names::CHART_PROXY_LABEL: "cni"}},
            "spec": {
                "clusterRef": {"name": "prod"}, "chartName": "cilium", "version": "1.18.2", "namespace": "kube-system",
                "releaseName": "cilium", "repoURL": "https://helm.example.com",
            },
            "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn gauges_change_with_the_status_and_end_with_the_object() {
        let mut all = AllGauges::default();
        let mut take = |event: Event<DynamicObject>| all.take(&event).collect::<Vec<_>>();
        let deployed = json!({
            "status": "deployed", "revision": 3,
            "conditions": [{"type": "Ready", "status": "True", "reason": "InfoReported", "message": "m"}],
        });
        let [(key, Some(gauges))] = &take(Event::Apply(release(&deployed)))[..] else {
            panic!("one release")
        };
        assert_eq!(*key, ObjectKey::new("teams", "cni-prod-x"));
        let ready = ConditionState {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: "InfoReported".to_owned(),
        };
        let expected = ReleaseGauges {
            cluster: "prod".to_owned(),
            chart_proxy: "cni".to_owned(),
            chart: "cilium".to_owned(),
            version: "1.18.2".to_owned(),
            release_namespace: "kube-system".to_owned(),
            release: "cilium".to_owned(),
            state: "deployed".to_owned(),
            conditions: vec![ready],
        };
        assert_eq!(*gauges, expected);
        let revised = json!({"status": "deployed", "revision": 4, "conditions": deployed["conditions"]});
        assert_eq!(take(Event::Apply(release(&revised))), [], "a revision is in no gauge");
        let removed = take(Event::Delete(release(&revised)));
        assert_eq!(removed, [(key.clone(), None)]);
    }
}
