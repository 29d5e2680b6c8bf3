//! The inventories of one identity, one per region, created when a pool first names the region.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::join_all;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

use crate::{
    Cadence, CallObserver, Clock, Cloud, Gateway, Inventory, Limits, Queue, QueueName, Supervisor,
    WriteGuard, feed::Feed,
};

/// Connects to a region.
pub trait CloudFactory: Send + Sync + 'static {
    /// The cloud of a region; called once for each region. Nothing is sent yet.
    fn connect(&self, region: &str) -> Arc<dyn Cloud>;

    /// The event queue of a region, if one is configured; called once for each region. Nothing is sent yet.
    fn events(&self, _region: &str) -> Option<(Arc<dyn Queue>, QueueName)> {
        None
    }
}

/// What the call path of each region is made of.
#[derive(Clone)]
pub struct RegionParts {
    /// Connects to regions.
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
    /// Keeps the loops of the regions running.
    pub supervisor: Supervisor,
}

/// Receives region and group of each change.
type Listener = mpsc::UnboundedSender<(String, String)>;

/// The inventories by region.
pub struct Regions {
    parts: RegionParts,
    loops: Option<(CancellationToken, TaskTracker)>,
    inventories: Mutex<BTreeMap<String, Arc<Inventory>>>,
    feeds: Mutex<Vec<Arc<Feed>>>,
    listeners: Arc<Mutex<Vec<Listener>>>,
}

impl Regions {
    /// Inventories whose loops run as tasks until `shutdown`; [`Self::stopped`] waits for them.
    #[must_use]
    pub fn new(parts: RegionParts, shutdown: CancellationToken) -> Arc<Self> {
        Arc::new(Self::with_loops(parts, Some((shutdown, TaskTracker::new()))))
    }

    /// Inventories without loops, for callers that drive time themselves with [`Self::poll_due`].
    #[must_use]
    pub fn stepped(parts: RegionParts) -> Arc<Self> {
        Arc::new(Self::with_loops(parts, None))
    }

    fn with_loops(parts: RegionParts, loops: Option<(CancellationToken, TaskTracker)>) -> Self {
        Self {
            parts,
            loops,
            inventories: Mutex::default(),
            feeds: Mutex::default(),
            listeners: Arc::default(),
        }
    }

    /// The inventory of a region. Unless the inventories are stepped, the first call for a region starts its loop
    /// and must be made within a tokio runtime.
    #[must_use]
    pub fn inventory(&self, region: &str) -> Arc<Inventory> {
        let mut inventories = self.inventories.lock().unwrap_or_else(PoisonError::into_inner);
        inventories.entry(region.to_owned()).or_insert_with(|| self.open(region)).clone()
    }

    fn open(&self, region: &str) -> Arc<Inventory> {
        let RegionParts { factory, guard, observer, clock, limits, cadence, supervisor } = self.parts.clone();
        let gateway = Gateway::new(factory.connect(region), guard, observer, clock.clone(), limits);
        let inventory = Inventory::new(Arc::new(gateway), clock, cadence);
        let feed = factory
            .events(region)
            .map(|(queue, name)| Arc::new(Feed::new(region, queue, name, inventory.clone())));
        let (listeners, name) = (self.listeners.clone(), region.to_owned());
        inventory.listen(move |group| {
            listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .retain(|listener| listener.send((name.clone(), group.to_owned())).is_ok());
            true
        });
        if let Some((shutdown, tasks)) = &self.loops {
            if let Some(feed) = feed {
                let stop = shutdown.clone();
                let run = move || {
                    let (feed, stop) = (feed.clone(), stop.clone());
                    async move { feed.run(stop).await }
                };
                tasks.spawn(supervisor.keep(&format!("event queue of {region}"), shutdown, run));
            }
            let (polled, stop) = (inventory.clone(), shutdown.clone());
            let span = tracing::info_span!("inventory", region);
            let run = move || {
                let (inventory, stop) = (polled.clone(), stop.clone());
                async move { inventory.run(stop).await }.instrument(span.clone())
            };
            tasks.spawn(supervisor.keep(&format!("inventory of {region}"), shutdown, run));
        } else {
            self.feeds().extend(feed);
        }
        inventory
    }

    fn feeds(&self) -> MutexGuard<'_, Vec<Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives the waiting events and deletes the processed ones, once: a single step for callers that drive time
    /// themselves.
    pub async fn poll_events(&self) {
        let feeds = self.feeds().clone();
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

    /// Region and group of every change from now on, as [`Inventory::changes`], those of regions opened later
    /// included.
    #[must_use]
    pub fn changes(&self) -> mpsc::UnboundedReceiver<(String, String)> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }

    /// The regions in use.
    #[must_use]
    pub fn open_regions(&self) -> Vec<(String, Arc<Inventory>)> {
        let inventories = self.inventories.lock().unwrap_or_else(PoisonError::into_inner);
        inventories.iter().map(|(region, inventory)| (region.clone(), inventory.clone())).collect()
    }

    /// When the next read of any region is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.open_regions().iter().filter_map(|(_, inventory)| inventory.next_due()).min()
    }

    /// Does the reads that are due now in every region, once.
    pub async fn poll_due(&self) {
        let regions = self.open_regions();
        join_all(regions.iter().map(|(_, inventory)| inventory.poll_due())).await;
    }

    /// Waits until the loops have stopped, after `shutdown` was cancelled.
    pub async fn stopped(&self) {
        if let Some((_, tasks)) = &self.loops {
            tasks.close();
            tasks.wait().await;
        }
    }
}
