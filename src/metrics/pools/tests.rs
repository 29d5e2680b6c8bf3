//! The metrics of pools, as Prometheus reads them.

use std::time::Instant;

use capasg_api::{
    conditions::{ConditionState, POOL},
    pool::RolloutWait,
};
use capasg_controllers::observer::{DrainGauges, Replicas, RolloutGauges};
use chrono::DateTime;

use super::*;
use crate::metrics::{Exposed as _, Metrics};

const LABELS: &str = "namespace=\"default\",cluster=\"prod\",pool=\"workers\"";

/// The gauges of a pool in the middle of a rollout, with all conditions.
fn gauges() -> PoolGauges {
    let at = |seconds: i64| DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap();
    let condition = |type_: &&str| ConditionState {
        type_: (*type_).to_owned(),
        status: "False".to_owned(),
        reason: "LaunchTemplateNotReady".to_owned(),
    };
    PoolGauges {
        cluster: "prod".to_owned(),
        region: "eu-west-1".to_owned(),
        group: "default-prod-workers-0a1b2c3d".to_owned(),
        phase: "RollingOut",
        replicas: Replicas { desired: 4, current: 5, ready: 3, up_to_date: 2, outdated: 3 },
        conditions: POOL.iter().map(condition).collect(),
        rollout: Some(RolloutGauges {
            started_at: Some(at(0)),
            waiting: Some((RolloutWait::Drains.as_str(), at(60))),
        }),
        drains: DrainGauges { count: 2, since: Some(at(70)) },
        token_since: Some(at(80)),
    }
}

fn key() -> ObjectKey {
    ObjectKey::new("default", "workers")
}

fn served(seat: Seat) -> Metrics {
    Metrics::new(Arc::new(seat), ObjectMetrics::Served)
}

fn has(metrics: &Metrics, line: &str) -> bool {
    metrics.encode().unwrap().lines().any(|written| written == line)
}

#[test]
fn failed_launches_are_counted_by_reason_and_by_pool() {
    let metrics = served(Seat::always());
    metrics.pools.reported(&key(), gauges());
    metrics.pools.happened(&key(), PoolEvent::LaunchFailed("QuotaExceeded"));
    metrics.pools.happened(&key(), PoolEvent::LaunchFailed("QuotaExceeded"));
    assert!(has(&metrics, "capasg_launch_failures_total{reason=\"QuotaExceeded\"} 2"));
    let of_pool = format!("capasg_pool_launch_failures_total{{{LABELS},reason=\"QuotaExceeded\"}} 2");
    assert!(has(&metrics, &of_pool), "{}", metrics.encode().unwrap());
}

#[test]
fn a_pool_has_its_gauges_and_its_counters() {
    let metrics = served(Seat::always());
    metrics.pools.reported(&key(), gauges());
    for event in [
        PoolEvent::Drained(TimeDelta::milliseconds(1500)),
        PoolEvent::Drained(TimeDelta::seconds(60)),
        PoolEvent::NodeReady(TimeDelta::seconds(90)),
        PoolEvent::Interrupted(InterruptionOutcome::NotDrained),
    ] {
        metrics.pools.happened(&key(), event);
    }
    let text = metrics.encode().unwrap();
    for (name, more, value) in [
        ("pool_info", ",region=\"eu-west-1\",group=\"default-prod-workers-0a1b2c3d\"", "1"),
        ("pool_phase", ",phase=\"RollingOut\"", "1"),
        ("pool_replicas_desired", "", "4"),
        ("pool_replicas", "", "5"),
        ("pool_replicas_ready", "", "3"),
        ("pool_replicas_up_to_date", "", "2"),
        ("pool_replicas_outdated", "", "3"),
        ("pool_condition", ",type=\"Stalled\",status=\"False\",reason=\"LaunchTemplateNotReady\"", "1"),
        ("pool_rollout_start_timestamp_seconds", "", "1700000000"),
        ("pool_rollout_waiting_since_timestamp_seconds", ",waiting_for=\"Drains\"", "1700000060"),
        ("pool_drains_in_progress", "", "2"),
        ("pool_drain_oldest_start_timestamp_seconds", "", "1700000070"),
        ("pool_bootstrap_token_timestamp_seconds", "", "1700000080"),
        ("pool_drains_total", "", "2"),
        ("pool_drain_seconds_total", "", "61.5"),
        ("pool_node_startups_total", "", "1"),
        ("pool_node_startup_seconds_total", "", "90.0"),
        ("pool_interruptions_total", ",outcome=\"NotDrained\"", "1"),
    ] {
        let line = format!("capasg_{name}{{{LABELS}{more}}} {value}");
        assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
    }
    assert!(text.contains("capasg_drain_duration_seconds_bucket{le=\"60.0\"} 2"), "{text}");
    assert!(text.contains("capasg_node_startup_duration_seconds_count 1"), "{text}");
}

#[test]
fn a_pool_that_does_not_exist_has_no_metrics() {
    let metrics = served(Seat::always());
    metrics.pools.reported(&key(), gauges());
    metrics.pools.happened(&key(), PoolEvent::Drained(TimeDelta::seconds(1)));
    let other = key().sibling("other");
    metrics.pools.reported(&other, gauges());
    metrics.pools.forgotten(&key());
    let text = metrics.encode().unwrap();
    assert!(!text.contains("pool=\"workers\"") && text.contains("pool=\"other\""), "{text}");
    assert!(text.contains("capasg_drain_duration_seconds_count 1"), "it happened all the same");
}

#[test]
fn a_pool_that_was_not_reported_has_no_metrics_yet() {
    let metrics = served(Seat::always());
    metrics.pools.happened(&key(), PoolEvent::LaunchFailed("QuotaExceeded"));
    assert!(!metrics.encode().unwrap().contains("pool=\"workers\""));
    metrics.pools.reported(&key(), gauges());
    assert!(metrics.encode().unwrap().contains("capasg_pool_launch_failures_total{"), "nothing is lost");
}

#[test]
fn a_replica_that_does_not_lead_has_no_pools() {
    let metrics = served(Seat::vacant());
    metrics.pools.reported(&key(), gauges());
    assert!(!metrics.encode().unwrap().contains("pool=\"workers\""));
}

#[test]
fn a_flag_turns_pools_off_and_keeps_the_rest() {
    let metrics = Metrics::new(Arc::new(Seat::always()), ObjectMetrics::Off);
    metrics.pools.reported(&key(), gauges());
    metrics.pools.happened(&key(), PoolEvent::LaunchFailed("QuotaExceeded"));
    metrics.pools.happened(&key(), PoolEvent::Drained(TimeDelta::seconds(1)));
    let text = metrics.encode().unwrap();
    assert!(!text.contains("capasg_pool"), "{text}");
    assert!(text.contains("capasg_launch_failures_total{reason=\"QuotaExceeded\"} 1"), "{text}");
    assert!(text.contains("capasg_drain_duration_seconds_count 1"), "{text}");
}

/// docs/users/monitoring.md names both numbers. This build is not optimised.
#[test]
fn a_scrape_of_a_thousand_pools_is_small_and_quick() {
    let metrics = served(Seat::always());
    for number in 0..1000 {
        let pool = ObjectKey::new("team-0123456789", format!("workers-{number:04}"));
        metrics.pools.reported(&pool, gauges());
        for event in [
            PoolEvent::Drained(TimeDelta::seconds(1)),
            PoolEvent::NodeReady(TimeDelta::seconds(1)),
            PoolEvent::LaunchFailed("InsufficientCapacity"),
            PoolEvent::Interrupted(InterruptionOutcome::Drained),
            PoolEvent::Interrupted(InterruptionOutcome::NotDrained),
        ] {
            metrics.pools.happened(&pool, event);
        }
    }
    let began = Instant::now();
    let text = metrics.encode().unwrap();
    let took = began.elapsed();
    let series = text.lines().filter(|line| line.starts_with("capasg_pool_")).count();
    println!("{series} series, {} bytes, {took:?}", text.len());
    assert!(series <= 1000 * (POOL.len() + 24), "{series}");
    assert!(text.len() < 6_000_000, "{}", text.len());
    assert!(took.as_secs() < 10, "{took:?}");
}
