//! When absence is believed.

use std::time::Duration;

use super::{Bench, DESCRIBE, SOON, bench};
use crate::{
    Capacity, CloudError, CreateGroup, View, Write,
    testing::{Upset, group, pass},
};

fn absent(view: &View) -> bool {
    matches!(view, View::Absent { .. })
}

fn deleted_outside(bench: &Bench, name: &str) {
    bench.cloud.world().groups.remove(name);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_never_was_is_absent_at_once() {
    let mut bench = bench();
    bench.inventory.register("new");
    assert_eq!(bench.inventory.view("new"), View::Unknown);
    pass(SOON).await;
    let view = bench.inventory.view("new");
    assert!(absent(&view) && view.settled());
    assert_eq!(bench.woken(), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_page_makes_nothing_absent() {
    let mut bench = bench();
    bench.settle(&["a", "b", "c"]).await;
    bench.cloud.world().page = 1;
    let failure = CloudError::answered(DESCRIBE, 500, "InternalFailure", "try again");
    let fine = Upset::Slow(Duration::ZERO);
    bench.cloud.upset(DESCRIBE, [fine, Upset::Fail(failure.clone())]);
    let mut changed = group("a", &["i-a"]);
    changed.capacity.desired = 9;
    bench.cloud.put_group(changed);
    for name in ["a", "b", "c", "unknown"] {
        bench.inventory.register(name);
        bench.inventory.request_read(name);
    }
    pass(SOON).await;
    assert_eq!(
        bench.inventory.view("unknown"),
        View::Unknown,
        "half a listing says nothing of what it lacks"
    );
    for name in ["b", "c"] {
        assert!(bench.inventory.view(name).group().is_some(), "{name}");
    }
    assert_eq!(bench.woken(), ["a"], "what it held counts");
    pass(Duration::from_secs(2)).await;
    assert!(absent(&bench.inventory.view("unknown")), "the failed read is repeated");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_empty_by_error_is_not_believed() {
    let mut bench = bench();
    bench.settle(&["a", "b", "c"]).await;
    let views = ["a", "b", "c"].map(|name| bench.inventory.view(name));
    bench.cloud.upset(DESCRIBE, [Upset::Empty, Upset::Empty]);
    for name in ["a", "b", "c"] {
        bench.inventory.request_read(name);
    }
    pass(Duration::from_secs(2)).await;
    assert_eq!(*bench.counter.doubts.lock().unwrap(), 2);
    assert_eq!(["a", "b", "c"].map(|name| bench.inventory.view(name)), views, "old views, with their age");
    pass(Duration::from_secs(10)).await;
    assert_eq!(bench.woken(), [] as [&str; 0]);
    assert_eq!(*bench.counter.doubts.lock().unwrap(), 2);
    assert!(bench.inventory.view("a").as_of() > views[0].as_of(), "read again since");
}

#[tokio::test(start_paused = true)]
async fn a_group_deleted_outside_is_believed_gone_when_a_second_list_lacks_it() {
    let mut bench = bench();
    bench.settle(&["a", "b"]).await;
    deleted_outside(&bench, "a");
    let before = bench.polls();
    for name in ["a", "b"] {
        bench.inventory.request_read(name);
    }
    pass(SOON).await;
    assert!(bench.inventory.view("a").group().is_some());
    // Its repetition asks for it alone, so that answer is empty altogether: a third one is wanted.
    pass(Duration::from_secs(7)).await;
    assert!(absent(&bench.inventory.view("a")) && bench.inventory.view("a").settled());
    assert!(bench.inventory.view("b").group().is_some());
    assert!(bench.polls() - before <= 3);
    assert_eq!(bench.woken(), ["a"]);
    assert_eq!(bench.inventory.facts("i-a").facts(), None, "its machines are forgotten");
}

#[tokio::test(start_paused = true)]
async fn the_only_group_deleted_outside_is_believed_gone_in_the_end() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    deleted_outside(&bench, "a");
    pass(Duration::from_secs(70)).await;
    assert!(absent(&bench.inventory.view("a")));
}

#[tokio::test(start_paused = true)]
async fn a_group_that_we_deleted_is_gone_with_the_first_list_that_lacks_it() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.inventory.write(&Write::DeleteGroup { group: "a".to_owned(), force: true }).await.unwrap();
    pass(SOON).await;
    assert!(absent(&bench.inventory.view("a")));
    assert_eq!(*bench.counter.doubts.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_was_being_deleted_may_vanish() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    let mut leaving = group("a", &[]);
    leaving.status = Some("Delete in progress".to_owned());
    bench.cloud.put_group(leaving);
    bench.inventory.request_read("a");
    pass(SOON).await;
    deleted_outside(&bench, "a");
    bench.inventory.request_read("a");
    pass(SOON).await;
    assert!(absent(&bench.inventory.view("a")));
    assert_eq!(*bench.counter.doubts.lock().unwrap(), 0);
    assert_eq!(bench.woken(), ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_we_created_is_not_absent_because_reads_lag() {
    let bench = bench();
    bench.inventory.register("a");
    pass(SOON).await;
    let create = CreateGroup {
        name: "a".to_owned(),
        capacity: Capacity { min: 0, max: 3, desired: 3 },
        settings: group("a", &[]).settings,
        tags: std::collections::BTreeMap::new(),
        hooks: vec![],
    };
    bench.inventory.write(&Write::CreateGroup(Box::new(create))).await.unwrap();
    bench.cloud.upset(DESCRIBE, [Upset::Empty]);
    pass(SOON).await;
    let view = bench.inventory.view("a");
    assert!(absent(&view) && !view.settled(), "nobody creates it twice: {view:?}");
    pass(Duration::from_secs(1)).await;
    assert!(bench.inventory.view("a").group().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_single_read_tells_what_it_saw_and_leaves_belief_to_repetition() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset(DESCRIBE, [Upset::Empty]);
    let seen = bench.inventory.read_group("a").await.unwrap();
    assert!(absent(&seen) && seen.settled());
    assert!(bench.inventory.view("a").group().is_some());
    let again = bench.inventory.read_group("a").await.unwrap();
    assert_eq!(again, bench.inventory.view("a"));
    assert!(again.group().is_some());
    deleted_outside(&bench, "a");
    bench.inventory.read_group("a").await.unwrap();
    pass(Duration::from_secs(7)).await;
    assert!(absent(&bench.inventory.view("a")), "the loop repeats it");
}

#[tokio::test(start_paused = true)]
async fn answers_of_one_moment_do_not_repeat_each_other() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset(DESCRIBE, vec![Upset::Empty; 5]);
    for _ in 0..5 {
        assert!(absent(&bench.inventory.read_group("a").await.unwrap()));
    }
    pass(Duration::from_secs(10)).await;
    assert!(bench.inventory.view("a").group().is_some());
    assert_eq!(bench.woken(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_single_read_works_for_any_group() {
    let bench = bench();
    bench.cloud.put_group(group("stranger", &[]));
    let view = bench.inventory.read_group("stranger").await.unwrap();
    assert!(view.group().is_some() && view.settled());
    assert_eq!(bench.inventory.view("stranger"), View::Unknown);
    let failure = CloudError::answered(DESCRIBE, 403, "AccessDenied", "not authorized");
    bench.cloud.upset(DESCRIBE, [Upset::Fail(failure.clone())]);
    assert_eq!(bench.inventory.read_group("stranger").await.unwrap_err(), failure);
}
