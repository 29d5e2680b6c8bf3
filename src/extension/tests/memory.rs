//! What the extension remembers does not grow with the number of requests.

use std::{fs, sync::Mutex};

use capasg_cloud::Clock;
use capasg_test_objects::is_long;
use chrono::TimeDelta;

use super::{requests::Requests, *};

/// Longer than a block is remembered that core does not repeat.
const PERIOD: TimeDelta = TimeDelta::minutes(31);
const PERIODS: u64 = 10;

/// The long form has a million requests.
fn requests_of_a_period() -> u64 {
    if is_long() { 100_000 } else { 300 }
}

struct Moving(Mutex<DateTime<Utc>>);

impl Clock for Moving {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap()
    }
}

/// The memory of this process in MiB. Other tests that run in it count, too.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4 / 1024
}

/// The deletion of a protected Cluster, which blocks.
fn protected(name: u64) -> Vec<u8> {
    let annotations = json!({"asg.infrastructure.cluster.x-k8s.io/deletion-protection": "true"});
    let metadata = json!({
        "name": format!("c-{name}"), "namespace": "teams", "annotations": annotations,
        "deletionTimestamp": "2026-03-01T00:00:00Z",
    });
    json!({
        "apiVersion": API_VERSION, "kind": "BeforeClusterDeleteRequest", "cluster": {"metadata": metadata},
    })
    .to_string()
    .into_bytes()
}

#[tokio::test]
async fn requests_of_ever_new_clusters_leave_nothing_behind() {
    let clock = Arc::new(Moving(Mutex::new(DateTime::from_timestamp(1_800_000_000, 0).unwrap())));
    let services = Services {
        kubernetes: Arc::new(Nothing),
        journal: Arc::new(Nothing),
        observer: Arc::new(HookMetrics::default()),
        clock: Arc::clone(&clock) as _,
        gates: vec![Box::new(Pools)],
        blocks: Blocks::default(),
        unread: Blocks::default(),
        lookups: None,
    };
    let extension = Extension::new(services, &Hook::ALL);
    let (generated, hooks) = (Requests::default(), Extension::implemented());
    let call = async |hook: Hook, body: &[u8]| {
        extension.call(hook, body, capasg_extensions::DEFAULT_BUDGET).await;
    };
    let (mut memory, count) = (Vec::new(), requests_of_a_period());
    for number in 0..PERIODS * count {
        let hook = hooks[usize::try_from(number).unwrap() % hooks.len()];
        if number % 3 == 0 {
            call(Hook::BeforeClusterDelete, &protected(number)).await;
        } else {
            call(hook, &generated.body(hook, number)).await;
        }
        if (number + 1) % count == 0 {
            let blocks = extension.services().blocks.remembered();
            // At most one block of each request of this period, and no more than the limit.
            let most = usize::try_from(count).unwrap().min(10_000);
            assert!((most / 4..=most).contains(&blocks), "{blocks} blocks after {number} requests");
            memory.push(resident());
            *clock.0.lock().unwrap() += PERIOD;
        }
    }
    call(Hook::BeforeClusterDelete, &protected(0)).await;
    assert_eq!(extension.services().blocks.remembered(), 1, "only the block of the last request");
    println!("memory after each period of {count} requests in MiB: {memory:?}");
    if is_long() {
        let (first, last) = (memory[0], memory[memory.len() - 1]);
        assert!(last <= first + 32, "{memory:?}");
    }
}
