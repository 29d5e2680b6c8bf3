//! The inventories, one for each identity and Region, created when a pool first uses the place and dropped when no pool does.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

use crate::{
    Cadence, CallObserver, Clock, Cloud, Gateway, Identity, Inventory, Limits, Place, Queue, QueueName,
    Supervisor, WriteGuard, feed::Feed,
};

/// How long a place is kept that no pool is registered for: longer than users take to correct what a pool waits for.
const UNUSED: Duration = Duration::from_mins(15);
/// How often unused places are looked for.
const SWEEP: Duration = Duration::from_mins(1);

/// What a place is reached with.
pub struct Connection {
    /// The cloud.
    pub cloud: Arc<dyn Cloud>,
    /// The event queue, if one is configured.
    pub events: Option<(Arc<dyn Queue>, QueueName)>,
}

impl Connection {
    /// A cloud without an event queue.
    #[must_use]
    pub fn new(cloud: Arc<dyn Cloud>) -> Self {
        Self { cloud, events: None }
    }
}

/// Connects to a place.
pub trait CloudFactory: Send + Sync + 'static {
    /// The cloud and the event queue of a place; called once for as long as the place is open. Nothing is sent yet.
    fn connect(&self, place: &Place) -> Connection;
}

/// What the call path of each place is made of.
#[derive(Clone)]
pub struct InventoryParts {
    /// Connects to places.
    pub factory: Arc<dyn CloudFactory>,
    /// Allows writes while this process leads.
    pub guard: Arc<dyn WriteGuard>,
    /// Counts calls.
    pub observer: Arc<dyn CallObserver>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The rate limits.
    pub limits: Limits,
    /// How often the inventories read.
    pub cadence: Cadence,
    /// The key of a tag that the launch templates of all pools have.
    pub template_tag: &'static str,
    /// Keeps the loops of the places running.
    pub supervisor: Supervisor,
}

/// Receives place and group of each change.
type Listener = mpsc::UnboundedSender<(Place, String)>;

/// An inventory that is in use.
struct Open {
    inventory: Arc<Inventory>,
    feed: Option<Arc<Feed>>,
    /// Ends its loops.
    stop: CancellationToken,
    used: Instant,
}

/// The inventories by place.
pub struct Inventories {
    parts: InventoryParts,
    loops: Option<(CancellationToken, TaskTracker)>,
    open: Mutex<BTreeMap<Place, Open>>,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

impl Inventories {
    /// Inventories whose loops run as tasks until `shutdown`; [`Self::stopped`] waits for them. Must be called within a
    /// tokio runtime.
    #[must_use]
    pub fn new(parts: InventoryParts, shutdown: &CancellationToken) -> Arc<Self> {
        let supervisor = parts.supervisor.clone();
        let tasks = TaskTracker::new();
        let own = Arc::new(Self::with_loops(parts, Some((shutdown.clone(), tasks.clone()))));
        // The task must not keep the inventories alive.
        let (weak, stop) = (Arc::downgrade(&own), shutdown.clone());
        let run = move || {
            let (weak, stop) = (weak.clone(), stop.clone());
            async move {
                while stop.run_until_cancelled(tokio::time::sleep(SWEEP)).await.is_some() {
                    let Some(own) = weak.upgrade() else { return };
                    own.close_unused();
                }
            }
        };
        tasks.spawn(supervisor.keep("unused inventories", shutdown, run));
        own
    }

    /// Inventories without loops, for callers that drive time themselves with [`Self::poll_due`].
    #[must_use]
    pub fn stepped(parts: InventoryParts) -> Arc<Self> {
        Arc::new(Self::with_loops(parts, None))
    }

    fn with_loops(parts: InventoryParts, loops: Option<(CancellationToken, TaskTracker)>) -> Self {
        Self { parts, loops, open: Mutex::default(), listeners: Arc::default() }
    }

    /// The inventory of a place. Unless the inventories are stepped, the first call for a place starts its loop and must
    /// be made within a tokio runtime.
    #[must_use]
    pub fn inventory(&self, place: &Place) -> Arc<Inventory> {
        let mut all = self.lock();
        let open = all.entry(place.clone()).or_insert_with(|| self.connect(place));
        open.used = Instant::now();
        open.inventory.clone()
    }

    fn connect(&self, place: &Place) -> Open {
        let InventoryParts { factory, guard, observer, clock, limits, cadence, template_tag, supervisor } =
            self.parts.clone();
        let Connection { cloud, events } = factory.connect(place);
        let gateway = Gateway::new(cloud, guard, observer, clock.clone(), limits).of(&place.identity);
        let inventory = Inventory::new(Arc::new(gateway), clock, cadence, template_tag);
        let feed =
            events.map(|(queue, name)| Arc::new(Feed::new(&place.region, queue, name, inventory.clone())));
        let (listeners, at) = (self.listeners.clone(), place.clone());
        inventory.listen(move |group| {
            listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .retain(|listener| listener.send((at.clone(), group.to_owned())).is_ok());
            true
        });
        let stop = self.loops.as_ref().map_or_else(CancellationToken::new, |(stop, _)| stop.child_token());
        if let Some((_, tasks)) = &self.loops {
            let (region, identity) = (&place.region, place.identity.name.as_str());
            if let Some(feed) = feed.clone() {
                let ending = stop.clone();
                let run = move || {
                    let (feed, stop) = (feed.clone(), ending.clone());
                    async move { feed.run(stop).await }
                };
                tasks.spawn(supervisor.keep(&format!("event queue of {region}"), &stop, run));
            }
            let (polled, ending) = (inventory.clone(), stop.clone());
            let span = tracing::info_span!("inventory", region, identity);
            let run = move || {
                let (inventory, stop) = (polled.clone(), ending.clone());
                async move { inventory.run(stop).await }.instrument(span.clone())
            };
            tasks.spawn(supervisor.keep(&format!("inventory of {region}"), &stop, run));
        }
        Open { inventory, feed, stop, used: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the places that no pool was registered for or asked about for 15 minutes, with their loops, connections and
    /// credentials.
    pub fn close_unused(&self) {
        let now = Instant::now();
        self.lock().retain(|place, open| {
            if open.inventory.is_registered() {
                open.used = now;
            }
            let is_used = now < open.used + UNUSED;
            if !is_used {
                open.stop.cancel();
                self.parts.observer.closed(place);
            }
            is_used
        });
    }

    fn feeds(&self) -> Vec<Arc<Feed>> {
        self.lock().values().filter_map(|open| open.feed.clone()).collect()
    }

    /// Receives the waiting events and deletes the processed ones, once: a single step for callers that drive time
    /// themselves.
    pub async fn poll_events(&self) {
        let feeds = self.feeds();
        join_all(feeds.iter().map(|feed| feed.step())).await;
    }

    /// When [`Self::poll_events`] may receive again; `None` without queues.
    #[must_use]
    pub fn next_events_due(&self) -> Option<Instant> {
        self.feeds().iter().map(|feed| feed.next()).min()
    }

    /// Whether [`Self::poll_events`] would delete events that were processed meanwhile.
    #[must_use]
    pub fn has_events_to_delete(&self) -> bool {
        self.feeds().iter().any(|feed| feed.has_processed())
    }

    /// Place and group of every change from now on, as [`Inventory::changes`], those of places opened later included.
    #[must_use]
    pub fn changes(&self) -> mpsc::UnboundedReceiver<(Place, String)> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }

    /// The places in use.
    #[must_use]
    pub fn open(&self) -> Vec<(Place, Arc<Inventory>)> {
        self.lock().iter().map(|(place, open)| (place.clone(), open.inventory.clone())).collect()
    }

    /// When the next read of any place is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.lock().values().filter_map(|open| open.inventory.next_due()).min()
    }

    /// Does the reads that are due now in every place, once, and drops the places that no pool uses.
    pub async fn poll_due(&self) {
        self.close_unused();
        let open = self.open();
        join_all(open.iter().map(|(_, inventory)| inventory.poll_due())).await;
    }

    /// The identities in use.
    #[must_use]
    pub fn identities(&self) -> Vec<Arc<Identity>> {
        let mut identities: Vec<_> = self.lock().keys().map(|place| place.identity.clone()).collect();
        identities.dedup();
        identities
    }

    /// Waits until the loops have stopped, after `shutdown` was cancelled.
    pub async fn stopped(&self) {
        if let Some((_, tasks)) = &self.loops {
            tasks.close();
            tasks.wait().await;
        }
    }
}
