//! The inventories of one identity, one per region, made when a pool first names the region.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Utc};
use futures::future::join_all;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Cadence, CallObserver, Clock, Cloud, Gateway, Inventory, Limits, Queue, QueueName, WriteGuard,
    events::Feed,
};

/// Makes the connection to a region.
pub trait CloudFactory: Send + Sync + 'static {
    /// The cloud of a region; called once for each region. Nothing is sent yet.
    fn connect(&self, region: &str) -> Arc<dyn Cloud>;

    /// The queue of events of a region, if there is to be one; asked once for each region. Nothing is sent yet.
    fn events(&self, _region: &str) -> Option<(Arc<dyn Queue>, QueueName)> {
        None
    }
}

/// What every region's call path is made with.
#[derive(Clone)]
pub struct RegionParts {
    /// Makes the connections.
    pub factory: Arc<dyn CloudFactory>,
    /// Who may write.
    pub guard: Arc<dyn WriteGuard>,
    /// Who counts calls.
    pub observer: Arc<dyn CallObserver>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The pace.
    pub limits: Limits,
    /// How often the inventories look.
    pub cadence: Cadence,
}

/// Who is told of region and group.
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

    /// Inventories without loops, for those who drive time themselves with [`Self::poll_due`].
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
        let RegionParts { factory, guard, observer, clock, limits, cadence } = self.parts.clone();
        let gateway = Gateway::new(factory.connect(region), guard, observer, clock.clone(), limits);
        let inventory = Inventory::new(Arc::new(gateway), clock.clone(), cadence);
        let feed = factory
            .events(region)
            .map(|(queue, name)| Arc::new(Feed::new(region, queue, name, inventory.clone(), clock)));
        let (listeners, name) = (self.listeners.clone(), region.to_owned());
        inventory.listen(move |group| {
            listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .retain(|listener| listener.send((name.clone(), group.to_owned())).is_ok());
            true
        });
        if let Some((shutdown, tasks)) = &self.loops {
            let (inventory, shutdown) = (inventory.clone(), shutdown.clone());
            if let Some(feed) = feed {
                let shutdown = shutdown.clone();
                tasks.spawn(async move { feed.run(shutdown).await });
            }
            tasks.spawn(async move { inventory.run(shutdown).await });
        } else {
            self.feeds().extend(feed);
        }
        inventory
    }

    fn feeds(&self) -> MutexGuard<'_, Vec<Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives the events that are there and deletes those that were seen, once: a single step for those who drive
    /// time themselves.
    pub async fn take_events(&self) {
        let feeds = self.feeds().clone();
        join_all(feeds.iter().map(|feed| feed.step())).await;
    }

    /// When [`Self::take_events`] may receive again; `None` without queues.
    #[must_use]
    pub fn next_events(&self) -> Option<DateTime<Utc>> {
        self.feeds().iter().map(|feed| feed.next()).min()
    }

    /// Whether [`Self::take_events`] would delete events that were seen meanwhile.
    #[must_use]
    pub fn saw_events(&self) -> bool {
        self.feeds().iter().any(|feed| feed.has_seen())
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
    pub fn next_due(&self) -> Option<DateTime<Utc>> {
        self.open_regions().iter().filter_map(|(_, inventory)| inventory.next_due()).min()
    }

    /// Does the reads that are due now in every region, once.
    pub async fn poll_due(&self) {
        let regions = self.open_regions();
        join_all(regions.iter().map(|(_, inventory)| inventory.poll_due())).await;
    }

    /// Waits until the loops have ended, after the shutdown was asked for.
    pub async fn stopped(&self) {
        if let Some((_, tasks)) = &self.loops {
            tasks.close();
            tasks.wait().await;
        }
    }
}
