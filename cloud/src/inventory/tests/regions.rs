//! One inventory per region.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{Cadence, SOON};
use crate::{
    AlwaysLeading, CallObserver, Cloud, CloudFactory, Limits, NoObserver, RegionParts, Regions, Supervisor,
    View,
    testing::{FakeCloud, TokioClock, group, pass},
};

#[derive(Default)]
struct Factory(Mutex<BTreeMap<String, Arc<FakeCloud>>>);

impl CloudFactory for Factory {
    fn connect(&self, region: &str) -> Arc<dyn Cloud> {
        let cloud = FakeCloud::new();
        cloud.put_group(group("a", &[]));
        let before = self.0.lock().unwrap().insert(region.to_owned(), cloud.clone());
        assert!(before.is_none(), "a region is connected once");
        cloud
    }
}

fn parts(factory: &Arc<Factory>) -> RegionParts {
    RegionParts {
        factory: factory.clone(),
        guard: Arc::new(AlwaysLeading),
        observer: Arc::new(NoObserver),
        clock: TokioClock::start(),
        limits: Limits::default(),
        cadence: Cadence::default(),
        supervisor: Supervisor::default(),
    }
}

/// Fails at the first call.
#[derive(Default)]
struct Defect(AtomicBool);

impl CallObserver for Defect {
    fn called(&self, _: &'static str, _: bool, _: &'static str, _: Duration) {}

    fn waited(&self, _: &'static str, _: Duration) {
        assert!(self.0.swap(true, Ordering::SeqCst), "as planned");
    }
}

#[tokio::test(start_paused = true)]
async fn a_region_whose_polls_panicked_is_polled_again() {
    let (factory, shutdown) = (Arc::new(Factory::default()), CancellationToken::new());
    let parts = RegionParts { observer: Arc::new(Defect::default()), ..parts(&factory) };
    let supervisor = parts.supervisor.clone();
    let regions = Regions::new(parts, shutdown.clone());
    let inventory = regions.inventory("eu-west-1");
    inventory.register("a");
    pass(SOON).await;
    assert_eq!(inventory.view("a"), View::Unknown);
    pass(Duration::from_secs(1)).await;
    assert!(inventory.view("a").settled());
    assert_eq!(supervisor.problem(), None);
    shutdown.cancel();
    regions.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn regions_are_connected_on_first_use_and_their_changes_merged() {
    let (factory, shutdown) = (Arc::new(Factory::default()), CancellationToken::new());
    let regions = Regions::new(parts(&factory), shutdown.clone());
    let mut changes = regions.changes();
    assert!(factory.0.lock().unwrap().is_empty());
    for region in ["eu-west-1", "us-east-2", "eu-west-1"] {
        regions.inventory(region).register("a");
    }
    pass(SOON).await;
    let mut told = vec![changes.recv().await.unwrap(), changes.recv().await.unwrap()];
    told.sort();
    let expected = ["eu-west-1", "us-east-2"].map(|region| (region.to_owned(), "a".to_owned()));
    assert_eq!(told, expected);
    assert!(changes.try_recv().is_err());
    shutdown.cancel();
    regions.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn regions_can_be_driven_step_by_step() {
    let factory = Arc::new(Factory::default());
    let regions = Regions::stepped(parts(&factory));
    regions.inventory("eu-west-1").register("a");
    pass(SOON).await;
    assert!(!regions.inventory("eu-west-1").view("a").settled(), "no loop runs");
    assert!(regions.next_due().is_some());
    regions.poll_due().await;
    assert!(regions.inventory("eu-west-1").view("a").settled());
}
