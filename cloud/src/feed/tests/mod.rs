//! The feed against a scripted queue and cloud, on paused time.

mod delivery;
mod notices;
mod trust;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    AlwaysLeading, CallObserver, CloudError, CloudFactory, Connection, EventKind, EventOutcome, Inventories,
    Inventory, InventoryParts, Limits, Place, Queue, QueueMessage, QueueName, Result, Supervisor,
    testing::{
        FakeCloud, TEMPLATE_TAG, TokioClock,
        events::{ACCOUNT, REGION},
        group, once_a_minute, pass,
    },
};

/// A queue that hides what was received, as SQS does.
#[derive(Default)]
pub(super) struct FakeQueue {
    messages: Mutex<Vec<Held>>,
    failures: Mutex<VecDeque<CloudError>>,
    /// How deletes are refused, one after another.
    undeletable: Mutex<VecDeque<CloudError>>,
    arrived: Notify,
    pub(super) receives: Mutex<usize>,
    pub(super) lookups: Mutex<usize>,
}

struct Held {
    body: String,
    visible_at: Instant,
    received: u32,
    receipt: String,
}

impl FakeQueue {
    pub(super) fn send(&self, body: impl Into<String>) {
        let held =
            Held { body: body.into(), visible_at: Instant::now(), received: 0, receipt: String::new() };
        self.messages.lock().unwrap().push(held);
        self.arrived.notify_one();
    }

    pub(super) fn len(&self) -> usize {
        self.messages.lock().unwrap().len()
    }

    pub(super) fn fail(&self, errors: impl IntoIterator<Item = CloudError>) {
        self.failures.lock().unwrap().extend(errors);
    }

    pub(super) fn refuse_deletes(&self, errors: impl IntoIterator<Item = CloudError>) {
        self.undeletable.lock().unwrap().extend(errors);
    }

    fn take(&self, hidden: Duration) -> Vec<QueueMessage> {
        let now = Instant::now();
        let mut taken = Vec::new();
        for (index, held) in self.messages.lock().unwrap().iter_mut().enumerate() {
            if held.visible_at <= now && taken.len() < 10 {
                held.visible_at = now + hidden;
                held.received += 1;
                held.receipt = format!("{index}-{}-{}", held.received, held.body.len());
                taken.push(QueueMessage {
                    id: index.to_string(),
                    receipt: held.receipt.clone(),
                    receive_count: held.received,
                    body: held.body.clone(),
                });
            }
        }
        taken
    }
}

#[async_trait]
impl Queue for FakeQueue {
    async fn url(&self, name: &str) -> Result<String> {
        *self.lookups.lock().unwrap() += 1;
        Ok(format!("https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"))
    }

    async fn receive(&self, _: &str, wait: Duration, hidden: Duration) -> Result<Vec<QueueMessage>> {
        *self.receives.lock().unwrap() += 1;
        if let Some(error) = self.failures.lock().unwrap().pop_front() {
            return Err(error);
        }
        let deadline = Instant::now() + wait;
        loop {
            let taken = self.take(hidden);
            if !taken.is_empty() || Instant::now() >= deadline {
                return Ok(taken);
            }
            let look = (Instant::now() + Duration::from_secs(1)).min(deadline);
            let _ = tokio::time::timeout_at(look, self.arrived.notified()).await;
        }
    }

    async fn delete(&self, _: &str, receipts: &[String]) -> Result<()> {
        assert!((1..=10).contains(&receipts.len()), "SQS takes 1 to 10");
        if let Some(error) = self.undeletable.lock().unwrap().pop_front() {
            return Err(error);
        }
        self.messages.lock().unwrap().retain(|held| !receipts.contains(&held.receipt));
        Ok(())
    }
}

/// What was reported of queues and events.
#[derive(Default)]
pub(super) struct Reported {
    pub(super) events: Mutex<BTreeMap<(EventKind, EventOutcome), usize>>,
    pub(super) queues: Mutex<Vec<bool>>,
    /// An event of this kind meets a defect.
    pub(super) panics_at: Mutex<Option<EventKind>>,
}

impl CallObserver for Reported {
    fn called(&self, _: &str, _: &'static str, _: bool, _: &'static str, _: Duration) {}

    fn queue_available(&self, _: &str, region: &str, up: bool) {
        assert_eq!(region, REGION);
        self.queues.lock().unwrap().push(up);
    }

    fn event(&self, kind: EventKind, outcome: EventOutcome) {
        let panics_at = *self.panics_at.lock().unwrap();
        assert_ne!(Some(kind), panics_at, "as planned");
        *self.events.lock().unwrap().entry((kind, outcome)).or_default() += 1;
    }
}

struct Factory(Arc<FakeCloud>, Arc<FakeQueue>);

impl CloudFactory for Factory {
    fn connect(&self, _: &Place) -> Connection {
        let events = Some((self.1.clone() as Arc<dyn Queue>, QueueName::Name("capasg".to_owned())));
        Connection { cloud: self.0.clone(), events }
    }
}

pub(super) struct Bench {
    pub(super) cloud: Arc<FakeCloud>,
    pub(super) queue: Arc<FakeQueue>,
    pub(super) reported: Arc<Reported>,
    pub(super) inventory: Arc<Inventory>,
    pub(super) clock: Arc<TokioClock>,
    _regions: Arc<Inventories>,
    _loop: DropGuard,
}

/// A region whose group `a` has the instance `i-a`, read and quiet.
pub(super) async fn bench() -> Bench {
    bench_over(FakeQueue::default()).await
}

pub(super) async fn bench_over(queue: FakeQueue) -> Bench {
    let (cloud, queue, reported) = (FakeCloud::new(), Arc::new(queue), Arc::new(Reported::default()));
    let (clock, shutdown) = (TokioClock::start(), CancellationToken::new());
    let parts = InventoryParts {
        factory: Arc::new(Factory(cloud.clone(), queue.clone())),
        guard: Arc::new(AlwaysLeading),
        observer: reported.clone(),
        clock: clock.clone(),
        limits: Limits::default(),
        cadence: once_a_minute(),
        template_tag: TEMPLATE_TAG,
        supervisor: Supervisor::default(),
    };
    let regions = Inventories::new(parts, &shutdown);
    let inventory = regions.inventory(&Place::of_process(REGION));
    cloud.put_group(group("a", &["i-a"]));
    inventory.register("a");
    pass(Duration::from_secs(1)).await;
    Bench { cloud, queue, reported, inventory, clock, _regions: regions, _loop: shutdown.drop_guard() }
}

impl Bench {
    pub(super) fn polls(&self) -> usize {
        self.cloud.count("DescribeAutoScalingGroups")
    }

    pub(super) fn taken(&self, kind: EventKind, outcome: EventOutcome) -> usize {
        self.reported.events.lock().unwrap().get(&(kind, outcome)).copied().unwrap_or(0)
    }
}
