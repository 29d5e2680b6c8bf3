//! What events about instances make of notices.

use super::bench;
use crate::{
    EventKind, EventOutcome, NoticeKind,
    testing::{events::health, group, pass},
};

// Pains: W18, P17
#[tokio::test(start_paused = true)]
async fn of_an_event_about_thousands_of_instances_only_ours_are_kept() {
    let bench = bench().await;
    let many: Vec<String> = (0..5_000).map(|number| format!("i-{number:05}")).collect();
    let mut named: Vec<&str> = many.iter().map(String::as_str).collect();
    named.push("i-a");
    bench.queue.send(health("upcoming", &named));
    pass(std::time::Duration::from_secs(1)).await;
    assert!(bench.inventory.instance_notice("i-a").is_some());
    let strangers = many.iter().filter(|id| bench.inventory.instance_notice(id).is_some()).count();
    assert_eq!(strangers, 100);
    assert_eq!(bench.taken(EventKind::ScheduledRetirement, EventOutcome::Processed), 1);
    let asked: usize = bench.cloud.calls("DescribeInstances").iter().map(|call| call.args.len()).sum();
    assert!(asked < 10, "{asked} machines asked for");
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_retirement_that_is_closed_is_none() {
    let bench = bench().await;
    bench.queue.send(health("upcoming", &["i-a"]));
    pass(std::time::Duration::from_secs(1)).await;
    bench.inventory.acknowledge_notices("a", bench.inventory.notice_revision("a"));
    let later = health("closed", &["i-a"]).replace("2024-10-04T00:00:00Z", "2024-10-04T00:00:30Z");
    bench.queue.send(later);
    pass(std::time::Duration::from_secs(1)).await;
    assert_eq!(bench.inventory.instance_notice("i-a").unwrap().kind, NoticeKind::RetirementClosed);
    bench.cloud.put_group(group("a", &[]));
    bench.inventory.request_read("a");
    pass(std::time::Duration::from_secs(700)).await;
    assert_eq!(bench.inventory.instance_notice("i-a"), None, "it is kept as long as the instance");
}
