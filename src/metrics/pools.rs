//! What happens to pools: launches that fail, by reason.

use capasg_controllers::PoolObserver;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// Receives what the pool controller reports.
#[derive(Debug)]
pub struct PoolMetrics {
    launch_failures: Family<Reason, Counter>,
}

impl PoolMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self { launch_failures: Family::default() };
        registry.register(
            "launch_failures",
            "Failed launches found in scaling activities",
            metrics.launch_failures.clone(),
        );
        metrics
    }
}

impl PoolObserver for PoolMetrics {
    fn launch_failed(&self, reason: &'static str) {
        self.launch_failures.get_or_create(&Reason { reason }).inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn failed_launches_are_counted_by_reason() {
        let mut registry = Registry::default();
        let metrics = PoolMetrics::register(&mut registry);
        metrics.launch_failed("QuotaExceeded");
        metrics.launch_failed("QuotaExceeded");
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let line = "launch_failures_total{reason=\"QuotaExceeded\"} 2";
        assert!(text.lines().any(|written| written == line), "{text}");
    }
}
