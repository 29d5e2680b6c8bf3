//! Calls of Runtime Hooks: how many, with which outcome, how long they took, and which hooks block Clusters since when.

use std::{fmt, sync::Arc, time::Duration};

use capasg_extensions::{
    Extension,
    ports::{Observer, Outcome},
    protocol::Hook,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _},
    metrics::{
        MetricType, counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram, info::Info,
    },
    registry::Registry,
};

use super::{
    CallMetrics, Exposed, ObjectMetrics,
    object::{Encoder, Labels},
    process::Process,
};

/// Seconds: pure hooks take milliseconds, those that read the API server up to the time that core waits.
const BUCKETS: [f64; 10] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfHook {
    hook: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    hook: &'static str,
    outcome: &'static str,
}

/// Receives every call of a hook.
#[derive(Debug)]
pub struct HookMetrics {
    calls: Family<Call, Counter>,
    durations: Family<OfHook, Histogram, fn() -> Histogram>,
    timeouts: Family<OfHook, Counter>,
}

impl Default for HookMetrics {
    fn default() -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        Self {
            calls: Family::default(),
            durations: Family::new_with_constructor(buckets),
            timeouts: Family::default(),
        }
    }
}

impl Observer for HookMetrics {
    fn called(&self, hook: Hook, outcome: Outcome, took: Duration) {
        self.calls.get_or_create(&Call { hook: hook.name(), outcome: outcome.as_str() }).inc();
        self.durations.get_or_create(&OfHook { hook: hook.name() }).observe(took.as_secs_f64());
    }

    fn timed_out(&self, hook: Hook) {
        self.timeouts.get_or_create(&OfHook { hook: hook.name() }).inc();
    }
}

/// The metrics of `capasg extension`.
pub struct ExtensionMetrics(Registry);

impl ExtensionMetrics {
    /// Registers everything; `objects` says whether single Clusters have metrics.
    #[must_use]
    pub fn new(
        hooks: &HookMetrics,
        calls: &CallMetrics,
        extension: Arc<Extension>,
        objects: ObjectMetrics,
    ) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process));
        let ours = registry.sub_registry_with_prefix("capasg");
        ours.register("build", "Build version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        calls.register_calls(ours);
        let of_hooks = ours.sub_registry_with_prefix("hook");
        of_hooks.register("calls", "Calls of Runtime Hooks", hooks.calls.clone());
        of_hooks.register("duration_seconds", "Duration of calls of Runtime Hooks", hooks.durations.clone());
        of_hooks.register(
            "block_timeouts",
            "Calls that ignored a reason to block because its timeout had passed",
            hooks.timeouts.clone(),
        );
        of_hooks.register_collector(Box::new(Blocked { extension, objects }));
        Self(registry)
    }
}

impl Exposed for ExtensionMetrics {
    fn registry(&self) -> &Registry {
        &self.0
    }
}

/// Read at each scrape, since a block ends without a call.
struct Blocked {
    extension: Arc<Extension>,
    objects: ObjectMetrics,
}

impl fmt::Debug for Blocked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Blocked")
    }
}

impl Collector for Blocked {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let services = self.extension.services();
        let blocked = services.blocks.summary(services.clock.now());
        let mut clusters = encoder.encode_descriptor(
            "blocked_clusters",
            "Clusters that this replica blocks",
            None,
            MetricType::Gauge,
        )?;
        for (hook, (count, _)) in &blocked {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(clusters.encode_family(&OfHook { hook: hook.name() })?)?;
        }
        let mut since = encoder.encode_descriptor(
            "blocked_since_seconds",
            "Time at which the oldest current block of this replica began, in seconds since the Unix epoch",
            None,
            MetricType::Gauge,
        )?;
        for (hook, (_, first)) in &blocked {
            ConstGauge::new(first.timestamp()).encode(since.encode_family(&OfHook { hook: hook.name() })?)?;
        }
        if !self.objects.are_served() {
            return Ok(());
        }
        let since = "Time at which the current block of the Cluster by this replica began, by hook and cause, in seconds since \
                     the Unix epoch";
        let blocks = services.blocks.current(services.clock.now());
        Encoder::new(encoder).gauge("cluster_blocked_since_timestamp_seconds", since, |metric| {
            blocks.iter().try_for_each(|block| {
                let labels: Labels<'_, 4> = [
                    ("namespace", &block.cluster.namespace),
                    ("cluster", &block.cluster.name),
                    ("hook", block.hook.name()),
                    ("cause", block.cause.as_str()),
                ];
                metric.of(&labels, block.since.timestamp())
            })
        })
    }
}
