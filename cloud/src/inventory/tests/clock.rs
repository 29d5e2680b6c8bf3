//! The time of day is set back by an hour: nothing that is due waits for it.

use std::time::Duration;

use chrono::TimeDelta;

use super::{DESCRIBE, SOON, bench};
use crate::{
    CloudError, Selector,
    testing::{Upset, pass, set_desired},
};

#[tokio::test(start_paused = true)]
async fn rounds_continue_when_the_clock_is_set_back() {
    let mut bench = bench();
    bench.settle(&["a", "b"]).await;
    bench.inventory.set_transition("b", true);
    bench.clock.set_back(TimeDelta::hours(1));
    let before = bench.polls();
    pass(Duration::from_secs(31)).await;
    assert_eq!(bench.polls() - before, 6, "every 5 s");
    bench.inventory.set_transition("b", false);
    let before = bench.polls();
    pass(Duration::from_mins(10)).await;
    assert_eq!(bench.polls() - before, 10, "every minute");
}

#[tokio::test(start_paused = true)]
async fn a_backoff_ends_although_the_clock_is_set_back() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    let failure = CloudError::answered(DESCRIBE, 500, "InternalFailure", "");
    bench.cloud.upset(DESCRIBE, vec![Upset::Fail(failure); 5]);
    bench.inventory.request_read("a");
    pass(Duration::from_secs(20)).await;
    bench.inventory.reachable().unwrap_err();
    bench.clock.set_back(TimeDelta::hours(1));
    pass(Duration::from_secs(30)).await;
    bench.inventory.reachable().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_write_settles_in_time_when_the_clock_is_set_back() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset("SetDesiredCapacity", [Upset::LoseReply]);
    bench.inventory.write(&set_desired("a", 7)).await.unwrap_err();
    bench.clock.set_back(TimeDelta::hours(1));
    pass(Duration::from_secs(29)).await;
    assert!(!bench.inventory.view("a").settled());
    pass(Duration::from_secs(1) + SOON).await;
    assert!(bench.inventory.view("a").settled());
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_expires_although_the_clock_is_set_back() {
    let bench = bench();
    let selector = Selector::Ids(["subnet-1".to_owned()].into());
    bench.inventory.subnets(&selector).await.unwrap();
    bench.clock.set_back(TimeDelta::hours(1));
    pass(Duration::from_mins(12)).await;
    bench.inventory.subnets(&selector).await.unwrap();
    assert_eq!(bench.cloud.count("DescribeSubnets"), 2);
}
