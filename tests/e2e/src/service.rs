//! A service in the workload cluster, guarded by a `PodDisruptionBudget`, and what became of its pods.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{Look, Write};
use capasg_fake_aws::LogEntry;
use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt as _,
    runtime::watcher::{Config, Event, watcher},
};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use crate::{Rig, eventually};

/// The call that ends instances by name.
pub const END: &str = "TerminateInstanceInAutoScalingGroup";
/// The call that lets an instance go which our hook holds.
pub const COMPLETE: &str = "CompleteLifecycleAction";

#[derive(Default)]
struct Seen {
    /// Whether each pod that is there is ready and stays.
    ready: BTreeMap<String, bool>,
    /// Where each pod was or is.
    nodes: BTreeMap<String, String>,
    /// The fewest ready pods since sampling began.
    fewest: Option<usize>,
}

/// A Deployment whose pods run on the test's own Nodes only, watched through the API's own watch.
pub struct Service<'a> {
    rig: &'a Rig<'a>,
    name: String,
    seen: Arc<Mutex<Seen>>,
    _task: AbortOnDropHandle<()>,
}

impl Rig<'_> {
    /// Runs so many pods on the test's Nodes, of which at least `budget` may not be disrupted, and waits until all are
    /// ready. Without a budget anybody may evict all of them.
    ///
    /// # Errors
    /// When they are not ready in time.
    pub async fn serve(&self, pods: usize, budget: Option<usize>) -> Result<Service<'_>> {
        let name = format!("service-{}", self.scenario.namespace);
        let labels = json!({"app": name});
        let mut items = vec![json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": pods,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "nodeSelector": {"topology.kubernetes.io/region": self.scenario.region},
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "main", "image": "main"}],
                    },
                },
            },
        })];
        items.extend(budget.map(|budget| {
            json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"minAvailable": budget, "selector": {"matchLabels": labels}},
            })
        }));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let workload = self.cluster()?;
        workload.kubectl().feed(["apply", "--server-side", "--filename=-"], &list).await?;
        let api: Api<Pod> = Api::namespaced(workload.client().await?, "default");
        let seen = Arc::<Mutex<Seen>>::default();
        let task = tokio::spawn(watch(api, format!("app={name}"), Arc::clone(&seen)));
        let service = Service { rig: self, name, seen, _task: AbortOnDropHandle::new(task) };
        eventually("all pods of the service are ready", async || {
            let ready = lock(&service.seen).ready.values().filter(|ready| **ready).count();
            let healthy = if budget.is_some() { service.healthy().await? } else { pods };
            Ok(Look::when(ready == pods && healthy == pods, format!("{ready} ready, {healthy} counted")))
        })
        .await?;
        lock(&service.seen).fewest = Some(pods);
        Ok(service)
    }
}

async fn watch(api: Api<Pod>, labels: String, seen: Arc<Mutex<Seen>>) {
    let mut changes = watcher(api, Config::default().labels(&labels)).boxed();
    // A list after a broken watch: what it does not hold is gone.
    let mut listed: Option<Vec<Pod>> = None;
    while let Some(change) = changes.next().await {
        let mut seen = lock(&seen);
        match change {
            Ok(Event::Init) => listed = Some(Vec::new()),
            Ok(Event::InitApply(pod)) => listed.get_or_insert_default().push(pod),
            Ok(Event::InitDone) => {
                seen.ready.clear();
                for pod in listed.take().unwrap_or_default() {
                    note(&mut seen, &pod);
                }
                sample(&mut seen);
            }
            Ok(Event::Apply(pod)) => {
                note(&mut seen, &pod);
                sample(&mut seen);
            }
            Ok(Event::Delete(pod)) => {
                seen.ready.remove(&pod.name_any());
                sample(&mut seen);
            }
            Err(_) => {}
        }
    }
}

fn note(seen: &mut Seen, pod: &Pod) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready =
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"));
    seen.ready.insert(pod.name_any(), ready && pod.metadata.deletion_timestamp.is_none());
    if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) {
        seen.nodes.insert(pod.name_any(), node);
    }
}

fn sample(seen: &mut Seen) {
    let ready = seen.ready.values().filter(|ready| **ready).count();
    seen.fewest = seen.fewest.map(|fewest| fewest.min(ready));
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service<'_> {
    /// The fewest pods that were ready at any time since all were.
    #[must_use]
    pub fn fewest(&self) -> usize {
        lock(&self.seen).fewest.unwrap_or_default()
    }

    /// The pods that the disruption controller counts as healthy.
    async fn healthy(&self) -> Result<usize> {
        let path = "--output=jsonpath={.status.currentHealthy}";
        let budget = ["get", "poddisruptionbudget", &self.name, "--namespace=default", path];
        Ok(self.rig.cluster()?.kubectl().run(budget).await?.parse().unwrap_or_default())
    }

    /// What core asked of the eviction API for pods of the service.
    ///
    /// # Errors
    /// When the audit log cannot be read.
    pub async fn evictions(&self) -> Result<Vec<Write>> {
        let all = self.rig.workload_writes().await?.into_iter();
        let prefix = format!("{}-", self.name);
        Ok(all.filter(|write| write.subresource == "eviction" && write.name.starts_with(&prefix)).collect())
    }

    /// Checks that every pod that was on a Node was evicted before its instance was let go: ended by our call, or by the
    /// completion of our hook. Gives how many pods that were.
    ///
    /// # Errors
    /// When one was not, or nobody let the instance go.
    pub async fn was_drained(&self, instance: &str, node: &str, let_go: &str) -> Result<usize> {
        let at = first_call(&self.rig.calls_of(let_go), instance)
            .with_context(|| format!("no {let_go} of {instance}"))?;
        let evictions = self.evictions().await?;
        let pods: Vec<String> = {
            let seen = lock(&self.seen);
            seen.nodes.iter().filter(|(_, on)| *on == node).map(|(pod, _)| pod.clone()).collect()
        };
        for pod in &pods {
            let evicted = evictions.iter().find(|write| write.name == *pod && write.code < 300);
            let evicted =
                evicted.with_context(|| format!("{pod} on {node} ({instance}) was never evicted"))?;
            ensure!(evicted.at < at, "{pod} was evicted at {}, {instance} let go at {at}", evicted.at);
        }
        Ok(pods.len())
    }

    /// Removes it.
    ///
    /// # Errors
    /// When kubectl fails.
    pub async fn end(&self) -> Result<()> {
        let all = [
            "delete",
            "deployment,poddisruptionbudget",
            "--namespace=default",
            "--wait=false",
            "--ignore-not-found",
        ];
        self.rig.cluster()?.kubectl().run(all.into_iter().chain([self.name.as_str()])).await?;
        Ok(())
    }
}

/// When our manager first asked for this of an instance.
#[must_use]
pub fn first_call(calls: &[LogEntry], instance: &str) -> Option<DateTime<Utc>> {
    calls.iter().find(|call| call.instances.iter().any(|id| id == instance))?.wall_time
}

/// How often our manager ended each instance by name; calls of other people are not counted.
#[must_use]
pub fn ends_of(calls: &[LogEntry]) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    for call in calls.iter().filter(|call| call.action == END && call.wall_time.is_some()) {
        for id in &call.instances {
            *ends.entry(id.clone()).or_default() += 1;
        }
    }
    ends
}
