//! The metrics of `capasg addons`: operations on releases, and reconciles.

use std::{sync::Arc, time::Duration};

use capasg_addons::{controller::OperationObserver, runtime};
use capasg_controllers::ReconcileObserver as _;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};

use super::{Exposed, Leader, process::Process, reconciles::ReconcileMetrics};
use crate::leadership::Seat;

/// Seconds: an operation that waits for nothing takes some seconds, one that waits for resources up to its time limit.
const BUCKETS: [f64; 9] = [0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    operation: &'static str,
    outcome: &'static str,
}

/// Receives every operation on a release.
#[derive(Debug)]
pub struct OperationMetrics {
    operations: Family<Outcome, Counter>,
    durations: Family<Operation, Histogram, fn() -> Histogram>,
}

impl OperationObserver for OperationMetrics {
    fn operated(&self, operation: &'static str, outcome: &'static str, took: Duration) {
        self.operations.get_or_create(&Outcome { operation, outcome }).inc();
        self.durations.get_or_create(&Operation { operation }).observe(took.as_secs_f64());
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
    ready: &'static str,
}

/// Receives every reconcile from the controllers of both kinds.
#[derive(Debug)]
pub struct AddonReconciles {
    reconciles: ReconcileMetrics,
    releases: Family<State, Gauge>,
    drifted: Gauge,
}

impl runtime::ReconcileObserver for AddonReconciles {
    fn reconciled(&self, controller: &'static str, outcome: &'static str, took: Duration) {
        self.reconciles.reconciled(controller, outcome, took);
    }

    fn in_backoff(&self, controller: &'static str, objects: usize) {
        self.reconciles.in_backoff(controller, objects);
    }

    fn releases(&self, counts: &runtime::ReleaseCounts) {
        self.releases.clear();
        for (&(state, is_ready), count) in counts {
            let state = State { state, ready: if is_ready { "true" } else { "false" } };
            self.releases.get_or_create(&state).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }

    fn drifted(&self, releases: usize) {
        self.drifted.set(i64::try_from(releases).unwrap_or(i64::MAX));
    }
}

/// The metrics of `capasg addons`.
pub struct AddonMetrics {
    registry: Registry,
    /// Reconciles of both kinds.
    pub reconciles: Arc<AddonReconciles>,
    /// Operations on releases.
    pub operations: Arc<OperationMetrics>,
}

impl AddonMetrics {
    /// Registers everything; `seat` says whether this replica leads.
    #[must_use]
    pub fn new(seat: Arc<Seat>) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process));
        let ours = registry.sub_registry_with_prefix("capasg");
        ours.register("build", "Build version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        ours.register_collector(Box::new(Leader(seat)));
        let reconciles = AddonReconciles {
            reconciles: ReconcileMetrics::register(ours),
            releases: Family::default(),
            drifted: Gauge::default(),
        };
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        let operations = OperationMetrics {
            operations: Family::default(),
            durations: Family::new_with_constructor(buckets),
        };
        let of_helm = ours.sub_registry_with_prefix("helm");
        of_helm.register("operations", "Operations on releases by outcome", operations.operations.clone());
        of_helm.register(
            "releases",
            "HelmReleaseProxies by state of the release and readiness",
            reconciles.releases.clone(),
        );
        let about = "HelmReleaseProxies with resources that another actor changed";
        of_helm.register("releases_drifted", about, reconciles.drifted.clone());
        let about = "Duration of operations on releases, with the download of the chart";
        of_helm.register("operation_duration_seconds", about, operations.durations.clone());
        Self { registry, reconciles: Arc::new(reconciles), operations: Arc::new(operations) }
    }
}

impl Exposed for AddonMetrics {
    fn registry(&self) -> &Registry {
        &self.registry
    }
}

#[cfg(test)]
mod tests {
    use capasg_addons::runtime::ReconcileObserver;

    use super::*;

    #[test]
    fn operations_are_counted_by_outcome() {
        let metrics = AddonMetrics::new(Arc::new(Seat::always()));
        metrics.operations.operated("install", "ok", Duration::from_secs(3));
        metrics.operations.operated("install", "ChartNotFound", Duration::from_secs(1));
        let reconciles: &dyn ReconcileObserver = &*metrics.reconciles;
        reconciles.reconciled("helmreleaseproxy", "ok", Duration::from_millis(3));
        reconciles.releases(&[(("failed", false), 2)].into());
        reconciles.releases(&[(("deployed", true), 3), (("pending-install", false), 1)].into());
        reconciles.drifted(2);
        let text = metrics.encode().unwrap();
        for line in [
            "capasg_leader 1",
            "capasg_helm_operations_total{operation=\"install\",outcome=\"ok\"} 1",
            "capasg_helm_operations_total{operation=\"install\",outcome=\"ChartNotFound\"} 1",
            "capasg_helm_releases{state=\"deployed\",ready=\"true\"} 3",
            "capasg_helm_releases{state=\"pending-install\",ready=\"false\"} 1",
            "capasg_helm_releases_drifted 2",
            "capasg_helm_operation_duration_seconds_count{operation=\"install\"} 2",
            "capasg_reconciles_total{controller=\"helmreleaseproxy\",outcome=\"ok\"} 1",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("failed"), "no release has this state now");
    }
}
