//! Reads what the extension reported about a Cluster.

use capasg_api::time::from_kubernetes;
use chrono::{DateTime, Utc};
use k8s_openapi::{
    api::core::v1::Event,
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};

use super::{events::REPORTER, reader::all_pages};
use crate::{
    blocks::Record,
    names::annotations::HOOK_BLOCKS,
    protocol::{ClusterKey, Hook},
    why::{Report, Why},
};

/// Reads the Cluster and the events about it. `now` is the time of the question.
///
/// # Errors
/// If the Cluster does not exist, or the API server rejects a read.
pub async fn history(
    client: Client,
    namespace: &str,
    name: &str,
    now: DateTime<Utc>,
) -> Result<Why, kube::Error> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Cluster"));
    let clusters: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let cluster = clusters.get(name).await?;
    let uid = cluster.uid().unwrap_or_default();
    let events: Api<Event> = Api::namespaced(client, namespace);
    // The core API is the one that selects by the object for certain; kubectl describe does the same.
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let mut events = all_pages(&events, about).await?;
    events.retain(|event| event.reporting_component.as_deref() == Some(REPORTER));
    // It is one event, which the hooks read by its name.
    let (records, others): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| event.annotations().contains_key(HOOK_BLOCKS));
    let record = records.iter().find_map(|event| Record::from_json(event.annotations().get(HOOK_BLOCKS)?));
    let reports = others.iter().filter_map(report_of).collect();
    let cluster_key = ClusterKey { namespace: namespace.to_owned(), name: name.to_owned(), uid };
    Ok(Why { cluster: cluster_key, topology: topology_of(&cluster), record, reports, now })
}

/// The condition `TopologyReconciled`, in words.
fn topology_of(cluster: &DynamicObject) -> Option<String> {
    let conditions = cluster.data.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == "TopologyReconciled")?;
    let text = |member: &str| found[member].as_str().unwrap_or_default();
    Some(format!("{} {}: {}", text("status"), text("reason"), text("message")))
}

/// An event of the extension; `None` for one that this version cannot read.
fn report_of(event: &Event) -> Option<Report> {
    let micro = |time: &MicroTime| from_kubernetes(&Time(time.0));
    let created = event.metadata.creation_timestamp.as_ref().map(from_kubernetes);
    let since = event.event_time.as_ref().map(micro).or(created)?;
    let repeated = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(micro);
    let hook: Hook = event.action.as_deref()?.parse().ok()?;
    let message = event.message.as_deref().unwrap_or_default();
    let message =
        message.strip_prefix(hook.name()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message);
    Some(Report {
        hook,
        reason: event.reason.clone().unwrap_or_default(),
        message: message.to_owned(),
        last: repeated.or(created).unwrap_or(since).max(since),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(value: Value) -> Event {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_event_is_read_with_the_time_of_its_last_write() {
        let mut value = json!({
            "metadata": {"name": "prod.0011223344556677", "creationTimestamp": "2027-01-15T08:00:01Z"},
            "involvedObject": {"kind": "Cluster", "name": "prod"},
            "reportingComponent": REPORTER, "reportingInstance": "a", "action": "BeforeClusterUpgrade",
            "reason": "HookBlocked", "message": "BeforeClusterUpgrade: no", "eventTime": "2027-01-15T08:00:00.000000Z",
            "series": {"count": 3, "lastObservedTime": "2027-01-15T08:20:00.000000Z"},
        });
        let expected = Report {
            hook: Hook::BeforeClusterUpgrade,
            reason: "HookBlocked".into(),
            message: "no".into(),
            last: "2027-01-15T08:20:00Z".parse().unwrap(),
        };
        assert_eq!(report_of(&event(value.clone())), Some(expected));
        value["action"] = json!("OfAnotherVersion");
        assert_eq!(report_of(&event(value)), None);
    }

    /// An API server with one Cluster, and two pages of events about it.
    async fn api_server(
        request: http::Request<kube::client::Body>,
    ) -> Result<http::Response<kube::client::Body>, std::convert::Infallible> {
        let uri = request.uri().to_string();
        let answer = if uri.contains("/apis/cluster.x-k8s.io/v1beta2/namespaces/teams/clusters/prod") {
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "prod", "uid": "1"}})
        } else {
            assert!(uri.starts_with("/api/v1/namespaces/teams/events?"), "{uri}");
            assert!(uri.contains("fieldSelector=involvedObject.uid%3D1"), "{uri}");
            let is_first = !uri.contains("continue=");
            let record = Record {
                hook: Hook::BeforeClusterUpgrade,
                version: "v1.36.3".to_owned(),
                last: DateTime::UNIX_EPOCH,
                causes: std::collections::BTreeMap::new(),
            };
            let metadata =
                if is_first { json!({}) } else { json!({"annotations": {HOOK_BLOCKS: record.to_json()}}) };
            let event = |reporter: &str| {
                json!({
                    "metadata": metadata, "involvedObject": {}, "reportingComponent": reporter,
                    "action": "BeforeClusterUpgrade", "eventTime": "2027-01-15T08:00:00.000000Z",
                })
            };
            let events = [event(REPORTER), event("topology-controller")];
            json!({"metadata": {"continue": if is_first { "more" } else { "" }}, "items": events})
        };
        Ok(http::Response::new(kube::client::Body::from(answer.to_string().into_bytes())))
    }

    #[tokio::test]
    async fn all_pages_of_events_about_the_cluster_are_read() {
        let client = Client::new(tower::service_fn(api_server), "default");
        let now = "2027-01-15T09:00:00Z".parse().unwrap();
        let why = history(client, "teams", "prod", now).await.unwrap();
        assert_eq!((why.cluster.uid.as_str(), why.topology), ("1", None));
        assert_eq!(why.reports.len(), 1, "those of others are left out");
        assert_eq!(why.record.unwrap().hook, Hook::BeforeClusterUpgrade);
    }

    #[test]
    fn the_condition_of_the_topology_is_shown_as_core_reports_it() {
        let cluster = |status: Value| {
            serde_json::from_value::<DynamicObject>(json!({"metadata": {"name": "prod"}, "status": status}))
                .unwrap()
        };
        let condition =
            json!({"type": "TopologyReconciled", "status": "False", "reason": "A", "message": "b"});
        assert_eq!(topology_of(&cluster(json!({"conditions": [condition]}))).unwrap(), "False A: b");
        assert_eq!(topology_of(&cluster(json!({}))), None);
    }
}
