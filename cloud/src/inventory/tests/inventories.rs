//! One inventory for each place.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::SOON;
use crate::{
    AlwaysLeading, CallObserver, CloudFactory, Connection, Identity, Inventories, InventoryParts, Limits,
    NoObserver, Place, Supervisor, View,
    testing::{FakeCloud, TEMPLATE_TAG, TokioClock, group, once_a_minute, pass},
};

#[derive(Default)]
struct Factory(Mutex<BTreeMap<String, Arc<FakeCloud>>>);

impl CloudFactory for Factory {
    fn connect(&self, place: &Place) -> Connection {
        let cloud = FakeCloud::new();
        cloud.put_group(group("a", &[]));
        let key = format!("{} {}", place.identity.name, place.region);
        let before = self.0.lock().unwrap().insert(key, cloud.clone());
        assert!(before.is_none(), "a place is connected once");
        Connection::new(cloud)
    }
}

fn parts(factory: &Arc<Factory>) -> InventoryParts {
    InventoryParts {
        factory: factory.clone(),
        guard: Arc::new(AlwaysLeading),
        observer: Arc::new(NoObserver),
        clock: TokioClock::start(),
        limits: Limits::default(),
        cadence: once_a_minute(),
        template_tag: TEMPLATE_TAG,
        supervisor: Supervisor::default(),
    }
}

/// Fails at the first call.
#[derive(Default)]
struct Defect(AtomicBool);

impl CallObserver for Defect {
    fn called(&self, _: &str, _: &'static str, _: bool, _: &'static str, _: Duration) {}

    fn waited(&self, _: &'static str, _: Duration) {
        assert!(self.0.swap(true, Ordering::SeqCst), "as planned");
    }
}

#[tokio::test(start_paused = true)]
async fn a_region_whose_polls_panicked_is_polled_again() {
    let (factory, shutdown) = (Arc::new(Factory::default()), CancellationToken::new());
    let parts = InventoryParts { observer: Arc::new(Defect::default()), ..parts(&factory) };
    let supervisor = parts.supervisor.clone();
    let regions = Inventories::new(parts, &shutdown);
    let inventory = regions.inventory(&Place::of_process("eu-west-1"));
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
    let regions = Inventories::new(parts(&factory), &shutdown);
    let mut changes = regions.changes();
    assert!(factory.0.lock().unwrap().is_empty());
    for region in ["eu-west-1", "us-east-2", "eu-west-1"] {
        regions.inventory(&Place::of_process(region)).register("a");
    }
    pass(SOON).await;
    let mut told = vec![changes.recv().await.unwrap(), changes.recv().await.unwrap()];
    told.sort();
    let expected = ["eu-west-1", "us-east-2"].map(|region| (Place::of_process(region), "a".to_owned()));
    assert_eq!(told, expected);
    assert!(changes.try_recv().is_err());
    shutdown.cancel();
    regions.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn regions_can_be_driven_step_by_step() {
    let factory = Arc::new(Factory::default());
    let regions = Inventories::stepped(parts(&factory));
    regions.inventory(&Place::of_process("eu-west-1")).register("a");
    pass(SOON).await;
    assert!(!regions.inventory(&Place::of_process("eu-west-1")).view("a").settled(), "no loop runs");
    assert!(regions.next_due().is_some());
    regions.poll_due().await;
    assert!(regions.inventory(&Place::of_process("eu-west-1")).view("a").settled());
}

fn at(identity: &str, region: &str) -> Place {
    let identity = Identity { name: identity.to_owned(), ..Identity::process() };
    Place { identity: Arc::new(identity), region: region.to_owned() }
}

/// Views of two identities are never mixed, also if both see groups of the same name.
#[tokio::test(start_paused = true)]
async fn each_identity_has_an_inventory_of_its_own() {
    let (factory, shutdown) = (Arc::new(Factory::default()), CancellationToken::new());
    let all = Inventories::new(parts(&factory), &shutdown);
    let mut changes = all.changes();
    for identity in ["a", "b"] {
        all.inventory(&at(identity, "eu-west-1")).register("a");
    }
    pass(SOON).await;
    let mut told = vec![changes.recv().await.unwrap(), changes.recv().await.unwrap()];
    told.sort();
    assert_eq!(told, ["a", "b"].map(|identity| (at(identity, "eu-west-1"), "a".to_owned())));
    factory.0.lock().unwrap()["b eu-west-1"].world().groups.clear();
    pass(Duration::from_mins(3)).await;
    assert!(matches!(all.inventory(&at("a", "eu-west-1")).view("a"), View::Present { .. }));
    assert!(matches!(all.inventory(&at("b", "eu-west-1")).view("a"), View::Absent { .. }));
    assert_eq!(all.identities().len(), 2);
    shutdown.cancel();
    all.stopped().await;
}

/// What no pool uses costs neither memory nor calls.
#[tokio::test(start_paused = true)]
async fn places_that_no_pool_uses_are_closed() {
    let (factory, shutdown) = (Arc::new(Factory::default()), CancellationToken::new());
    let all = Inventories::new(parts(&factory), &shutdown);
    let used = all.inventory(&at("", "eu-west-1"));
    used.register("a");
    for n in 0..500 {
        let _ = all.inventory(&at("", &format!("aa-west-{n}")));
    }
    let left = all.inventory(&at("", "us-east-1"));
    left.register("a");
    assert_eq!(all.open().len(), 502);
    pass(Duration::from_mins(17)).await;
    assert_eq!(all.open().len(), 2);
    left.forget("a");
    pass(Duration::from_mins(17)).await;
    assert_eq!(all.open().len(), 1);
    let reads = factory.0.lock().unwrap()[" us-east-1"].count("DescribeAutoScalingGroups");
    pass(Duration::from_mins(10)).await;
    assert_eq!(factory.0.lock().unwrap()[" us-east-1"].count("DescribeAutoScalingGroups"), reads);
    assert!(used.view("a").settled(), "it is still polled");
    shutdown.cancel();
    all.stopped().await;
}
