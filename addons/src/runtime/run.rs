//! The loop that reconciles what the queue contains.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant as Started},
};

use capasg_cloud::Supervisor;
use chrono::Utc;
use futures::FutureExt as _;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{
    Item, Limits,
    backoff::Backoff,
    gauges::{AllGauges, ReleaseGauges},
    index::{Index, ReleaseCounts, Seen},
    queue::Queue,
    references,
    watches::{self, Source},
};
use crate::controller::{Context, Next, ObjectKey, ReconcileError, reconcile, reconcile_chart};

/// Events that wait for the loop. A watch that is faster waits.
const EVENTS: usize = 1024;

/// How the controllers run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only this namespace; all if none.
    pub namespace: Option<String>,
    /// How many objects are reconciled at the same time.
    pub limits: Limits,
    /// An object that nothing wakes is reconciled again after about this long.
    pub sync_period: Duration,
    /// Keeps the watches running.
    pub supervisor: Supervisor,
}

/// Receives each reconcile, for metrics.
pub trait ReconcileObserver: Send + Sync + 'static {
    /// A reconcile of `controller` finished with `outcome` (`ok`, or a bounded reason).
    fn reconciled(&self, controller: &'static str, outcome: &'static str, took: Duration);
    /// There are these releases.
    fn releases(&self, counts: &ReleaseCounts);
    /// The gauges of a `HelmReleaseProxy` have changed; `None` if it was deleted.
    fn release(&self, key: &ObjectKey, gauges: Option<ReleaseGauges>);
    /// This many of them have resources that another actor changed.
    fn drifted(&self, releases: usize);
    /// This many objects of `controller` wait for a retry.
    fn in_backoff(&self, controller: &'static str, objects: usize);
}

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
    #[error("the reconcile panicked")]
    Panicked,
}

impl Failed {
    fn reason(&self) -> &'static str {
        match self {
            Self::Reconcile(error) => error.reason(),
            Self::Panicked => "Panicked",
        }
    }
}

/// The state of the loop.
struct Runner {
    context: Arc<Context>,
    options: Options,
    observer: Arc<dyn ReconcileObserver>,
    index: Index,
    gauges: AllGauges,
    queue: Queue,
    backoff: Backoff,
    reconciles: JoinSet<(Item, Result<Next, Failed>)>,
    /// How many reconciles were started.
    count: u64,
}

/// Runs until `shutdown`, then finishes what is being reconciled. Nothing continues after the future is dropped.
pub async fn run(
    context: Context,
    options: Options,
    observer: Arc<dyn ReconcileObserver>,
    shutdown: CancellationToken,
) {
    let (events, mut seen) = mpsc::channel(EVENTS);
    let source = Source { client: context.client.clone(), namespace: options.namespace.clone(), events };
    let mut tasks = JoinSet::new();
    watches::start(&source, &mut tasks, &options.supervisor, &shutdown);
    let (references, in_use) = watch::channel(std::collections::BTreeSet::new());
    let follow = move || references::follow(source.clone(), in_use.clone());
    tasks.spawn(options.supervisor.keep("watches of what objects refer to", &shutdown, follow));

    let mut runner = Runner {
        context: Arc::new(context),
        queue: Queue::new(options.limits),
        options,
        observer,
        index: Index::default(),
        gauges: AllGauges::default(),
        backoff: Backoff::default(),
        reconciles: JoinSet::new(),
        count: 0,
    };
    loop {
        runner.start();
        let due = runner.queue.next_after(Instant::now());
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = runner.reconciles.join_next() => runner.ended(ended),
            Some(event) = seen.recv() => {
                let is_release = matches!(event, Seen::Release(_));
                if let Seen::Release(release) = &event {
                    for (key, gauges) in runner.gauges.take(release) {
                        runner.observer.release(&key, gauges);
                    }
                }
                runner.wake(event);
                if is_release {
                    runner.observer.releases(&runner.index.releases());
                    runner.observer.drifted(runner.index.drifted());
                }
                if let Some(in_use) = runner.index.changed_references() {
                    runner.index.retain(&in_use);
                    references.send_if_modified(|known| {
                        let is_changed = *known != in_use;
                        *known = in_use;
                        is_changed
                    });
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
    drop(tasks);
    while let Some(ended) = runner.reconciles.join_next().await {
        runner.ended(ended);
    }
}

impl Runner {
    fn wake(&mut self, event: Seen) {
        let now = Instant::now();
        for (item, after) in self.index.take(event) {
            self.queue.wake(item, now + after);
        }
    }

    /// Starts what is due within the limits.
    fn start(&mut self) {
        while let Some(item) = self.queue.take(Instant::now(), |release| self.index.cluster_of(release)) {
            self.count += 1;
            let (context, observer) = (Arc::clone(&self.context), Arc::clone(&self.observer));
            let span = tracing::info_span!(
                "reconcile",
                controller = item.controller(),
                object = %item.key(),
                reconcile_id = self.count
            );
            let task = async move {
                let started = Started::now();
                let result = AssertUnwindSafe(one(&context, &item)).catch_unwind().await;
                let result = result.unwrap_or(Err(Failed::Panicked));
                let outcome = result.as_ref().map_or_else(Failed::reason, |_| "ok");
                observer.reconciled(item.controller(), outcome, started.elapsed());
                if let Err(error) = &result {
                    tracing::warn!(%error, reason = error.reason(), "reconcile failed");
                }
                (item, result)
            };
            self.reconciles.spawn(task.instrument(span));
        }
    }

    /// Schedules the next reconcile of an object.
    fn ended(&mut self, ended: Result<(Item, Result<Next, Failed>), tokio::task::JoinError>) {
        // Panics are results, and tasks are aborted only with the whole set.
        let Ok((item, result)) = ended else { return };
        let (now, period) = (Instant::now(), self.options.sync_period);
        let (next, had_failed) = match result {
            Ok(next) => (after(next, period), self.backoff.succeeded(&item)),
            Err(_) => (Some(spread(self.backoff.failed(&item))), true),
        };
        if had_failed {
            let controller = item.controller();
            self.observer.in_backoff(controller, self.backoff.count(controller));
        }
        self.queue.finished(&item, next.map(|after| now + after));
    }
}

async fn one(context: &Context, item: &Item) -> Result<Next, Failed> {
    let next = match item {
        Item::Chart(key) => reconcile_chart(context, key, Utc::now()).await,
        Item::Release(key) => reconcile(context, key, Utc::now()).await,
    };
    Ok(next?)
}

/// After which time an object is reconciled again.
fn after(next: Next, period: Duration) -> Option<Duration> {
    match next {
        Next::Now => Some(Duration::ZERO),
        Next::At(at) => Some((at - Utc::now()).to_std().unwrap_or_default().min(period)),
        Next::Later => Some(spread(period)),
        Next::Never => None,
    }
}

/// A delay that differs by up to a tenth, so that objects do not meet again and again.
fn spread(delay: Duration) -> Duration {
    delay.mul_f64(rand::random::<f64>().mul_add(0.2, 0.9))
}
