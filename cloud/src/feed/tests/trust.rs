//! How far events are relied on: the idle round is slow only while they are seen to come.

use std::time::Duration;

use super::bench;
use crate::{
    CloudError, QueueState,
    testing::{events::launched, group, pass},
};

const MINUTE: Duration = Duration::from_mins(1);

// Rules: N5
#[tokio::test(start_paused = true)]
async fn a_queue_without_events_does_not_slow_polling_down() {
    let bench = bench().await;
    assert!(!bench.inventory.relies_on_events(), "nothing is sent to it");
    let before = bench.polls();
    pass(MINUTE * 10).await;
    assert!((9..=11).contains(&(bench.polls() - before)));
}

// Pains: W18
#[tokio::test(start_paused = true)]
async fn with_events_the_idle_round_is_every_five_minutes() {
    let bench = bench().await;
    bench.queue.send(launched("a"));
    pass(MINUTE * 2).await;
    assert!(bench.inventory.relies_on_events());
    let before = bench.polls();
    pass(MINUTE * 30).await;
    let polls = bench.polls() - before;
    assert!((5..=7).contains(&polls), "{polls} polls in 30 minutes");
}

// Rules: N5
#[tokio::test(start_paused = true)]
async fn a_queue_that_breaks_brings_the_polls_back() {
    let bench = bench().await;
    bench.queue.send(launched("a"));
    pass(MINUTE * 2).await;
    let error = CloudError::answered("ReceiveMessage", 500, "InternalError", "");
    bench.queue.fail(vec![error; 1000]);
    pass(MINUTE * 3).await;
    assert!(!bench.inventory.relies_on_events());
    assert_eq!(*bench.reported.queues.lock().unwrap(), [true, false]);
    let before = bench.polls();
    pass(MINUTE * 10).await;
    assert!((9..=11).contains(&(bench.polls() - before)));
}

/// A pool reports whether it has a queue.
#[tokio::test(start_paused = true)]
async fn pools_are_woken_when_the_state_of_the_queue_changes() {
    let bench = bench().await;
    let mut changes = bench.inventory.changes();
    pass(MINUTE * 5).await;
    while changes.try_recv().is_ok() {}
    pass(MINUTE * 5).await;
    assert!(changes.try_recv().is_err(), "nothing changed");
    let error = CloudError::answered("ReceiveMessage", 500, "InternalError", "");
    bench.queue.fail(vec![error; 7]);
    // Seven failures take between two and four minutes.
    for (minutes, state) in [(2, QueueState::Unavailable), (5, QueueState::Available)] {
        pass(MINUTE * minutes).await;
        assert_eq!(bench.inventory.queue(), state);
        assert_eq!(changes.try_recv().as_deref(), Ok("a"), "{state:?}");
        assert!(changes.try_recv().is_err(), "once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_retried_although_the_clock_is_set_back() {
    let bench = bench().await;
    let error = CloudError::answered("ReceiveMessage", 500, "InternalError", "");
    bench.queue.fail(vec![error; 7]);
    bench.queue.send(launched("a"));
    pass(Duration::from_secs(100)).await;
    // The sixth failure is waited for, and the seventh comes after this.
    bench.clock.set_back(chrono::TimeDelta::hours(1));
    pass(MINUTE * 5).await;
    assert_eq!(*bench.reported.queues.lock().unwrap(), [true, false, true]);
}

/// Rules that were taken away: the queue answers as before, and is silent.
// Rules: N5
#[tokio::test(start_paused = true)]
async fn a_change_that_no_event_told_of_brings_the_polls_back() {
    let bench = bench().await;
    bench.queue.send(launched("a"));
    pass(MINUTE * 6).await;
    bench.cloud.put_group(group("a", &["i-other"]));
    pass(MINUTE * 6).await;
    assert_eq!(bench.inventory.view("a").group().unwrap().instances[0].id, "i-other", "a poll found it");
    assert!(!bench.inventory.relies_on_events());
    bench.queue.send(launched("a"));
    pass(MINUTE).await;
    assert!(bench.inventory.relies_on_events(), "events come again");
}

/// A desired capacity that is lowered ends nothing where all instances are protected, so that no event tells of it.
// Rules: G2
// Pains: W18
#[tokio::test(start_paused = true)]
async fn a_group_that_changes_without_events_is_polled_every_minute() {
    let bench = bench().await;
    bench.cloud.put_group(group("b", &["i-b"]));
    bench.inventory.register("b");
    bench.inventory.set_externally_scaled("b", true);
    bench.queue.send(launched("a"));
    pass(MINUTE * 2).await;
    assert!(bench.inventory.relies_on_events());
    let reads = |name: &str| {
        let calls = bench.cloud.calls("DescribeAutoScalingGroups");
        calls.iter().filter(|call| call.args.contains(&name.to_owned())).count()
    };
    let before = (reads("a"), reads("b"));
    pass(MINUTE * 30).await;
    let (a, b) = (reads("a") - before.0, reads("b") - before.1);
    assert!((5..=7).contains(&a) && (28..=37).contains(&b), "{a} and {b} reads in 30 minutes");
    bench.inventory.set_externally_scaled("b", false);
    pass(MINUTE * 2).await;
    let before = reads("b");
    pass(MINUTE * 30).await;
    assert!((5..=7).contains(&(reads("b") - before)), "{} reads", reads("b") - before);
}

/// The event came; it was the reads that lagged.
// Rules: N5
// Pains: W18
#[tokio::test(start_paused = true)]
async fn a_change_that_is_shown_long_after_its_event_does_not_count_as_untold() {
    let bench = bench().await;
    bench.queue.send(launched("a"));
    pass(MINUTE * 3).await;
    bench.cloud.put_group(group("a", &["i-a", "i-new"]));
    pass(MINUTE * 4).await;
    assert_eq!(bench.inventory.view("a").group().unwrap().instances.len(), 2);
    assert!(bench.inventory.relies_on_events());
}
