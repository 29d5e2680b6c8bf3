//! Leadership, deadlines, pages and counts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chrono::{DateTime, TimeDelta};
use tokio::time::Instant;

use crate::{
    ActivityStatus, Clock, CloudError, ErrorClass, Gateway, Limits, Priority, Rate, ScalingActivity,
    testing::{Counter, FakeCloud, LeaseUntil, TokioClock, Upset, gateway, group, pass, set_desired},
};

struct Leased {
    cloud: Arc<FakeCloud>,
    counter: Arc<Counter>,
    clock: Arc<TokioClock>,
    lease: Arc<LeaseUntil>,
    gateway: Arc<Gateway>,
}

fn leased(limits: Limits) -> Leased {
    let (cloud, counter, clock) = (FakeCloud::new(), Arc::new(Counter::default()), TokioClock::start());
    let lease = Arc::new(LeaseUntil(Mutex::new(None)));
    let gateway = Gateway::new(cloud.clone(), lease.clone(), counter.clone(), clock.clone(), limits);
    Leased { cloud, counter, clock, lease, gateway: Arc::new(gateway) }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_the_lease_and_reads_go_on() {
    let Leased { cloud, lease, gateway, clock, counter } = leased(Limits::default());
    let error = gateway.write(&set_desired("a", 1)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::NotLeading);
    // A lease that has run out is none.
    *lease.0.lock().unwrap() = Some(clock.now());
    assert_eq!(gateway.write(&set_desired("a", 1)).await.unwrap_err().class, ErrorClass::NotLeading);
    assert_eq!(gateway.account().await.unwrap(), "123456789012");
    assert_eq!(cloud.count("SetDesiredCapacity"), 0);
    assert_eq!(
        counter.count("SetDesiredCapacity", true, "NotLeading"),
        0,
        "what was not sent is not counted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_lost_while_the_rate_limit_made_the_write_wait_stops_it() {
    let limits = Limits { auto_scaling: Rate { per_second: 0.1, burst: 1.0 }, ..Limits::default() };
    let Leased { cloud, lease, gateway, clock, .. } = leased(limits);
    *lease.0.lock().unwrap() = Some(clock.now() + Duration::from_secs(5));
    gateway.groups(&["a".to_owned()]).await.unwrap();
    let error = gateway.write(&set_desired("a", 1)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::NotLeading);
    assert_eq!(cloud.count("SetDesiredCapacity"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_ends_before_the_lease_does_and_its_outcome_is_unknown() {
    let Leased { cloud, lease, gateway, clock, counter } = leased(Limits::default());
    *lease.0.lock().unwrap() = Some(clock.now() + Duration::from_secs(3));
    cloud.upset("SetDesiredCapacity", [Upset::Slow(Duration::from_mins(1))]);
    let started = Instant::now();
    let error = gateway.write(&set_desired("a", 1)).await.unwrap_err();
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    assert!(error.outcome_unknown && error.class == ErrorClass::Transient, "{error:?}");
    assert_eq!((error.api, error.code.as_str()), ("SetDesiredCapacity", "Timeout"));
    assert_eq!(counter.count("SetDesiredCapacity", true, "NoAnswer"), 1);

    *lease.0.lock().unwrap() = Some(clock.now() + Duration::from_hours(1));
    cloud.upset("SetDesiredCapacity", [Upset::Slow(Duration::from_mins(1))]);
    let started = Instant::now();
    gateway.write(&set_desired("a", 1)).await.unwrap_err();
    assert_eq!(started.elapsed(), Limits::default().write_timeout, "else the call's own time-out holds");
}

#[tokio::test(start_paused = true)]
async fn every_page_is_followed_and_counted_even_when_it_is_short_or_empty() {
    let (cloud, counter) = (FakeCloud::new(), Arc::new(Counter::default()));
    let gateway = gateway(cloud.clone(), counter.clone(), TokioClock::start());
    let names: Vec<String> = (0..7).map(|nth| format!("g{nth}")).collect();
    for name in &names {
        cloud.put_group(group(name, &[]));
    }
    {
        let mut world = cloud.world();
        (world.page, world.empty_first_page) = (3, true);
    }
    let found: Vec<String> =
        gateway.groups(&names).await.unwrap().into_iter().map(|group| group.name).collect();
    assert_eq!(found, names);
    assert_eq!(counter.count("DescribeAutoScalingGroups", false, "Success"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_page_with_an_empty_token_is_the_last_one() {
    let (cloud, counter) = (FakeCloud::new(), Arc::new(Counter::default()));
    let gateway = gateway(cloud.clone(), counter, TokioClock::start());
    let names = ["a".to_owned(), "b".to_owned()];
    for name in &names {
        cloud.put_group(group(name, &[]));
    }
    {
        let mut world = cloud.world();
        (world.page, world.empty_last_token) = (1, true);
    }
    assert_eq!(gateway.groups(&names).await.unwrap().len(), 2);
    assert_eq!(cloud.count("DescribeAutoScalingGroups"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_goes_in_circles_is_given_up() {
    let (cloud, counter) = (FakeCloud::new(), Arc::new(Counter::default()));
    let gateway = gateway(cloud.clone(), counter, TokioClock::start());
    cloud.world().endless = true;
    let error = gateway.groups(&["a".to_owned()]).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.class), ("EndlessPages", ErrorClass::Transient));
    assert_eq!(cloud.count("DescribeAutoScalingGroups"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_parameter_is_accepted_only_if_it_holds_an_image_id() {
    let (cloud, counter) = (FakeCloud::new(), Arc::new(Counter::default()));
    let gateway = gateway(cloud.clone(), counter, TokioClock::start());
    let read = async |value: &str| {
        value.clone_into(&mut cloud.world().parameter);
        gateway.parameter("/images/node").await
    };
    assert_eq!(read(" ami-0a1b2c3d\n").await.unwrap().as_deref(), Some("ami-0a1b2c3d"));
    let long = format!("ami-{}", "0".repeat(100));
    for other in ["", "ami-", "ami-0a1b 2c3d", "hunter2", r#"{"image_id":"ami-0a1b2c3d"}"#, long.as_str()] {
        let error = read(other).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{other}");
        assert_eq!(error.message, "the value of SSM parameter /images/node is not an image ID (ami-...)");
    }
}

/// AWS lists activities in progress first: many drains fill its first pages.
#[tokio::test(start_paused = true)]
async fn scaling_activities_are_listed_until_there_are_enough() {
    let (cloud, counter) = (FakeCloud::new(), Arc::new(Counter::default()));
    let gateway = gateway(cloud.clone(), counter, TokioClock::start());
    let start = DateTime::UNIX_EPOCH;
    let activity = |(index, status): (i64, &str)| ScalingActivity {
        id: index.to_string(),
        status: ActivityStatus::parse(status),
        status_message: None,
        description: None,
        cause: String::new(),
        zone: None,
        subnet: None,
        started_at: start + TimeDelta::seconds(index),
        ended_at: None,
    };
    let listed = (0..1_200).map(|index| (index, if index < 5 { "InProgress" } else { "Failed" }));
    {
        let mut world = cloud.world();
        world.activities.insert("g".to_owned(), listed.map(activity).collect());
        world.page = 3;
    }
    let is_finished =
        |listed: &[ScalingActivity]| listed.iter().any(|activity| activity.status.is_finished());
    let read = gateway.scaling_activities("g", is_finished).await.unwrap();
    let ids: Vec<&str> = read.iter().map(|activity| activity.id.as_str()).collect();
    assert_eq!(ids, ["5", "4", "3", "2", "1", "0"], "two pages, newest first");
    assert_eq!(cloud.count("DescribeScalingActivities"), 2);
    cloud.world().page = 50;
    let read = gateway.scaling_activities("g", |_| false).await.unwrap();
    assert_eq!(read.len(), 1_000, "these are enough");
}

#[tokio::test(start_paused = true)]
async fn a_failed_page_fails_the_listing() {
    let (cloud, counter) = (FakeCloud::new(), Arc::new(Counter::default()));
    let gateway = gateway(cloud.clone(), counter.clone(), TokioClock::start());
    let names = ["a".to_owned(), "b".to_owned()];
    for name in &names {
        cloud.put_group(group(name, &[]));
    }
    cloud.world().page = 1;
    let failure = CloudError::answered("DescribeAutoScalingGroups", 500, "InternalFailure", "try again");
    cloud.upset("DescribeAutoScalingGroups", [Upset::Slow(Duration::ZERO), Upset::Fail(failure.clone())]);
    assert_eq!(gateway.groups(&names).await.unwrap_err(), failure);
    assert_eq!(counter.count("DescribeAutoScalingGroups", false, "Transient"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_call_slows_everybody_down() {
    let limits = Limits { auto_scaling: Rate { per_second: 1.0, burst: 10.0 }, ..Limits::default() };
    let Leased { cloud, gateway, .. } = leased(limits);
    let throttled = CloudError::answered("DescribeAutoScalingGroups", 400, "Throttling", "Rate exceeded");
    cloud.upset("DescribeAutoScalingGroups", [Upset::Fail(throttled)]);
    gateway.groups(&["a".to_owned()]).await.unwrap_err();
    let started = Instant::now();
    gateway.scaling_activities("a", |_| true).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(1900), "half the pace: {:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_counted() {
    let (cloud, counter) = (FakeCloud::new(), Arc::new(Counter::default()));
    let gateway = gateway(cloud.clone(), counter.clone(), TokioClock::start());
    cloud.upset("GetCallerIdentity", [Upset::Slow(Duration::from_secs(5))]);
    tokio::select! {
        _ = gateway.account() => panic!("it is slow"),
        () = pass(Duration::from_secs(1)) => {}
    }
    assert_eq!(counter.count("GetCallerIdentity", false, "Cancelled"), 1);
    drop(gateway.permit("GetCallerIdentity", Priority::Read).await);
    assert_eq!(
        counter.count("GetCallerIdentity", false, "Success"),
        0,
        "a permit that is not used is no call"
    );
}
