//! Runs the controllers: watches and inventory changes wake pools, each is reconciled by at most one worker at a time,
//! failures are retried with a backoff of their own for each object.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use capasg_api::ASGMachinePool;
use capasg_cloud::{Clock, Inventories, Supervisor};
use futures::{FutureExt, Stream, StreamExt};
use kube::{
    Client,
    runtime::{
        controller::{Action, Config, applier},
        reflector::ObjectRef,
    },
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use crate::backoff::{Curve, FailedOperations, TRANSIENT};
use crate::client::{ApiServer, Namespaces, Scope, watch};
use crate::kubernetes::Randomness;
use crate::machine_pool::{ReconcileError, Requeue};
use crate::{Context, ObjectKey, PoolObserver, identity, machine, machine_pool};

/// A reconcile that takes longer is cancelled and retried: a hidden retry must not occupy a worker.
const RECONCILE_DEADLINE: Duration = Duration::from_mins(2);

/// How the controllers run.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is watched.
    pub scope: Scope,
    /// Where the Secrets of identities are.
    pub namespaces: Namespaces,
    /// Pools that are reconciled at the same time.
    pub concurrency: u16,
    /// A pool that nothing wakes is reconciled again after this long.
    pub sync_period: Duration,
    /// Keeps the background tasks of the controllers running.
    pub supervisor: Supervisor,
}

/// Receives each reconcile, for metrics.
pub trait ReconcileObserver: Send + Sync + 'static {
    /// A reconcile of `controller` finished with `outcome` (`ok`, or a bounded reason).
    fn reconciled(&self, controller: &'static str, outcome: &'static str, took: Duration);
    /// This many objects of `controller` wait for a retry.
    fn in_backoff(&self, controller: &'static str, objects: usize);
}

/// The observers that count for metrics.
#[derive(Clone)]
pub struct Observers {
    /// Receives each reconcile.
    pub reconciles: Arc<dyn ReconcileObserver>,
    /// Receives what happens to pools.
    pub pools: Arc<dyn PoolObserver>,
}

/// A reconcile that failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
    #[error("the reconcile took longer than {} s", RECONCILE_DEADLINE.as_secs())]
    Deadline,
    #[error("the reconcile panicked")]
    Panicked,
}

impl Failed {
    fn reason(&self) -> &'static str {
        match self {
            Self::Reconcile(error) => error.reason(),
            Self::Deadline => "DeadlineExceeded",
            Self::Panicked => "Panicked",
        }
    }

    /// What failed, and how it is retried.
    fn backoff(&self) -> (&'static str, Curve) {
        match self {
            Self::Reconcile(error) => (error.operation(), error.curve()),
            Self::Deadline | Self::Panicked => (self.reason(), TRANSIENT),
        }
    }
}

struct Worker {
    context: Arc<Context>,
    observer: Arc<dyn ReconcileObserver>,
    sync_period: Duration,
    failures: Mutex<BTreeMap<ObjectKey, FailedOperations>>,
    counter: AtomicU64,
}

/// Runs until `shutdown`, then finishes what is being reconciled.
pub async fn run(
    client: Client,
    inventories: Arc<Inventories>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Randomness>,
    options: Options,
    observers: Observers,
    shutdown: CancellationToken,
) {
    let (wakes, queue) = mpsc::unbounded_channel();
    let tracker = TaskTracker::new();
    let supervisor = &options.supervisor;
    let caches = watch(&client, &options.scope, &wakes, (&tracker, supervisor), &shutdown);
    // With partly filled caches, existing Machines would count as missing.
    let ready = async {
        let all = (
            caches.pools.wait_until_ready(),
            caches.asg_machines.wait_until_ready(),
            caches.machine_pools.wait_until_ready(),
            caches.machines.wait_until_ready(),
            caches.clusters.wait_until_ready(),
            caches.secrets.wait_until_ready(),
            caches.identities.wait_until_ready(),
            caches.guards.wait_until_ready(),
            caches.namespaces.wait_until_ready(),
        );
        let _ = futures::join!(all.0, all.1, all.2, all.3, all.4, all.5, all.6, all.7, all.8);
    };
    tokio::select! {
        () = ready => tracing::info!("caches synced"),
        () = shutdown.cancelled() => return,
    }
    let kubernetes = Arc::new(ApiServer::new(client, caches.clone(), options.namespaces.clone()));
    let worker = Arc::new(Worker {
        context: Arc::new(
            Context::new(kubernetes, Arc::clone(&inventories), clock, random)
                .observed_by(Arc::clone(&observers.pools)),
        ),
        observer: observers.reconciles,
        sync_period: options.sync_period,
        failures: Mutex::default(),
        counter: AtomicU64::new(0),
    });
    wake_on_changes(&worker, &inventories, &wakes, (&tracker, supervisor), &shutdown);
    let (kubernetes, stop) = (Arc::clone(&worker.context.kubernetes), shutdown.clone());
    let orphans = move || machine::run(Arc::clone(&kubernetes), stop.clone());
    tracker.spawn(supervisor.keep("release of orphaned ASGMachines", &shutdown, orphans));
    let (context, woken, stop) = (Arc::clone(&worker.context), wakes.clone(), shutdown.clone());
    let namespace = options.scope.namespace.clone();
    let identities =
        move || identity::run(Arc::clone(&context), namespace.clone(), woken.clone(), stop.clone());
    tracker.spawn(supervisor.keep("statuses of identities", &shutdown, identities));
    let config = Config::default().concurrency(options.concurrency);
    let stop = shutdown.clone();
    let exists = |key: &ObjectKey| worker.context.kubernetes.pool(key).is_some();
    let forget = |key| forget(Arc::clone(&worker), key);
    let queue = existing(UnboundedReceiverStream::new(queue), exists, forget, &tracker)
        .map(|key| Ok::<_, Infallible>(ObjectRef::<ASGMachinePool>::new(&key.name).within(&key.namespace)))
        .take_until(async move { stop.cancelled().await });
    let results = applier(
        |pool: Arc<ASGMachinePool>, worker: Arc<Worker>| reconcile(pool, worker).boxed(),
        |_, never: &Infallible, _| match *never {},
        Arc::clone(&worker),
        caches.pools.clone(),
        Box::pin(queue),
        config,
    );
    results
        .for_each(|result| {
            if let Err(error) = result {
                tracing::debug!(%error, "a pool was not reconciled");
            }
            futures::future::ready(())
        })
        .await;
    tracker.close();
    tracker.wait().await;
}

/// Drops what is remembered of a deleted pool.
async fn forget(worker: Arc<Worker>, key: ObjectKey) {
    worker.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    machine_pool::forget(&worker.context, &key).await;
}

/// The woken pools that exist. A pool that is deleted has nothing to reconcile: it is forgotten in a task of its own,
/// since that waits for its reconcile in progress, which must not delay other pools.
fn existing<F: Future<Output = ()> + Send + 'static>(
    queue: impl Stream<Item = ObjectKey>,
    exists: impl Fn(&ObjectKey) -> bool,
    forget: impl Fn(ObjectKey) -> F,
    tracker: &TaskTracker,
) -> impl Stream<Item = ObjectKey> {
    queue.filter_map(move |key| {
        let exists = exists(&key);
        if !exists {
            tracker.spawn(forget(key.clone()));
        }
        futures::future::ready(exists.then_some(key))
    })
}

/// A changed group wakes exactly its pools.
fn wake_on_changes(
    worker: &Arc<Worker>,
    inventories: &Arc<Inventories>,
    wakes: &mpsc::UnboundedSender<ObjectKey>,
    (tracker, supervisor): (&TaskTracker, &Supervisor),
    shutdown: &CancellationToken,
) {
    // Outlives the task, so that no change is lost when the task is started again.
    let changes = Arc::new(tokio::sync::Mutex::new(inventories.changes()));
    let (worker, wakes, stop) = (Arc::clone(worker), wakes.clone(), shutdown.clone());
    let task = move || {
        let (changes, worker, wakes, stop) =
            (Arc::clone(&changes), Arc::clone(&worker), wakes.clone(), stop.clone());
        async move {
            let mut changes = changes.lock().await;
            loop {
                tokio::select! {
                    change = changes.recv() => {
                        let Some((place, group)) = change else { return };
                        for pool in worker.context.pools_of(&place, &group) {
                            let _ = wakes.send(pool);
                        }
                    }
                    () = stop.cancelled() => return,
                }
            }
        }
    };
    tracker.spawn(supervisor.keep("changes of groups", shutdown, task));
}

/// Reconciles a pool. A failure is an action, too: after the backoff, or before it when something else is due.
async fn reconcile(pool: Arc<ASGMachinePool>, worker: Arc<Worker>) -> Result<Action, Infallible> {
    let key = ObjectKey::of(pool.as_ref());
    let id = worker.counter.fetch_add(1, Ordering::Relaxed);
    let span =
        tracing::info_span!("reconcile", controller = "asgmachinepool", object = %key, reconcile_id = id);
    let started = Instant::now();
    let work = machine_pool::reconcile(&worker.context, &key).instrument(span.clone());
    let result =
        match tokio::time::timeout(RECONCILE_DEADLINE, std::panic::AssertUnwindSafe(work).catch_unwind())
            .await
        {
            Err(_) => Err(Failed::Deadline),
            Ok(Err(_)) => Err(Failed::Panicked),
            Ok(Ok(result)) => result.map_err(Failed::from),
        };
    let (after, failed) = match result {
        Ok(Requeue { after, failed }) => (after, failed.into_iter().map(Failed::from).collect()),
        Err(failed) => (None, vec![failed]),
    };
    let outcome = failed.first().map_or("ok", Failed::reason);
    worker.observer.reconciled("asgmachinepool", outcome, started.elapsed());
    let after = after.map_or(worker.sync_period, |after| after.to_std().unwrap_or_default());
    let after = after.min(worker.sync_period);
    let _entered = span.entered();
    for failed in &failed {
        tracing::warn!(error = %failed, reason = failed.reason(), "reconcile failed");
    }
    let retry = worker.record(&key, failed.iter().map(Failed::backoff));
    Ok(Action::requeue(retry.map_or(after, |retry| after.min(retry))))
}

impl Worker {
    /// Records what failed in a reconcile, and gives the delay before the next attempt.
    fn record(
        &self,
        key: &ObjectKey,
        failed: impl IntoIterator<Item = (&'static str, Curve)>,
    ) -> Option<Duration> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_object = failures.remove(key).unwrap_or_default();
        let had_failed = !of_object.is_empty();
        let wait = of_object.record(failed, self.context.clock.now());
        if wait.is_some() {
            failures.insert(key.clone(), of_object);
        }
        if had_failed || wait.is_some() {
            self.observer.in_backoff("asgmachinepool", failures.len());
        }
        wait.map(|wait| wait.to_std().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_deleted_pool_that_is_busy_delays_no_other_pool() {
        let keys = ["deleted", "one", "deleted", "two"].map(|name| ObjectKey::new("ns", name));
        let tracker = TaskTracker::new();
        // A reconcile of the deleted pool does not end.
        let forget = |_| std::future::pending();
        let exists = |key: &ObjectKey| key.name != "deleted";
        let woken = existing(futures::stream::iter(keys), exists, forget, &tracker);
        let woken: Vec<ObjectKey> = woken.collect().await;
        assert_eq!(woken, ["one", "two"].map(|name| ObjectKey::new("ns", name)));
        assert_eq!(tracker.len(), 2, "both are being forgotten");
    }
}
