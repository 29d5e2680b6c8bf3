//! What happens to pools: of all pools together, and of each pool while this replica leads.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capasg_controllers::{
    ObjectKey, PoolObserver,
    observer::{InterruptionOutcome, PoolEvent, PoolGauges},
};
use chrono::TimeDelta;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use super::object::{Encoder, Labels, ObjectMetrics};
use crate::leadership::Seat;

/// Reads a number of replicas.
type Number = fn(&PoolGauges) -> i32;
/// Reads a number of durations with their sum.
type SumOf = fn(&Pool) -> &Sum;

/// Seconds: an empty node is drained within a minute; one whose pods take long to stop, or that a budget blocks, takes longer.
const DRAIN_BUCKETS: [f64; 10] = [5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0];
/// Seconds: a node is ready some 30 seconds to a few minutes after the launch of its instance.
const STARTUP_BUCKETS: [f64; 10] = [15.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1200.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// Receives what the pool controller reports.
#[derive(Debug)]
pub struct PoolMetrics {
    launch_failures: Family<Reason, Counter>,
    drains: Histogram,
    startups: Histogram,
    pools: Option<Arc<Pools>>,
}

impl PoolMetrics {
    pub(super) fn register(registry: &mut Registry, objects: ObjectMetrics, seat: Arc<Seat>) -> Self {
        let pools = objects.are_served().then(|| Arc::new(Pools { seat, all: Mutex::default() }));
        let metrics = Self {
            launch_failures: Family::default(),
            drains: Histogram::new(DRAIN_BUCKETS),
            startups: Histogram::new(STARTUP_BUCKETS),
            pools,
        };
        registry.register(
            "launch_failures",
            "Failed launches found in scaling activities",
            metrics.launch_failures.clone(),
        );
        registry.register("drain_duration_seconds", "Duration of drains", metrics.drains.clone());
        registry.register(
            "node_startup_duration_seconds",
            "Time from the launch of an instance until its node was ready for the first time",
            metrics.startups.clone(),
        );
        if let Some(pools) = &metrics.pools {
            registry.register_collector(Box::new(Shared(Arc::clone(pools))));
        }
        metrics
    }
}

impl PoolObserver for PoolMetrics {
    fn reported(&self, pool: &ObjectKey, gauges: PoolGauges) {
        if let Some(pools) = &self.pools {
            pools.all().entry(pool.clone()).or_default().gauges = Some(gauges);
        }
    }

    fn happened(&self, pool: &ObjectKey, event: PoolEvent) {
        match event {
            PoolEvent::LaunchFailed(reason) => {
                self.launch_failures.get_or_create(&Reason { reason }).inc();
            }
            PoolEvent::Drained(took) => self.drains.observe(seconds(took)),
            PoolEvent::NodeReady(took) => self.startups.observe(seconds(took)),
            PoolEvent::Interrupted(_) => {}
        }
        if let Some(pools) = &self.pools {
            pools.all().entry(pool.clone()).or_default().count(event);
        }
    }

    fn forgotten(&self, pool: &ObjectKey) {
        if let Some(pools) = &self.pools {
            pools.all().remove(pool);
        }
    }
}

fn seconds(took: TimeDelta) -> f64 {
    took.as_seconds_f64()
}

/// All pools that this replica reconciled.
#[derive(Debug)]
struct Pools {
    seat: Arc<Seat>,
    all: Mutex<BTreeMap<ObjectKey, Pool>>,
}

impl Pools {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Pool>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One pool.
#[derive(Debug, Default)]
struct Pool {
    /// As last reported; `None` before the first report.
    gauges: Option<PoolGauges>,
    launch_failures: BTreeMap<&'static str, u64>,
    drains: Sum,
    startups: Sum,
    interruptions: BTreeMap<InterruptionOutcome, u64>,
}

/// A number of durations and their sum.
#[derive(Debug, Default)]
struct Sum {
    count: u64,
    seconds: f64,
}

impl Sum {
    fn add(&mut self, took: TimeDelta) {
        self.count += 1;
        self.seconds += seconds(took);
    }
}

impl Pool {
    fn count(&mut self, event: PoolEvent) {
        match event {
            PoolEvent::LaunchFailed(reason) => *self.launch_failures.entry(reason).or_default() += 1,
            PoolEvent::Drained(took) => self.drains.add(took),
            PoolEvent::NodeReady(took) => self.startups.add(took),
            PoolEvent::Interrupted(outcome) => *self.interruptions.entry(outcome).or_default() += 1,
        }
    }
}

#[derive(Debug)]
struct Shared(Arc<Pools>);

impl Collector for Shared {
    /// A replica that does not lead has nothing to say: another one reconciles the pools.
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if !self.0.seat.is_held() {
            return Ok(());
        }
        let all = self.0.all();
        let pools: Vec<Row<'_>> = all.iter().filter_map(|(key, pool)| Row::of(key, pool)).collect();
        let mut encoder = Encoder::new(encoder);
        encode_state(&mut encoder, &pools)?;
        encode_rollouts(&mut encoder, &pools)?;
        encode_instances(&mut encoder, &pools)
    }
}

/// A pool with the labels that all its metrics have.
struct Row<'a> {
    labels: Labels<'a, 3>,
    gauges: &'a PoolGauges,
    pool: &'a Pool,
}

impl<'a> Row<'a> {
    fn of(key: &'a ObjectKey, pool: &'a Pool) -> Option<Self> {
        let gauges = pool.gauges.as_ref()?;
        let labels = [("namespace", &*key.namespace), ("cluster", &gauges.cluster), ("pool", &key.name)];
        Some(Self { labels, gauges, pool })
    }
}

fn encode_state(encoder: &mut Encoder<'_>, pools: &[Row<'_>]) -> fmt::Result {
    encoder.info("pool", "Region and Auto Scaling group of the pool", |metric| {
        pools.iter().try_for_each(|row| {
            let more = [("region", row.gauges.region.as_str()), ("group", row.gauges.group.as_str())];
            metric.describe(&row.labels, &more)
        })
    })?;
    encoder.gauge("pool_phase", "Phase of the pool; the value is 1", |metric| {
        pools.iter().try_for_each(|row| metric.with(&row.labels, &[("phase", row.gauges.phase)], 1))
    })?;
    let numbers: [(&str, &str, Number); 5] = [
        ("pool_replicas_desired", "Requested replicas", |gauges| gauges.replicas.desired),
        ("pool_replicas", "Instances of the pool", |gauges| gauges.replicas.current),
        ("pool_replicas_ready", "Ready Machines", |gauges| gauges.replicas.ready),
        ("pool_replicas_up_to_date", "Instances that match the spec", |gauges| gauges.replicas.up_to_date),
        ("pool_replicas_outdated", "Instances that are outdated", |gauges| gauges.replicas.outdated),
    ];
    for (name, help, value) in numbers {
        encoder.gauge(name, help, |metric| {
            pools.iter().try_for_each(|row| metric.of(&row.labels, i64::from(value(row.gauges))))
        })?;
    }
    encoder.gauge("pool_condition", "Conditions of the pool; the value is 1", |metric| {
        pools.iter().try_for_each(|row| metric.conditions(&row.labels, &row.gauges.conditions))
    })
}

fn encode_rollouts(encoder: &mut Encoder<'_>, pools: &[Row<'_>]) -> fmt::Result {
    let rollouts = || pools.iter().filter_map(|row| Some((row, row.gauges.rollout?)));
    encoder.gauge(
        "pool_rollout_start_timestamp_seconds",
        "Time at which the rollout in progress started, in seconds since the Unix epoch",
        |metric| {
            let mut started = rollouts().filter_map(|(row, rollout)| Some((row, rollout.started_at?)));
            started.try_for_each(|(row, at)| metric.of(&row.labels, at.timestamp()))
        },
    )?;
    encoder.gauge(
        "pool_rollout_waiting_since_timestamp_seconds",
        "Time since which the rollout waits, in seconds since the Unix epoch, by what it waits for",
        |metric| {
            let mut waiting = rollouts().filter_map(|(row, rollout)| Some((row, rollout.waiting?)));
            waiting.try_for_each(|(row, (wait, since))| {
                metric.with(&row.labels, &[("waiting_for", wait)], since.timestamp())
            })
        },
    )
}

fn encode_instances(encoder: &mut Encoder<'_>, pools: &[Row<'_>]) -> fmt::Result {
    encoder.gauge("pool_drains_in_progress", "Machines that are being drained", |metric| {
        pools.iter().try_for_each(|row| {
            metric.of(&row.labels, i64::try_from(row.gauges.drains.count).unwrap_or(i64::MAX))
        })
    })?;
    let oldest = "Time at which the oldest drain in progress began, in seconds since the Unix epoch";
    encoder.gauge("pool_drain_oldest_start_timestamp_seconds", oldest, |metric| {
        let mut drains = pools.iter().filter_map(|row| Some((row, row.gauges.drains.since?)));
        drains.try_for_each(|(row, since)| metric.of(&row.labels, since.timestamp()))
    })?;
    let token = "Time since which at least the bootstrap token that new instances receive has existed, in seconds since the \
                 Unix epoch";
    encoder.gauge("pool_bootstrap_token_timestamp_seconds", token, |metric| {
        let mut tokens = pools.iter().filter_map(|row| Some((row, row.gauges.token_since?)));
        tokens.try_for_each(|(row, since)| metric.of(&row.labels, since.timestamp()))
    })?;
    let sums: [([&str; 4], SumOf); 2] = [
        (
            ["pool_drains", "Drains that ended", "pool_drain_seconds", "Duration of drains that ended"],
            |pool| &pool.drains,
        ),
        (
            [
                "pool_node_startups",
                "New nodes that became ready",
                "pool_node_startup_seconds",
                "Time from launches of instances until their nodes were ready for the first time",
            ],
            |pool| &pool.startups,
        ),
    ];
    for ([count, about, total, about_total], sum) in sums {
        encoder.counter(count, about, |metric| {
            pools.iter().try_for_each(|row| metric.of(&row.labels, sum(row.pool).count))
        })?;
        encoder.counter(total, about_total, |metric| {
            pools.iter().try_for_each(|row| metric.of(&row.labels, sum(row.pool).seconds))
        })?;
    }
    encoder.counter(
        "pool_interruptions",
        "Spot instances that EC2 reclaimed, by what became of their nodes",
        |metric| {
            pools.iter().try_for_each(|row| {
                // A counter that begins with 1 has no increase.
                InterruptionOutcome::ALL.into_iter().try_for_each(|outcome| {
                    let count = row.pool.interruptions.get(&outcome).copied().unwrap_or_default();
                    metric.with(&row.labels, &[("outcome", outcome.as_str())], count)
                })
            })
        },
    )?;
    encoder.counter("pool_launch_failures", "Failed launches found in scaling activities", |metric| {
        pools.iter().try_for_each(|row| {
            let mut failures = row.pool.launch_failures.iter();
            failures.try_for_each(|(reason, count)| metric.with(&row.labels, &[("reason", reason)], *count))
        })
    })
}

#[cfg(test)]
mod tests;
