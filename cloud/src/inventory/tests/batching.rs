//! How many calls what costs.

use std::{collections::BTreeSet, time::Duration};

use super::{Bench, DESCRIBE, SOON, bench, bench_with};
use crate::{
    Limits, Rate, View,
    testing::{Upset, group, pass},
};

fn names(count: usize) -> Vec<String> {
    (0..count).map(|nth| format!("pool-{nth:03}")).collect()
}

// Pains: P21, P47, P49
#[tokio::test(start_paused = true)]
async fn a_poll_costs_one_call_per_hundred_groups() {
    for (groups, calls) in [(1, 1), (100, 1), (101, 2), (200, 2), (250, 3)] {
        let bench = bench();
        let names = names(groups);
        for name in &names {
            bench.cloud.put_group(group(name, &[]));
            bench.inventory.register(name);
        }
        pass(SOON).await;
        let first = bench.cloud.calls(DESCRIBE);
        assert_eq!(first.len(), calls, "{groups} groups");
        let asked: BTreeSet<_> = first.iter().flat_map(|call| call.args.clone()).collect();
        assert_eq!(asked.len(), groups);
        assert!(names.iter().all(|name| bench.inventory.view(name).settled()));
        pass(Duration::from_mins(10)).await;
        assert_eq!(bench.polls(), calls * 11, "{groups} groups, ten idle minutes");
        assert_eq!(bench.cloud.world().calls.len(), calls * 11, "and nothing else is called");
    }
}

/// After a start of the manager, one pool after the other is reconciled.
#[tokio::test(start_paused = true)]
async fn groups_that_are_registered_one_after_another_share_their_first_reads() {
    let bench = bench();
    for name in names(100) {
        bench.cloud.put_group(group(&name, &["i-1"]));
        bench.inventory.register(&name);
        pass(Duration::from_millis(70)).await;
    }
    assert_eq!(bench.polls(), 7, "one a second");
    pass(Duration::from_secs(1)).await;
    assert_eq!(bench.polls(), 8);
    assert!(names(100).iter().all(|name| bench.inventory.view(name).settled()));
    pass(Duration::from_secs(5)).await;
    bench.inventory.register("later");
    pass(SOON).await;
    assert_eq!(bench.polls(), 9, "no other was registered within a second");
}

#[tokio::test(start_paused = true)]
async fn short_pages_are_followed_within_a_poll() {
    let bench = bench();
    bench.cloud.world().page = 30;
    for name in names(100) {
        bench.cloud.put_group(group(&name, &[]));
        bench.inventory.register(&name);
    }
    pass(SOON).await;
    assert_eq!(bench.polls(), 4);
    assert!(names(100).iter().all(|name| bench.inventory.view(name).group().is_some()));
}

// Pains: W11
#[tokio::test(start_paused = true)]
async fn the_fast_round_leaves_out_what_was_just_read() {
    let mut bench = bench();
    bench.settle(&["a", "b"]).await;
    for name in ["a", "b"] {
        bench.inventory.set_transition(name, true);
    }
    pass(Duration::from_millis(4_500)).await;
    let before = bench.polls();
    bench.inventory.read_group("a").await.unwrap();
    pass(Duration::from_secs(1)).await;
    let calls = &bench.cloud.calls(DESCRIBE)[before..];
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].args, ["b"], "{calls:?}");
    pass(Duration::from_secs(5)).await;
    assert_eq!(bench.cloud.calls(DESCRIBE).last().unwrap().args, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn groups_in_transition_share_a_faster_round() {
    let mut bench = bench();
    bench.settle(&["a", "b", "c", "d"]).await;
    let before = bench.polls();
    for name in ["b", "d"] {
        bench.inventory.set_transition(name, true);
    }
    pass(Duration::from_secs(31)).await;
    let rounds = &bench.cloud.calls(DESCRIBE)[before..];
    assert_eq!(rounds.len(), 6, "one call each 5 s: {rounds:?}");
    assert!(rounds.iter().all(|call| call.args == ["b", "d"]));
    for name in ["b", "d"] {
        bench.inventory.set_transition(name, false);
    }
    let before = bench.polls();
    pass(Duration::from_mins(1)).await;
    assert_eq!(bench.polls() - before, 1, "back in the slow round");
    assert_eq!(bench.woken(), [] as [&str; 0], "nothing changed");
}

#[tokio::test(start_paused = true)]
async fn the_slow_round_takes_the_fast_one_along() {
    let mut bench = bench();
    bench.settle(&["a", "b"]).await;
    bench.inventory.set_transition("b", true);
    let before = bench.polls();
    pass(Duration::from_mins(10)).await;
    let calls = bench.polls() - before;
    assert!((118..=131).contains(&calls), "every 5 s, the slow rounds among them: {calls}");
    let slow = bench.cloud.calls(DESCRIBE)[before..].iter().filter(|call| call.args.len() == 2).count();
    assert_eq!(slow, 10);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_wishes_at_once_cost_one_call() {
    let mut bench = bench();
    let names = names(100);
    bench.settle(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let before = bench.polls();
    for name in &names {
        bench.inventory.request_read(name);
        bench.inventory.request_read(name);
    }
    pass(SOON).await;
    assert_eq!(bench.polls() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn a_wish_during_a_call_gets_a_call_of_its_own() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    let before = bench.polls();
    bench.cloud.upset(DESCRIBE, [Upset::Slow(Duration::from_secs(1))]);
    bench.inventory.request_read("a");
    pass(SOON).await;
    assert_eq!(bench.polls() - before, 1);
    bench.inventory.request_read("a");
    pass(SOON).await;
    assert_eq!(bench.polls() - before, 2, "the one under way may have started too early");
    let as_of = bench.inventory.view("a").as_of();
    pass(Duration::from_secs(2)).await;
    assert_eq!(bench.inventory.view("a").as_of(), as_of, "the older answer came later and is not taken");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_holds_nobody_else_up() {
    let mut bench = bench();
    bench.settle(&["a", "b"]).await;
    bench.cloud.upset(DESCRIBE, [Upset::Slow(Duration::from_mins(1))]);
    bench.inventory.request_read("a");
    pass(SOON).await;
    let before = bench.inventory.view("b").as_of();
    bench.inventory.request_read("b");
    pass(SOON).await;
    assert!(bench.inventory.view("b").as_of() > before);
    let before = bench.inventory.view("a").as_of();
    pass(Duration::from_secs(12)).await;
    assert!(bench.inventory.view("a").as_of() > before, "and is made again after its time-out");
}

#[tokio::test(start_paused = true)]
async fn wishes_join_a_call_that_waits_for_the_rate_limit() {
    let rate = Rate { per_second: 0.5, burst: 1.0 };
    let bench = bench_with(Limits { auto_scaling: rate, ..Limits::default() });
    bench.inventory.register("a");
    pass(SOON).await;
    bench.inventory.request_read("a");
    pass(SOON).await;
    bench.inventory.register("b");
    pass(Duration::from_secs(10)).await;
    let calls = bench.cloud.calls(DESCRIBE);
    let asked: Vec<_> = calls.iter().map(|call| call.args.join(" ")).collect();
    assert_eq!(asked, ["a", "a b"]);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_group_is_not_read_and_its_machines_are_dropped() {
    let mut bench = bench();
    bench.settle(&["a", "b"]).await;
    bench.inventory.forget("a");
    assert_eq!(bench.inventory.view("a"), View::Unknown);
    assert_eq!(bench.inventory.facts("i-a").facts(), None);
    assert!(bench.inventory.facts("i-b").facts().is_some());
    let before = bench.polls();
    pass(Duration::from_mins(1)).await;
    assert_eq!(bench.cloud.calls(DESCRIBE)[before..].iter().map(|call| call.args.len()).sum::<usize>(), 1);
    bench.inventory.forget("b");
    let before = bench.polls();
    pass(Duration::from_mins(10)).await;
    assert_eq!(bench.polls(), before, "nobody looks at anything");
    assert_eq!(bench.inventory.next_due(), None);
}

#[tokio::test(start_paused = true)]
async fn time_can_be_driven_step_by_step() {
    let Bench { cloud, .. } = bench();
    let clock = crate::testing::TokioClock::start();
    let gateway = crate::testing::gateway(cloud.clone(), std::sync::Arc::default(), clock.clone());
    let inventory = crate::Inventory::new(
        std::sync::Arc::new(gateway),
        clock,
        crate::testing::once_a_minute(),
        crate::testing::TEMPLATE_TAG,
    );
    cloud.put_group(group("a", &["i-1"]));
    inventory.register("a");
    inventory.poll_due().await;
    assert_eq!(cloud.count(DESCRIBE), 0, "nothing is due yet");
    for calls in [1, 2] {
        let due = inventory.next_due().unwrap();
        tokio::time::sleep_until(due).await;
        inventory.poll_due().await;
        assert_eq!(cloud.world().calls.len(), calls);
    }
    assert!(inventory.facts("i-1").facts().is_some());
}
