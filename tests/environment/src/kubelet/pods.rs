//! Pods on simulated nodes: bound where there is room, running at once, gone as soon as their deletion is asked for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::answers::{is_absent, is_conflict, is_unreadable};

/// One look at all pods. `nodes` are those of our machines that run.
pub(crate) async fn run(client: &Client, nodes: &BTreeSet<String>, real: bool) -> Result<()> {
    let all: Vec<Pod> = Api::all(client.clone()).list(&ListParams::default()).await?.items;
    for pod in &all {
        let on_ours = node_of(pod).is_some_and(|node| nodes.contains(node));
        if pod.metadata.deletion_timestamp.is_some() && on_ours {
            end(client, pod).await?;
        } else if real && on_ours && !has_run(pod) {
            start(client, pod).await?;
        }
    }
    if real { schedule(client, nodes, &all).await } else { Ok(()) }
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

fn has_run(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).is_some_and(|phase| phase != "Pending")
}

fn api(client: &Client, pod: &Pod) -> Api<Pod> {
    Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default())
}

/// Its containers have ended: the kubelet takes the object away.
async fn end(client: &Client, pod: &Pod) -> Result<()> {
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    match api(client, pod).delete(&pod.name_any(), &at_once).await {
        Err(error) if !is_absent(&error) && !is_unreadable(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

async fn start(client: &Client, pod: &Pod) -> Result<()> {
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let is_true = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(is_true);
    let status = json!({"status": {"phase": "Running", "startTime": now, "conditions": conditions}});
    match api(client, pod).patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(status)).await
    {
        Err(error) if !is_absent(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// A Node that takes pods.
struct Place {
    labels: BTreeMap<String, String>,
    pods: usize,
}

/// Binds pods that wait to the least loaded node that takes pods and has the labels that they ask for.
async fn schedule(client: &Client, nodes: &BTreeSet<String>, pods: &[Pod]) -> Result<()> {
    let waiting: Vec<&Pod> = pods
        .iter()
        .filter(|pod| node_of(pod).is_none() && pod.metadata.deletion_timestamp.is_none())
        .collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    for node in Api::<Node>::all(client.clone()).list(&ListParams::default()).await? {
        if nodes.contains(&node.name_any()) && takes_pods(&node) {
            places.insert(node.name_any(), Place { labels: node.labels().clone(), pods: 0 });
        }
    }
    for node in pods.iter().filter_map(node_of) {
        if let Some(place) = places.get_mut(node) {
            place.pods += 1;
        }
    }
    for pod in waiting {
        let daemon = node_of_daemon(pod);
        let fitting = places.iter_mut().filter(|(name, place)| {
            daemon.is_none_or(|node| node == name.as_str()) && selects(pod, &place.labels)
        });
        let Some((node, place)) = fitting.min_by_key(|(_, place)| place.pods) else { continue };
        place.pods += 1;
        let binding: Binding = serde_json::from_value(json!({
            "metadata": {"name": pod.name_any(), "namespace": pod.namespace()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }))?;
        let bound: Result<serde_json::Value, _> = api(client, pod)
            .create_subresource("binding", &pod.name_any(), &PostParams::default(), &binding)
            .await;
        match bound {
            Err(error) if !is_absent(&error) && !is_conflict(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The Node that the `DaemonSet` controller has made a pod for, which it names in the pod's affinity.
fn node_of_daemon(pod: &Pod) -> Option<&str> {
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.first()?.match_fields.as_ref()?;
    fields.first().filter(|field| field.key == "metadata.name")?.values.as_ref()?.first().map(String::as_str)
}

/// Whether a Node has the labels of a pod's `nodeSelector`.
fn selects(pod: &Pod, labels: &BTreeMap<String, String>) -> bool {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.node_selector.as_ref());
    wanted.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
}

fn takes_pods(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let cordoned = spec.and_then(|spec| spec.unschedulable).unwrap_or_default();
    let tainted = spec.and_then(|spec| spec.taints.as_ref()).is_some_and(|taints| {
        taints.iter().any(|taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute")
    });
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.is_some_and(|all| {
        all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    });
    ready && !cordoned && !tainted
}
