//! Pace, priorities and adaptivity, on paused time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use super::{Limits, Rate, Throttle, bucket::Bucket};
use crate::Priority;

fn bucket(per_second: f64, burst: f64) -> Arc<Bucket> {
    Arc::new(Bucket::new(Rate { per_second, burst }))
}

/// Calls that came in this order were let go in the order returned, with the seconds at which they went.
async fn order(bucket: &Arc<Bucket>, calls: &[(u64, Priority)]) -> Vec<(usize, Priority, f64)> {
    let (started, went) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let tasks: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(index, &(at, priority))| {
            let (bucket, went) = (bucket.clone(), went.clone());
            tokio::spawn(async move {
                tokio::time::sleep_until(started + Duration::from_secs(at)).await;
                bucket.acquire(priority).await;
                went.lock().unwrap().push((index, priority, started.elapsed().as_secs_f64()));
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    went.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_burst_goes_at_once_and_then_the_pace_holds() {
    let bucket = bucket(5.0, 20.0);
    let went = order(&bucket, &[(0, Priority::Read); 45]).await;
    assert!(went[19].2 < 0.001, "the burst waits for nothing: {:?}", went[19]);
    for (nth, (_, _, at)) in went.iter().enumerate().skip(20) {
        let due = f64::from(u32::try_from(nth - 19).unwrap()) / 5.0;
        assert!((due..due + 0.05).contains(at), "call {nth} went at {at}, due at {due}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_those_who_wait_an_end_goes_first_then_growth_settings_and_reads() {
    use Priority::{Read, ScaleOut, Settings, Terminate};
    let bucket = bucket(1.0, 1.0);
    bucket.acquire(Read).await;
    let calls = [Read, Settings, ScaleOut, Terminate, Read, Terminate].map(|priority| (0, priority));
    let went: Vec<_> = order(&bucket, &calls).await.into_iter().map(|(index, ..)| index).collect();
    assert_eq!(went, [3, 5, 2, 1, 0, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_read_is_not_starved_by_ends_that_keep_coming() {
    let bucket = bucket(1.0, 1.0);
    bucket.acquire(Priority::Terminate).await;
    // Twice as many ends as the pace allows, for a minute, and two reads that came before them.
    let mut calls = vec![(0, Priority::Read), (0, Priority::Read)];
    calls.extend((0..120).map(|nth| (nth / 2, Priority::Terminate)));
    let went = order(&bucket, &calls).await;
    let position = |read: usize| went.iter().position(|(index, ..)| *index == read).unwrap();
    assert_eq!((position(0), position(1)), (4, 9), "every fifth call goes to the longest wait");
}

#[tokio::test(start_paused = true)]
async fn an_end_does_not_wait_for_the_reads_that_came_before_it() {
    let bucket = bucket(1.0, 1.0);
    bucket.acquire(Priority::Terminate).await;
    let mut calls = vec![(0, Priority::Read); 100];
    calls.extend([(50, Priority::Terminate), (50, Priority::ScaleOut)]);
    let went = order(&bucket, &calls).await;
    let at = |call: usize| went.iter().find(|(index, ..)| *index == call).unwrap().2;
    assert!(at(100) < 51.5 && at(101) < 52.5, "{} {}", at(100), at(101));
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_makes_room_for_the_next() {
    let bucket = bucket(1.0, 1.0);
    bucket.acquire(Priority::Terminate).await;
    let waiting = bucket.clone();
    let first = tokio::spawn(async move { waiting.acquire(Priority::Terminate).await });
    tokio::task::yield_now().await;
    let started = Instant::now();
    let waiting = bucket.clone();
    let second = tokio::spawn(async move { waiting.acquire(Priority::Read).await });
    tokio::task::yield_now().await;
    first.abort();
    second.await.unwrap();
    assert!(started.elapsed() <= Duration::from_millis(1010), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn throttling_halves_the_pace_once_a_second_and_it_recovers_step_by_step() {
    let bucket = bucket(8.0, 20.0);
    bucket.throttled();
    bucket.throttled();
    assert!((bucket.rate() - 4.0).abs() < 1e-9, "replies of one moment count once: {}", bucket.rate());
    let started = Instant::now();
    bucket.acquire(Priority::Terminate).await;
    assert!(started.elapsed() >= Duration::from_millis(240), "the burst is spent: {:?}", started.elapsed());
    tokio::time::advance(Duration::from_secs(15)).await;
    let half_way = bucket.rate();
    assert!((5.9..6.2).contains(&half_way), "recovery is even: {half_way}");
    tokio::time::advance(Duration::from_mins(1)).await;
    assert!((bucket.rate() - 8.0).abs() < 1e-9);
    for _ in 0..100 {
        bucket.throttled();
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!(bucket.rate() >= 0.5, "it never stops: {}", bucket.rate());
}

// Pains: W17, P50
#[tokio::test(start_paused = true)]
async fn auto_scaling_shares_one_bucket_and_ec2_has_one_per_operation() {
    let rate = Rate { per_second: 1.0, burst: 1.0 };
    let limits = Limits { auto_scaling: rate, ec2_read: rate, ..Limits::default() };
    let throttle = Throttle::new(limits);
    let started = Instant::now();
    throttle.acquire("DescribeInstances", Priority::Read).await;
    throttle.acquire("DescribeSubnets", Priority::Read).await;
    throttle.acquire("DescribeAutoScalingGroups", Priority::Read).await;
    assert!(started.elapsed() < Duration::from_millis(1), "three buckets: {:?}", started.elapsed());
    throttle.acquire("SetDesiredCapacity", Priority::ScaleOut).await;
    throttle.acquire("DeleteTags", Priority::Settings).await;
    assert!(started.elapsed() >= Duration::from_secs(2), "one bucket: {:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_simulation_waits_for_nothing() {
    let throttle = Throttle::new(Limits::unlimited());
    let started = Instant::now();
    for _ in 0..10_000 {
        throttle.acquire("DescribeAutoScalingGroups", Priority::Read).await;
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
}
