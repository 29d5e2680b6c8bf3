//! The watches: they fill the caches and wake the pool that an event concerns (C4). An object that cannot be parsed
//! never stops a watch: it is skipped, and logged once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capasg_api::{
    ASGGuard, ASGIdentity, ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool, owner_machine_pool},
    errors,
    names::labels,
};
use capasg_cloud::Supervisor;
use futures::{Stream, StreamExt, future};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    core::{DeserializeGuard, ObjectMeta, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        reflector::{self, store::Writer},
        watcher::{self, Event},
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Caches, Index, caches::indexed_pool};
use crate::{ObjectKey, kubernetes::pools_of_asg_machine};

/// What is watched.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Only this namespace; all if none.
    pub namespace: Option<String>,
    /// Only pools whose label `cluster.x-k8s.io/watch-filter` has this value (C5), with their ASGMachines, whatever
    /// labels these have: their pool may have been labelled after they were created.
    pub watch_filter: Option<String>,
}

/// How long the API server keeps a watch open. Each that is healthy ends by then, so that a connection that stays silent
/// for longer is broken. The watch continues where it ended.
pub const WATCH_TIMEOUT: Duration = Duration::from_mins(1);

/// Where the watches send the pools that an event concerns.
pub type Wakes = UnboundedSender<ObjectKey>;

/// Starts all watches as tasks of the tracker, which the supervisor keeps running; they stop with `shutdown`.
#[must_use]
pub fn watch(
    client: &Client,
    scope: &Scope,
    wakes: &Wakes,
    (tracker, supervisor): (&TaskTracker, &Supervisor),
    shutdown: &CancellationToken,
) -> Caches {
    let (pools, pools_writer) = reflector::store();
    let (asg_machines, asg_machines_writer) = reflector::store();
    let (machine_pools, machine_pools_writer) = reflector::store();
    let (machines, machines_writer) = reflector::store();
    let (clusters, clusters_writer) = reflector::store();
    let (secrets, secrets_writer) = reflector::store();
    let (identities, identities_writer) = reflector::store();
    let (guards, guards_writer) = reflector::store();
    let (namespaces, namespaces_writer) = reflector::store();
    let (asg_machines_of, machines_of) = (Index::default(), Index::default());
    let caches = Caches {
        watch_filter: scope.watch_filter.clone(),
        pools,
        asg_machines,
        asg_machines_of: asg_machines_of.clone(),
        machine_pools,
        machines,
        machines_of: machines_of.clone(),
        clusters,
        secrets,
        identities,
        guards,
        namespaces,
    };
    let seconds = u32::try_from(WATCH_TIMEOUT.as_secs()).unwrap_or(u32::MAX);
    let all = watcher::Config::default().timeout(seconds);
    let ours = match &scope.watch_filter {
        Some(filter) => all.clone().labels(&format!("{}={filter}", labels::WATCH_FILTER)),
        None => all.clone(),
    };
    let start = Start { client, scope, wakes, tracker, supervisor, shutdown };
    start.kind::<ASGMachinePool, _>(ours, pools_writer, |pool| vec![ObjectKey::of(pool)]);
    let view = caches.clone();
    let index = move |event: &Event<ASGMachine>| asg_machines_of.record(event, indexed_pool);
    start.indexed(all.clone(), asg_machines_writer, index, move |machine| of_asg_machine(&view, machine));
    let view = caches.clone();
    start.kind::<MachinePool, _>(all.clone(), machine_pools_writer, move |owner| of_owner(&view, owner));
    let view = caches.clone();
    let index = move |event: &Event<Machine>| machines_of.record(event, labelled_pool);
    start.indexed(all.clone(), machines_writer, index, move |machine| of_machine(&view, machine));
    let view = caches.clone();
    start.kind::<Cluster, _>(all.clone(), clusters_writer, move |cluster| of_cluster(&view, cluster));
    let view = caches.clone();
    // Of every type: a user may name any Secret in a MachinePool.
    start.metadata::<Secret, _>(all.clone(), secrets_writer, move |secret| of_secret(&view, secret));
    // What operators say concerns every pool that may be meant.
    let (view, changed) = (caches.clone(), Changed::default());
    let concerned = move |identity: &ASGIdentity| changed.pools(&view, identity);
    start.cluster_scoped::<ASGIdentity, _>(all.clone(), identities_writer, concerned);
    let (view, changed) = (caches.clone(), Changed::default());
    let concerned = move |guard: &ASGGuard| changed.pools(&view, guard);
    start.cluster_scoped::<ASGGuard, _>(all.clone(), guards_writer, concerned);
    let view = caches.clone();
    start.namespaces(all, namespaces_writer, move |namespace| {
        view.pools_of(&namespace.name_any()).iter().map(|pool| ObjectKey::of(pool.as_ref())).collect()
    });
    caches
}

struct Start<'a> {
    client: &'a Client,
    scope: &'a Scope,
    wakes: &'a Wakes,
    tracker: &'a TaskTracker,
    supervisor: &'a Supervisor,
    shutdown: &'a CancellationToken,
}

impl Start<'_> {
    fn kind<K, F>(&self, config: watcher::Config, writer: Writer<K>, concerns: F)
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
        K::DynamicType: Default + Eq + Hash + Clone + Send + Sync,
        F: Fn(&K) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        self.indexed(config, writer, |_| {}, concerns);
    }

    /// As [`Self::kind`]; `index` receives each event before the cache does.
    fn indexed<K, F>(
        &self,
        config: watcher::Config,
        writer: Writer<K>,
        index: impl Fn(&Event<K>) + Send + Sync + 'static,
        concerns: F,
    ) where
        K: Resource<Scope = kube::core::NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
        K::DynamicType: Default + Eq + Hash + Clone + Send + Sync,
        F: Fn(&K) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        let api = self.api::<DeserializeGuard<K>>();
        let kind = K::kind(&K::DynamicType::default()).into_owned();
        let (name, index) = (kind.clone(), Arc::new(index));
        let events = move || {
            let index = Arc::clone(&index);
            let events = watcher::watcher(api.clone(), config.clone()).default_backoff();
            readable(events, name.clone()).inspect(move |event| {
                if let Ok(event) = event {
                    index(event);
                }
            })
        };
        self.follow(events, kind, writer, concerns);
    }

    /// Metadata only: nothing else is requested from the API server. Of these, the name and the version are kept:
    /// annotations may repeat the whole object, as `kubectl apply` writes them.
    fn metadata<K, F>(&self, config: watcher::Config, writer: Writer<PartialObjectMeta<K>>, concerns: F)
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + Send
            + Sync
            + 'static,
        F: Fn(&PartialObjectMeta<K>) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        let api = self.api::<PartialObjectMeta<K>>();
        let events = move || {
            watcher::watcher(api.clone(), config.clone())
                .default_backoff()
                .modify(|object: &mut PartialObjectMeta<K>| object.metadata = identity(&object.metadata))
        };
        self.follow(events, K::kind(&()).into_owned(), writer, concerns);
    }

    /// As [`Self::kind`], for a kind without namespaces.
    fn cluster_scoped<K, F>(&self, config: watcher::Config, writer: Writer<K>, concerns: F)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        F: Fn(&K) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        let (api, kind) = (Api::<DeserializeGuard<K>>::all(self.client.clone()), K::kind(&()).into_owned());
        let name = kind.clone();
        let events =
            move || readable(watcher::watcher(api.clone(), config.clone()).default_backoff(), name.clone());
        self.follow(events, kind, writer, concerns);
    }

    /// Namespaces by name and labels: nothing else is requested, and a change of nothing else wakes a pool.
    fn namespaces<F>(
        &self,
        config: watcher::Config,
        writer: Writer<PartialObjectMeta<Namespace>>,
        concerns: F,
    ) where
        F: Fn(&PartialObjectMeta<Namespace>) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        let api = Api::<PartialObjectMeta<Namespace>>::all(self.client.clone());
        let events = move || {
            watcher::watcher(api.clone(), config.clone()).default_backoff().modify(|object| {
                let labels = object.metadata.labels.take();
                object.metadata = ObjectMeta { labels, ..identity(&object.metadata) };
            })
        };
        self.follow(events, "Namespace".to_owned(), writer, concerns);
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        match &self.scope.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    /// Keeps the cache and wakes the pools that an event concerns. A watch that is started again lists all objects, as
    /// after an error.
    fn follow<K, S, F>(
        &self,
        events: impl Fn() -> S + Send + Sync + 'static,
        kind: String,
        writer: Writer<K>,
        concerns: F,
    ) where
        K: Resource + Clone + Debug + Send + Sync + 'static,
        K::DynamicType: Default + Eq + Hash + Clone + Send + Sync,
        S: Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
        F: Fn(&K) -> Vec<ObjectKey> + Send + Sync + 'static,
    {
        let (wakes, writer, name) = (self.wakes.clone(), Mutex::new(writer), format!("watch of {kind}"));
        let take = Arc::new(move |event: watcher::Result<Event<K>>| {
            if let Ok(event) = &event {
                writer.lock().unwrap_or_else(PoisonError::into_inner).apply_watcher_event(event);
            }
            match event {
                Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) => {
                    for pool in concerns(&object) {
                        // The receiver exists as long as the controllers run.
                        let _ = wakes.send(pool);
                    }
                }
                Ok(Event::Init | Event::InitDone) => {}
                Err(error) => {
                    let error = errors::of_watch(&error);
                    tracing::warn!(error, kind, "a watch failed and is restarted");
                }
            }
        });
        let shutdown = self.shutdown.clone();
        let task = move || {
            let (take, shutdown) = (Arc::clone(&take), shutdown.clone());
            let events = events().modify(|object: &mut K| object.managed_fields_mut().clear());
            async move {
                let stream = events.for_each(|event| {
                    take(event);
                    future::ready(())
                });
                tokio::select! {
                    () = stream => {}
                    () = shutdown.cancelled() => {}
                }
            }
        };
        self.tracker.spawn(self.supervisor.keep(&name, self.shutdown, task));
    }
}

/// The generations of the objects of a kind: a status that changes concerns no pool.
#[derive(Default)]
struct Changed(Mutex<BTreeMap<String, Option<i64>>>);

impl Changed {
    /// All pools, if the spec of the object changed or the object was deleted.
    fn pools<K: ResourceExt>(&self, caches: &Caches, object: &K) -> Vec<ObjectKey> {
        let (name, generation) = (object.name_any(), object.meta().generation);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_deleted = object.meta().deletion_timestamp.is_some();
        if known.insert(name, generation) == Some(generation) && !is_deleted {
            return Vec::new();
        }
        caches.pools.state().iter().map(|pool| ObjectKey::of(pool.as_ref())).collect()
    }
}

/// The name and the version of an object.
fn identity(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        resource_version: metadata.resource_version.clone(),
        ..ObjectMeta::default()
    }
}

/// Drops objects that cannot be parsed as `K`.
fn readable<K: Resource>(
    events: impl Stream<Item = watcher::Result<Event<DeserializeGuard<K>>>>,
    kind: String,
) -> impl Stream<Item = watcher::Result<Event<K>>> {
    events.filter_map(move |event| {
        let keep = |guard: DeserializeGuard<K>, event: fn(K) -> Event<K>| match guard.0 {
            Ok(object) => Some(Ok(event(object))),
            Err(odd) => {
                let namespace = odd.metadata.namespace.as_deref().unwrap_or_default();
                let name = odd.metadata.name.as_deref().unwrap_or_default();
                let error = errors::without_values(&odd.error);
                tracing::warn!(kind, namespace, name, error, "skipping an object that cannot be parsed");
                None
            }
        };
        future::ready(match event {
            Ok(Event::Apply(guard)) => keep(guard, Event::Apply),
            Ok(Event::InitApply(guard)) => keep(guard, Event::InitApply),
            Ok(Event::Delete(guard)) => keep(guard, Event::Delete),
            Ok(Event::Init) => Some(Ok(Event::Init)),
            Ok(Event::InitDone) => Some(Ok(Event::InitDone)),
            Err(error) => Some(Err(error)),
        })
    })
}

/// The pool of an ASGMachine.
fn of_asg_machine(caches: &Caches, machine: &ASGMachine) -> Vec<ObjectKey> {
    pools_of_asg_machine(machine, |namespace| caches.pools_of(namespace))
}

/// The namespace and pool-name label of a Machine.
fn labelled_pool(machine: &Machine) -> Option<ObjectKey> {
    Some(ObjectKey::new(machine.namespace()?, machine.labels().get(labels::POOL_NAME)?))
}

/// The pool that a MachinePool refers to, and those that it referred to before: their owner references name it.
fn of_owner(caches: &Caches, owner: &MachinePool) -> Vec<ObjectKey> {
    let (namespace, name) = (owner.namespace(), owner.name_any());
    let pools = caches.pools.state_filter(|pool| {
        pool.namespace() == namespace && owner_machine_pool(pool).is_some_and(|owner| owner.name == name)
    });
    let keys = pools.iter().map(|pool| ObjectKey::of(pool.as_ref()));
    infrastructure_of(owner).into_iter().chain(keys).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The pool that a MachinePool refers to.
fn infrastructure_of(owner: &MachinePool) -> Option<ObjectKey> {
    let reference = &owner.spec.template.spec.infrastructure_ref;
    let ours = reference.kind == ASGMachinePool::kind(&()) && reference.api_group == capasg_api::GROUP;
    ours.then(|| ObjectKey::new(owner.namespace().unwrap_or_default(), &reference.name))
}

/// The pool of a Machine, by the ASGMachine it stands for.
fn of_machine(caches: &Caches, machine: &Machine) -> Vec<ObjectKey> {
    let reference = &machine.spec.infrastructure_ref;
    if reference.kind != ASGMachine::kind(&()) || reference.api_group != capasg_api::GROUP {
        return Vec::new();
    }
    let namespace = machine.namespace().unwrap_or_default();
    let asg_machine = caches.asg_machine(&ObjectKey::new(&namespace, &reference.name));
    let pools = asg_machine.map(|found| of_asg_machine(caches, &found)).unwrap_or_default();
    if pools.is_empty() { owner_of(caches, machine, &namespace).into_iter().collect() } else { pools }
}

/// The same by the MachinePool that owns the Machine, once its ASGMachine is deleted.
fn owner_of(caches: &Caches, machine: &Machine, namespace: &str) -> Option<ObjectKey> {
    let owner = machine.owner_references().iter().find(|owner| owner.kind == MachinePool::kind(&()))?;
    infrastructure_of(caches.machine_pool(&ObjectKey::new(namespace, &owner.name))?.as_ref())
}

/// The pools of a Cluster: pause, unpause and infrastructure readiness concern them all (F3).
fn of_cluster(caches: &Caches, cluster: &Cluster) -> Vec<ObjectKey> {
    let (namespace, name) = (cluster.namespace(), cluster.name_any());
    let pools = caches.pools.state_filter(|pool| {
        pool.namespace() == namespace && pool.labels().get(labels::CLUSTER_NAME) == Some(&name)
    });
    pools.iter().map(|pool| ObjectKey::of(pool.as_ref())).collect()
}

/// The pools whose MachinePool takes its bootstrap data from a Secret.
fn of_secret(caches: &Caches, secret: &PartialObjectMeta<Secret>) -> Vec<ObjectKey> {
    let (namespace, name) = (secret.namespace(), secret.name_any());
    let owners = caches.machine_pools.state_filter(|owner| {
        owner.namespace() == namespace && owner.data_secret_name() == Some(name.as_str())
    });
    owners.iter().filter_map(|owner| infrastructure_of(owner)).collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, convert::Infallible, future::pending};

    use kube::client::Body;
    use tokio::sync::mpsc::unbounded_channel;
    use tower::service_fn;

    use super::*;

    /// The query of the first request of each watch, by the resource.
    async fn requested(scope: &Scope) -> BTreeMap<String, String> {
        let (sent, mut requests) = unbounded_channel();
        let service = service_fn(move |request: http::Request<Body>| {
            let _ = sent.send(request.uri().clone());
            pending::<Result<http::Response<Body>, Infallible>>()
        });
        let (wakes, _queue) = unbounded_channel();
        let client = Client::new(service, "default");
        let (tracker, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let _caches = watch(&client, scope, &wakes, (&tracker, &Supervisor::default()), &shutdown);
        let mut found = BTreeMap::new();
        while found.len() < tracker.len() {
            let uri = requests.recv().await.unwrap();
            let resource = uri.path().rsplit('/').next().unwrap_or_default().to_owned();
            found.insert(resource, uri.query().unwrap_or_default().to_owned());
        }
        found
    }

    // Rules: C5
    #[tokio::test]
    async fn a_watch_filter_applies_to_pools_and_not_to_what_they_own() {
        let scope = Scope { watch_filter: Some("blue".to_owned()), ..Scope::default() };
        let requested = requested(&scope).await;
        assert_eq!(requested.len(), 9, "{requested:?}");
        for (resource, query) in requested {
            let filters = query.contains("labelSelector=cluster.x-k8s.io%2Fwatch-filter%3Dblue");
            assert_eq!(filters, resource == "asgmachinepools", "{resource}: {query}");
        }
    }

    // Rules: C4
    #[tokio::test]
    async fn secrets_of_every_type_are_watched() {
        let requested = requested(&Scope::default()).await;
        let query = &requested["secrets"];
        assert!(!query.contains("Selector"), "{query}");
    }

    #[test]
    fn annotations_of_secrets_are_not_kept() {
        let applied = ("kubectl.kubernetes.io/last-applied-configuration".to_owned(), "data".to_owned());
        let metadata = ObjectMeta {
            name: Some("own".to_owned()),
            namespace: Some("ns".to_owned()),
            resource_version: Some("7".to_owned()),
            annotations: Some([applied].into()),
            ..ObjectMeta::default()
        };
        let expected = ObjectMeta { annotations: None, ..metadata.clone() };
        assert_eq!(identity(&metadata), expected);
    }
}
