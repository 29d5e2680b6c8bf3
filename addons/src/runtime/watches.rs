//! The watches of the kinds that are always watched, as tasks that the supervisor keeps running.

use std::time::Duration;

use capasg_api::{capi::Cluster, errors, names::labels};
use capasg_cloud::Supervisor;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Resource,
    core::{ApiResource, DynamicObject, DynamicResourceScope, PartialObjectMeta},
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Config, Event},
    },
};
use tokio::{sync::mpsc::Sender, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::index::Seen;
use crate::{HelmChartProxy, HelmReleaseProxy};

/// How long the API server keeps a watch open. A connection that stays silent for longer is broken.
const WATCH_TIMEOUT: Duration = Duration::from_mins(1);

/// Where the watches send events.
pub(super) type Events = Sender<Seen>;

/// What a watch sends for an event.
type ToSeen = fn(Event<DynamicObject>) -> Seen;

/// What watches share.
#[derive(Clone)]
pub(super) struct Source {
    pub client: Client,
    /// Only this namespace; all if none.
    pub namespace: Option<String>,
    pub events: Events,
}

impl Source {
    pub(super) fn dynamic<K>(&self, resource: &ApiResource) -> Api<K>
    where
        K: Resource<Scope = DynamicResourceScope, DynamicType = ApiResource>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    fn secrets(&self) -> Api<PartialObjectMeta<Secret>> {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}

pub(super) fn config() -> Config {
    Config::default().timeout(u32::try_from(WATCH_TIMEOUT.as_secs()).unwrap_or(u32::MAX))
}

/// Starts the watches; they end when `tasks` is dropped.
pub(super) fn start(
    source: &Source,
    tasks: &mut JoinSet<()>,
    supervisor: &Supervisor,
    shutdown: &CancellationToken,
) {
    let kinds: [(ApiResource, ToSeen); 3] = [
        (ApiResource::erase::<HelmChartProxy>(&()), Seen::Chart),
        (ApiResource::erase::<HelmReleaseProxy>(&()), Seen::Release),
        (ApiResource::erase::<Cluster>(&()), Seen::Cluster),
    ];
    for (resource, seen) in kinds {
        let (api, events, kind) =
            (source.dynamic::<DynamicObject>(&resource), source.events.clone(), resource.kind.clone());
        let name = format!("watch of {kind}");
        let task = move || {
            let stream = watcher::watcher(api.clone(), config()).default_backoff();
            follow(stream, events.clone(), kind.clone(), seen)
        };
        tasks.spawn(supervisor.keep(&name, shutdown, task));
    }
    let (api, events) = (source.secrets(), source.events.clone());
    // Cluster API requires the label of Secrets with kubeconfigs. Their content is not requested.
    let of_clusters = config().labels(labels::CLUSTER_NAME);
    let kind = Secret::kind(&()).into_owned();
    let task = move || {
        let stream = watcher::watcher(api.clone(), of_clusters.clone()).default_backoff();
        follow(stream, events.clone(), kind.clone(), Seen::Secret)
    };
    tasks.spawn(supervisor.keep("watch of Secrets", shutdown, task));
}

/// Sends all events. An error is followed by a new listing.
async fn follow<K>(
    stream: impl Stream<Item = watcher::Result<Event<K>>>,
    events: Events,
    kind: String,
    seen: impl Fn(Event<K>) -> Seen,
) {
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        match event {
            // Without a receiver, the controllers have ended.
            Ok(event) => {
                let _ = events.send(seen(event)).await;
            }
            Err(error) => {
                let error = errors::of_watch(&error);
                tracing::warn!(error, kind, "a watch failed and is restarted");
            }
        }
    }
}
