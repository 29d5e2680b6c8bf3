//! Failing polls: backoff, the condition, and who is told.

use std::time::Duration;

use tokio::time::Instant;

use super::{DESCRIBE, SOON, bench};
use crate::{
    CloudError, ErrorClass,
    inventory::reach::Reach,
    testing::{Upset, group, pass},
};

fn failures(code: &str, count: usize) -> Vec<Upset> {
    vec![Upset::Fail(CloudError::answered(DESCRIBE, 500, code, "AWS's words")); count]
}

#[tokio::test(start_paused = true)]
async fn failing_polls_back_off_and_say_so_once() {
    let mut bench = bench();
    bench.settle(&["a", "b"]).await;
    let views = ["a", "b"].map(|name| bench.inventory.view(name));
    bench.cloud.upset(DESCRIBE, failures("InternalFailure", 12));
    let before = bench.polls();
    bench.inventory.request_read("a");
    pass(Duration::from_secs(2)).await;
    assert_eq!(bench.inventory.reachable(), Ok(()), "passing faults are no news");
    pass(Duration::from_mins(5)).await;
    let times: Vec<_> = bench.cloud.calls(DESCRIBE)[before..].iter().map(|call| call.at.as_secs()).collect();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.starts_with(&[1, 2, 4, 8, 16, 32, 60, 60]), "{pauses:?}");
    let error = bench.inventory.reachable().unwrap_err();
    assert_eq!((error.class, error.message.as_str()), (ErrorClass::Transient, "AWS's words"));
    assert_eq!(["a", "b"].map(|name| bench.inventory.view(name)), views, "old views, with their age");
    assert_eq!(bench.woken(), ["a", "b"], "each is told once");
    pass(Duration::from_mins(5)).await;
    assert_eq!(bench.inventory.reachable(), Ok(()));
    assert_eq!(bench.woken(), ["a", "b"]);
    let before = bench.polls();
    pass(Duration::from_mins(10)).await;
    assert_eq!(bench.polls() - before, 10, "back to one a minute");
}

#[tokio::test(start_paused = true)]
async fn missing_permissions_are_told_at_once_and_a_single_read_ends_the_pause() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    bench.cloud.upset(DESCRIBE, failures("AccessDenied", 5));
    bench.inventory.request_read("a");
    pass(SOON).await;
    assert_eq!(bench.inventory.reachable().unwrap_err().class, ErrorClass::Denied);
    assert_eq!(bench.woken(), ["a"]);
    pass(Duration::from_secs(16)).await;
    bench.inventory.read_group("a").await.unwrap();
    assert_eq!(bench.inventory.reachable(), Ok(()));
    assert_eq!(bench.woken(), ["a"]);
}

/// What was rejected meanwhile is not kept for as long as a rejection of its own.
#[tokio::test(start_paused = true)]
async fn what_failed_is_read_again_once_aws_is_reachable() {
    let mut bench = bench();
    bench.settle(&["a"]).await;
    let names = ["m7i.large".to_owned()];
    bench.cloud.upset(DESCRIBE, failures("AccessDenied", 7));
    let denied = CloudError::answered("DescribeInstanceTypes", 403, "AccessDenied", "AWS's words");
    bench.cloud.upset("DescribeInstanceTypes", vec![Upset::Fail(denied); 3]);
    bench.inventory.request_read("a");
    for seconds in [31, 61, 1] {
        assert!(bench.inventory.instance_types(&names).await.is_err());
        pass(Duration::from_secs(seconds)).await;
    }
    assert!(bench.inventory.reachable().is_err(), "the next poll is two minutes after the first");
    pass(Duration::from_secs(40)).await;
    assert_eq!(bench.inventory.reachable(), Ok(()));
    let before = bench.cloud.calls("DescribeInstanceTypes").len();
    assert!(bench.inventory.instance_types(&names).await.is_ok());
    assert_eq!(bench.cloud.calls("DescribeInstanceTypes").len() - before, 1);
}

// Pains: W24
#[tokio::test(start_paused = true)]
async fn machines_out_of_reach_do_not_stop_the_groups() {
    let mut bench = bench();
    let denied = CloudError::answered("DescribeInstances", 403, "UnauthorizedOperation", "no");
    bench.cloud.upset("DescribeInstances", vec![Upset::Fail(denied.clone()); 3]);
    bench.settle(&["a"]).await;
    assert!(bench.inventory.view("a").settled());
    assert_eq!(bench.inventory.reachable(), Err(denied));
    pass(Duration::from_secs(10)).await;
    assert_eq!(bench.inventory.reachable(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_of_instances_that_are_gone_is_not_reported_any_longer() {
    let mut bench = bench();
    let denied = CloudError::answered("DescribeInstances", 403, "UnauthorizedOperation", "no");
    bench.cloud.upset("DescribeInstances", vec![Upset::Fail(denied.clone()); 30]);
    bench.settle(&["a"]).await;
    assert_eq!(bench.inventory.reachable(), Err(denied));
    bench.cloud.put_group(group("a", &[]));
    bench.inventory.request_read("a");
    pass(SOON).await;
    assert_eq!(bench.inventory.reachable(), Ok(()), "no read would tell that it works again");
    assert_eq!(bench.woken(), ["a", "a"], "its instances, and whether AWS is reachable");
}

#[test]
fn calls_that_fail_together_count_once() {
    let (mut reach, longest) = (Reach::default(), Duration::from_mins(1));
    let error = CloudError::answered(DESCRIBE, 500, "InternalFailure", "AWS's words");
    let mut now = Instant::now();
    for pause in [1, 2] {
        for _ in 0..4 {
            assert!(!reach.failed(DESCRIBE, error.clone(), now, longest), "no news yet");
        }
        let not_before = reach.not_before(DESCRIBE).unwrap();
        assert_eq!((not_before - now).as_secs(), pause);
        now = not_before;
    }
    assert!(reach.failed(DESCRIBE, error.clone(), now, longest));
    assert_eq!(reach.state(), Err(error));
    assert!(reach.succeeded(DESCRIBE));
    assert_eq!((reach.state(), reach.not_before(DESCRIBE)), (Ok(()), None));
}
