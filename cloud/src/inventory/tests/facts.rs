//! Facts of machines: fetched once, in bulk, and told when they come.

use std::time::Duration;

use super::{SOON, bench};
use crate::{
    CloudError, FactsView, InstanceState, LifecycleState,
    testing::{Upset, group, machine, pass},
};

const INSTANCES: &str = "DescribeInstances";

#[tokio::test(start_paused = true)]
async fn new_members_of_all_groups_are_fetched_together_once() {
    let mut bench = bench();
    for pool in 0..50 {
        let ids: Vec<String> = (0..10).map(|nth| format!("i-{pool:02}-{nth}")).collect();
        let name = format!("pool-{pool:02}");
        bench.cloud.put_group(group(&name, &ids.iter().map(String::as_str).collect::<Vec<_>>()));
        bench.inventory.register(&name);
    }
    pass(SOON).await;
    assert_eq!(bench.cloud.count(INSTANCES), 3, "500 machines, 200 ids a call");
    let facts = bench.inventory.facts("i-49-9");
    assert_eq!(facts.facts().unwrap().private_ip.as_deref(), Some("10.0.0.7"));
    assert!(facts.facts().unwrap().tags.is_empty());
    let woken = bench.woken();
    assert_eq!(woken.len(), 50 + woken[50..].len());
    assert!(woken[50..].len() >= 50, "each group hears of its machines");
    pass(Duration::from_mins(30)).await;
    assert_eq!(bench.cloud.count(INSTANCES), 3, "and never again");
    assert_eq!(bench.woken(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_an_address_is_asked_for_again_ever_more_slowly() {
    let mut bench = bench();
    let mut young = machine("i-1");
    (young.state, young.private_ip) = (InstanceState::Pending, None);
    bench.cloud.world().machines.insert("i-1".to_owned(), young);
    bench.cloud.put_group(group("a", &["i-1"]));
    bench.inventory.register("a");
    pass(Duration::from_mins(2)).await;
    let asked: Vec<_> = bench.cloud.calls(INSTANCES).iter().map(|call| call.at.as_secs()).collect();
    assert_eq!(asked, [0, 5, 15, 35, 75]);
    assert_eq!(bench.woken(), ["a", "a"], "group and facts; the same facts again are no news");
    bench.cloud.world().machines.insert("i-1".to_owned(), machine("i-1"));
    pass(Duration::from_mins(1)).await;
    assert_eq!(bench.woken(), ["a"]);
    pass(Duration::from_mins(10)).await;
    assert_eq!(bench.cloud.count(INSTANCES), 6);
}

#[tokio::test(start_paused = true)]
async fn an_instance_with_only_an_ipv6_address_is_not_read_again() {
    let mut bench = bench();
    let mut native = machine("i-1");
    (native.private_ip, native.ipv6) = (None, ["2001:db8::7".to_owned()].into());
    bench.cloud.world().machines.insert("i-1".to_owned(), native);
    bench.cloud.put_group(group("a", &["i-1"]));
    bench.inventory.register("a");
    pass(Duration::from_mins(10)).await;
    assert_eq!(bench.cloud.count(INSTANCES), 1);
    assert!(bench.inventory.facts("i-1").facts().unwrap().ipv6.contains("2001:db8::7"));
    assert_eq!(bench.woken(), ["a", "a"], "group and facts");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_id_is_known_to_be_absent() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.inventory.request_facts("a", ["i-gone".to_owned()]);
    assert_eq!(bench.inventory.facts("i-gone"), FactsView::Unknown);
    pass(SOON).await;
    assert!(matches!(bench.inventory.facts("i-gone"), FactsView::Absent { .. }));
    assert_eq!(bench.woken(), ["a"]);
    let calls = bench.cloud.count(INSTANCES);
    bench.inventory.request_facts("a", ["i-gone".to_owned(), "i-a".to_owned()]);
    pass(SOON).await;
    assert_eq!(bench.cloud.count(INSTANCES), calls, "known");
    pass(Duration::from_secs(61)).await;
    bench.inventory.request_facts("a", ["i-gone".to_owned()]);
    pass(SOON).await;
    assert_eq!(bench.cloud.count(INSTANCES), calls + 1, "it may have been too new");
    assert_eq!(bench.woken(), [] as [&str; 0]);
    pass(Duration::from_mins(12)).await;
    assert_eq!(bench.inventory.facts("i-gone"), FactsView::Unknown, "not kept for ever");
}

/// An event names an instance before its group shows it, and before EC2 knows it.
#[tokio::test(start_paused = true)]
async fn a_machine_that_was_absent_when_asked_for_is_asked_for_again_once_its_group_has_it() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.inventory.request_facts("a", ["i-new".to_owned()]);
    pass(SOON).await;
    assert!(matches!(bench.inventory.facts("i-new"), FactsView::Absent { .. }));
    bench.woken();
    bench.cloud.put_group(group("a", &["i-a", "i-new"]));
    bench.inventory.request_read("a");
    pass(SOON).await;
    assert!(bench.inventory.facts("i-new").facts().is_some_and(|facts| facts.private_ip.is_some()));
    assert_eq!(bench.woken(), ["a", "a"], "the group and the facts");
}

#[tokio::test(start_paused = true)]
async fn an_ending_can_be_looked_into() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.world().machines.get_mut("i-a").unwrap().state = InstanceState::Terminated;
    bench.inventory.refetch_facts("a", ["i-a".to_owned()]);
    pass(SOON).await;
    assert_eq!(bench.inventory.facts("i-a").facts().unwrap().state, InstanceState::Terminated);
    assert_eq!(bench.woken(), ["a"]);
    let calls = bench.cloud.count(INSTANCES);
    pass(Duration::from_mins(10)).await;
    assert_eq!(bench.cloud.count(INSTANCES), calls);
}

#[tokio::test(start_paused = true)]
async fn facts_of_members_that_left_are_dropped() {
    let mut bench = bench();
    bench.cloud.put_group(group("a", &["i-1", "i-2"]));
    bench.inventory.register("a");
    pass(SOON).await;
    let mut smaller = group("a", &["i-1"]);
    smaller.instances[0].lifecycle = LifecycleState::TerminatingWait;
    bench.cloud.put_group(smaller);
    bench.inventory.request_read("a");
    pass(SOON).await;
    assert_eq!(bench.inventory.facts("i-2"), FactsView::Unknown);
    assert!(bench.inventory.facts("i-1").facts().is_some(), "one that ends is still a member");
    bench.cloud.put_group(group("a", &[]));
    bench.inventory.request_read("a");
    pass(SOON).await;
    assert_eq!(bench.inventory.state().facts.len(), 0);
    assert_eq!(bench.woken(), ["a", "a", "a", "a"], "the group thrice, the facts once");
}

#[tokio::test(start_paused = true)]
async fn a_failed_fetch_is_repeated_and_makes_nothing_absent() {
    let mut bench = bench();
    let failure = CloudError::answered(INSTANCES, 503, "RequestLimitExceeded", "Request limit exceeded.");
    bench.cloud.upset(INSTANCES, [Upset::Fail(failure.clone()), Upset::Fail(failure)]);
    bench.settle(&["a"]).await;
    assert_eq!(bench.inventory.facts("i-a"), FactsView::Unknown);
    pass(Duration::from_secs(10)).await;
    assert!(bench.inventory.facts("i-a").facts().is_some());
    assert_eq!(bench.cloud.count(INSTANCES), 3);
    assert_eq!(bench.woken(), ["a"]);
}
