//! The metrics of this process, for Prometheus. Every label has a small, fixed set of values, except those that name a
//! pool, a release or a Cluster, which a flag turns off.

mod addons;
mod calls;
mod hooks;
mod object;
mod pools;
mod process;
#[cfg(test)]
mod queries;
mod reconciles;
#[cfg(test)]
mod recording;

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, text::encode},
    metrics::{gauge::ConstGauge, info::Info},
    registry::Registry,
};

pub use self::{
    addons::AddonMetrics,
    calls::CallMetrics,
    hooks::{ExtensionMetrics, HookMetrics},
    object::ObjectMetrics,
    pools::PoolMetrics,
    reconciles::ReconcileMetrics,
};
use crate::leadership::Seat;

/// Metrics that can be read.
pub trait Exposed: Send + Sync + 'static {
    /// All of them.
    fn registry(&self) -> &Registry;

    /// The text that a scraper reads.
    ///
    /// # Errors
    /// When a metric cannot be written, which would be a defect of the metric.
    fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, self.registry())?;
        Ok(text)
    }
}

/// The registry and the metrics that other parts of the manager write.
pub struct Metrics {
    registry: Registry,
    /// Calls to the cloud.
    pub calls: Arc<CallMetrics>,
    /// Reconciles of our kinds.
    pub reconciles: Arc<ReconcileMetrics>,
    /// What happens to pools.
    pub pools: Arc<PoolMetrics>,
}

impl Metrics {
    /// Registers everything; `seat` says whether this replica leads, and `objects` whether single pools have metrics.
    #[must_use]
    pub fn new(seat: Arc<Seat>, objects: ObjectMetrics) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::Process));
        let ours = registry.sub_registry_with_prefix("capasg");
        ours.register("build", "Build version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        ours.register_collector(Box::new(Leader(Arc::clone(&seat))));
        let calls = Arc::new(CallMetrics::register(ours));
        let reconciles = Arc::new(ReconcileMetrics::register(ours));
        let pools = Arc::new(PoolMetrics::register(ours, objects, seat));
        Self { registry, calls, reconciles, pools }
    }
}

impl Exposed for Metrics {
    fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// Whether this replica leads, checked at each scrape: a term ends by itself.
#[derive(Debug)]
struct Leader(Arc<Seat>);

impl Collector for Leader {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let leads = ConstGauge::new(i64::from(self.0.is_held()));
        let metric = encoder.encode_descriptor(
            "leader",
            "1 if this replica is the leader, else 0",
            None,
            prometheus_client::metrics::MetricType::Gauge,
        )?;
        leads.encode(metric)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use capasg_cloud::{CallObserver as _, EventKind, EventOutcome};

    use super::*;

    #[test]
    fn the_text_has_every_metric_once() {
        let metrics = Metrics::new(Arc::new(Seat::always()), ObjectMetrics::Served);
        metrics.calls.called("", "SetDesiredCapacity", true, "Success", Duration::from_millis(20));
        metrics.calls.waited("SetDesiredCapacity", Duration::from_millis(200));
        metrics.calls.queue_available("", "eu-west-1", true);
        metrics.calls.event(EventKind::SpotInterruption, EventOutcome::Processed);
        let text = metrics.encode().unwrap();
        for line in [
            "capasg_leader 1",
            concat!("capasg_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "capasg_cloud_calls_total{identity=\"\",api=\"SetDesiredCapacity\",outcome=\"Success\"} 1",
            "capasg_cloud_call_duration_seconds_count{api=\"SetDesiredCapacity\"} 1",
            "capasg_cloud_call_wait_seconds_count{api=\"SetDesiredCapacity\"} 1",
            "capasg_event_queue_up{identity=\"\",region=\"eu-west-1\"} 1",
            "capasg_events_total{kind=\"SpotInterruption\",outcome=\"Processed\"} 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), all, "{text}");
    }

    #[test]
    fn a_standby_says_so() {
        let text = Metrics::new(Arc::new(Seat::vacant()), ObjectMetrics::Served).encode().unwrap();
        assert!(text.lines().any(|line| line == "capasg_leader 0"), "{text}");
    }
}
