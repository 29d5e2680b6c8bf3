//! How far events are relied on: the idle round is slow only while they are seen to come.

use std::time::Duration;

use super::{bench, launched};
use crate::{
    CloudError,
    testing::{group, pass},
};

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn n5_a_queue_without_events_does_not_slow_polling_down() {
    let bench = bench().await;
    assert!(!bench.inventory.is_fed(), "nothing is sent to it");
    let before = bench.polls();
    pass(MINUTE * 10).await;
    assert!((9..=11).contains(&(bench.polls() - before)));
}

#[tokio::test(start_paused = true)]
async fn w18_with_events_the_idle_round_is_every_five_minutes() {
    let bench = bench().await;
    bench.queue.send(launched("a"));
    pass(MINUTE * 2).await;
    assert!(bench.inventory.is_fed());
    let before = bench.polls();
    pass(MINUTE * 30).await;
    let polls = bench.polls() - before;
    assert!((5..=7).contains(&polls), "{polls} polls in 30 minutes");
}

#[tokio::test(start_paused = true)]
async fn n5_a_queue_that_breaks_brings_the_polls_back() {
    let bench = bench().await;
    bench.queue.send(launched("a"));
    pass(MINUTE * 2).await;
    let error = CloudError::answered("ReceiveMessage", 500, "InternalError", "");
    bench.queue.fail(vec![error; 1000]);
    pass(MINUTE * 3).await;
    assert!(!bench.inventory.is_fed());
    assert_eq!(*bench.told.queues.lock().unwrap(), [true, false]);
    let before = bench.polls();
    pass(MINUTE * 10).await;
    assert!((9..=11).contains(&(bench.polls() - before)));
}

/// Rules that were taken away: the queue answers as before, and is silent.
#[tokio::test(start_paused = true)]
async fn n5_a_change_that_no_event_told_of_brings_the_polls_back() {
    let bench = bench().await;
    bench.queue.send(launched("a"));
    pass(MINUTE * 6).await;
    bench.cloud.put_group(group("a", &["i-other"]));
    pass(MINUTE * 6).await;
    assert_eq!(bench.inventory.view("a").group().unwrap().instances[0].id, "i-other", "a poll found it");
    assert!(!bench.inventory.is_fed());
    bench.queue.send(launched("a"));
    pass(MINUTE).await;
    assert!(bench.inventory.is_fed(), "events come again");
}
