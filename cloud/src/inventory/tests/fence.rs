//! Read your writes.

use std::time::Duration;

use super::{DESCRIBE, SOON, bench, desired};
use crate::{
    CloudError, View, Write,
    testing::{Upset, pass, set_desired},
};

#[tokio::test(start_paused = true)]
async fn a_view_from_before_a_write_does_not_count_after_it() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    assert!(bench.inventory.view("a").settled());
    // A read that started before the write answers after it, with what was true before.
    bench.cloud.upset(DESCRIBE, [Duration::from_secs(3), Duration::from_secs(4)].map(Upset::Slow));
    bench.inventory.request_read("a");
    pass(SOON).await;
    bench.inventory.write(&set_desired("a", 7)).await.unwrap();
    assert!(!bench.inventory.view("a").settled());
    pass(Duration::from_secs(3)).await;
    let stale = bench.inventory.view("a");
    assert_eq!((desired(&stale), stale.settled()), (Some(3), false));
    assert_eq!(bench.woken(), [] as [&str; 0]);
    pass(Duration::from_millis(1100)).await;
    let fresh = bench.inventory.view("a");
    assert_eq!((desired(&fresh), fresh.settled()), (Some(7), true));
    assert_eq!(bench.woken(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_followed_by_one_read_soon_and_the_fast_round() {
    let mut bench = bench();
    bench.settle(&["a", "b"]).await;
    let before = bench.polls();
    bench.inventory.write(&set_desired("a", 7)).await.unwrap();
    pass(SOON).await;
    assert_eq!(
        bench.cloud.calls(DESCRIBE)[before..].iter().map(|call| call.args.clone()).collect::<Vec<_>>(),
        [["a"]]
    );
    pass(Duration::from_secs(10)).await;
    assert_eq!(bench.polls() - before, 3);
    assert_eq!(bench.woken(), ["a"], "later rounds saw nothing new");
    assert!(bench.inventory.view("b").settled(), "others are not concerned");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_still_tells_when_it_has_settled() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.inventory.write(&set_desired("a", 3)).await.unwrap();
    pass(SOON).await;
    assert!(bench.inventory.view("a").settled());
    assert_eq!(bench.woken(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_leaves_views_unsettled_until_it_can_no_longer_land() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset("SetDesiredCapacity", [Upset::LoseReply]);
    let error = bench.inventory.write(&set_desired("a", 7)).await.unwrap_err();
    assert!(error.outcome_unknown);
    // 20 s time-out and 10 s in flight.
    pass(Duration::from_secs(29)).await;
    let view = bench.inventory.view("a");
    assert_eq!((desired(&view), view.settled()), (Some(7), false), "seen, but it may land again");
    bench.inventory.set_transition("a", false);
    bench.woken();
    pass(Duration::from_secs(1) + SOON).await;
    assert!(bench.inventory.view("a").settled(), "read as soon as it can settle, whatever the round");
    assert_eq!(bench.woken(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_timed_out_waits_for_what_is_in_flight() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset("SetDesiredCapacity", [Upset::Slow(Duration::from_mins(1))]);
    bench.inventory.write(&set_desired("a", 7)).await.unwrap_err();
    pass(Duration::from_secs(9)).await;
    assert!(!bench.inventory.view("a").settled());
    pass(Duration::from_secs(1) + SOON).await;
    assert!(bench.inventory.view("a").settled());
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_caller_went_away_counts_as_lost() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset("SetDesiredCapacity", [Upset::Slow(Duration::from_secs(5))]);
    let write = set_desired("a", 7);
    tokio::select! {
        _ = bench.inventory.write(&write) => panic!("it is slow"),
        () = pass(Duration::from_secs(1)) => {}
    }
    pass(Duration::from_secs(28)).await;
    assert!(!bench.inventory.view("a").settled());
    pass(Duration::from_secs(1) + SOON).await;
    assert!(bench.inventory.view("a").settled());
}

#[tokio::test(start_paused = true)]
async fn no_view_counts_while_a_write_is_under_way() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset("SetDesiredCapacity", [Upset::Slow(Duration::from_secs(5))]);
    let inventory = bench.inventory.clone();
    let write = tokio::spawn(async move { inventory.write(&set_desired("a", 7)).await });
    pass(SOON).await;
    let View::Present { settled, .. } = bench.inventory.read_group("a").await.unwrap() else {
        panic!("the group is there");
    };
    assert!(!settled && !bench.inventory.view("a").settled());
    write.await.unwrap().unwrap();
    assert!(!bench.inventory.view("a").settled(), "that read started before the answer");
    pass(SOON).await;
    assert!(bench.inventory.view("a").settled());
}

#[tokio::test(start_paused = true)]
async fn what_was_not_done_leaves_the_view_as_it_was() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    let denied = CloudError::answered("SetDesiredCapacity", 403, "AccessDenied", "not authorized");
    let throttled = CloudError::answered("SetDesiredCapacity", 400, "Throttling", "Rate exceeded");
    bench.cloud.upset("SetDesiredCapacity", [Upset::Fail(denied), Upset::Fail(throttled)]);
    let before = bench.polls();
    for _ in 0..2 {
        bench.inventory.write(&set_desired("a", 7)).await.unwrap_err();
        assert!(bench.inventory.view("a").settled());
    }
    pass(Duration::from_secs(30)).await;
    assert_eq!(bench.polls(), before, "there is nothing new to read");
    assert_eq!(bench.woken(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_followed_by_one_read_only() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    let invalid = CloudError::answered("SetDesiredCapacity", 400, "ValidationError", "above max value 2");
    bench.cloud.upset("SetDesiredCapacity", [Upset::Fail(invalid)]);
    let before = bench.polls();
    bench.inventory.write(&set_desired("a", 99)).await.unwrap_err();
    pass(Duration::from_secs(30)).await;
    assert_eq!(bench.polls() - before, 1, "our picture may be old, but nothing is in transition");
    assert!(bench.inventory.view("a").settled());
}

#[tokio::test(start_paused = true)]
async fn the_fence_outlives_forgetting() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset("SetDesiredCapacity", [Upset::LoseReply]);
    bench.inventory.write(&set_desired("a", 7)).await.unwrap_err();
    bench.inventory.forget("a");
    bench.inventory.register("a");
    pass(Duration::from_secs(1)).await;
    let view = bench.inventory.view("a");
    assert!(view.group().is_some() && !view.settled());
    pass(Duration::from_mins(2)).await;
    assert!(bench.inventory.view("a").settled());
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_group_that_nobody_looks_at_leaves_nothing_behind() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.inventory.write(&set_desired("b", 1)).await.unwrap();
    bench.inventory.write(&Write::DeleteGroup { group: "c".to_owned(), force: true }).await.unwrap();
    let before = bench.polls();
    pass(Duration::from_mins(2)).await;
    assert!(bench.cloud.calls(DESCRIBE)[before..].iter().all(|call| call.args == ["a"]));
    assert_eq!(bench.inventory.view("b"), View::Unknown);
    assert_eq!(bench.inventory.state().groups.len(), 1);
}
