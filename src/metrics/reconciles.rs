//! Reconciles: how many, with which outcome, how long they took, and how many objects are in backoff.

use std::time::Duration;

use capasg_controllers::ReconcileObserver;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Seconds: a reconcile without a call takes well under a millisecond, one with several calls some seconds.
const BUCKETS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    controller: &'static str,
    outcome: &'static str,
}

/// Receives every reconcile from the controllers.
#[derive(Debug)]
pub struct ReconcileMetrics {
    reconciles: Family<Outcome, Counter>,
    durations: Family<Controller, Histogram, fn() -> Histogram>,
    backoff: Family<Controller, Gauge>,
}

impl ReconcileMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        let metrics = Self {
            reconciles: Family::default(),
            durations: Family::new_with_constructor(buckets),
            backoff: Family::default(),
        };
        registry.register("reconciles", "Reconciles by outcome", metrics.reconciles.clone());
        registry.register("reconcile_duration_seconds", "Duration of reconciles", metrics.durations.clone());
        registry.register(
            "objects_in_backoff",
            "Objects that wait for a retry after a failed reconcile",
            metrics.backoff.clone(),
        );
        metrics
    }
}

impl ReconcileObserver for ReconcileMetrics {
    fn reconciled(&self, controller: &'static str, outcome: &'static str, took: Duration) {
        self.reconciles.get_or_create(&Outcome { controller, outcome }).inc();
        self.durations.get_or_create(&Controller { controller }).observe(took.as_secs_f64());
    }

    fn in_backoff(&self, controller: &'static str, objects: usize) {
        self.backoff
            .get_or_create(&Controller { controller })
            .set(i64::try_from(objects).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn counts_by_controller_and_outcome() {
        let mut registry = Registry::default();
        let metrics = ReconcileMetrics::register(&mut registry);
        metrics.reconciled("pool", "Done", Duration::from_millis(3));
        metrics.reconciled("pool", "Done", Duration::from_millis(3));
        metrics.reconciled("pool", "Error", Duration::from_secs(2));
        metrics.in_backoff("pool", 1);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "reconciles_total{controller=\"pool\",outcome=\"Done\"} 2",
            "reconciles_total{controller=\"pool\",outcome=\"Error\"} 1",
            "reconcile_duration_seconds_bucket{le=\"0.005\",controller=\"pool\"} 2",
            "objects_in_backoff{controller=\"pool\"} 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
    }
}
