//! The metrics of `capasg addons`: operations on releases, reconciles, and each release.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capasg_addons::{
    controller::{ObjectKey, OperationObserver},
    runtime::{self, ReleaseGauges},
};
use capasg_controllers::ReconcileObserver as _;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};

use super::{
    Exposed, Leader, ObjectMetrics,
    object::{Encoder, Labels},
    process::Process,
    reconciles::ReconcileMetrics,
};
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
    all: Option<Arc<Releases>>,
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

    fn release(&self, key: &ObjectKey, gauges: Option<ReleaseGauges>) {
        let Some(all) = &self.all else { return };
        let mut all = all.all.lock().unwrap_or_else(PoisonError::into_inner);
        match gauges {
            Some(gauges) => drop(all.insert(key.clone(), gauges)),
            None => drop(all.remove(key)),
        }
    }

    fn drifted(&self, releases: usize) {
        self.drifted.set(i64::try_from(releases).unwrap_or(i64::MAX));
    }
}

/// All `HelmReleaseProxies`.
#[derive(Debug)]
struct Releases {
    seat: Arc<Seat>,
    all: Mutex<BTreeMap<ObjectKey, ReleaseGauges>>,
}

#[derive(Debug)]
struct Shared(Arc<Releases>);

impl Collector for Shared {
    /// A replica that does not lead has nothing to say.
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if !self.0.seat.is_held() {
            return Ok(());
        }
        let all = self.0.all.lock().unwrap_or_else(PoisonError::into_inner);
        let releases: Vec<(Labels<'_, 4>, &ReleaseGauges)> = all
            .iter()
            .map(|(key, gauges)| {
                let labels = [
                    ("namespace", key.namespace.as_str()),
                    ("cluster", &gauges.cluster),
                    ("helmchartproxy", &gauges.chart_proxy),
                    ("helmreleaseproxy", &key.name),
                ];
                (labels, gauges)
            })
            .collect();
        let mut encoder = Encoder::new(encoder);
        encoder.info("release", "Release and chart of the HelmReleaseProxy", |metric| {
            releases.iter().try_for_each(|(labels, gauges)| {
                let more = [
                    ("release_namespace", gauges.release_namespace.as_str()),
                    ("release", &gauges.release),
                    ("chart", &gauges.chart),
                    ("version", &gauges.version),
                ];
                metric.describe(labels, &more)
            })
        })?;
        encoder.gauge(
            "release_state",
            "State of the release as Helm reports it; the value is 1",
            |metric| {
                let mut known = releases.iter().filter(|(_, gauges)| !gauges.state.is_empty());
                known.try_for_each(|(labels, gauges)| metric.with(labels, &[("state", &gauges.state)], 1))
            },
        )?;
        encoder.gauge("release_condition", "Conditions of the HelmReleaseProxy; the value is 1", |metric| {
            releases.iter().try_for_each(|(labels, gauges)| metric.conditions(labels, &gauges.conditions))
        })
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
    /// Registers everything; `seat` says whether this replica leads, and `objects` whether single releases have metrics.
    #[must_use]
    pub fn new(seat: Arc<Seat>, objects: ObjectMetrics) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process));
        let ours = registry.sub_registry_with_prefix("capasg");
        ours.register("build", "Build version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        ours.register_collector(Box::new(Leader(Arc::clone(&seat))));
        let reconciles = AddonReconciles {
            reconciles: ReconcileMetrics::register(ours),
            releases: Family::default(),
            drifted: Gauge::default(),
            all: objects.are_served().then(|| Arc::new(Releases { seat, all: Mutex::default() })),
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
        if let Some(all) = &reconciles.all {
            of_helm.register_collector(Box::new(Shared(Arc::clone(all))));
        }
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
    use capasg_api::conditions::ConditionState;

    use super::*;

    #[test]
    fn operations_are_counted_by_outcome() {
        let metrics = AddonMetrics::new(Arc::new(Seat::always()), ObjectMetrics::Served);
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

    fn gauges() -> ReleaseGauges {
        let text = str::to_owned;
        let ready = ConditionState {
            type_: text("Ready"),
            status: text("False"),
            reason: text("HelmReleasePending"),
        };
        ReleaseGauges {
            cluster: text("prod"),
            chart_proxy: text("cni"),
            chart: text("cilium"),
            version: text("1.18.2"),
            release_namespace: text("kube-system"),
            release: text("cilium"),
            state: text("pending-install"),
            conditions: vec![ready],
        }
    }

    #[test]
    fn a_release_has_metrics_while_it_exists() {
        let metrics = AddonMetrics::new(Arc::new(Seat::always()), ObjectMetrics::Served);
        let key = ObjectKey::new("teams", "cni-prod-x");
        let reconciles: &dyn ReconcileObserver = &*metrics.reconciles;
        reconciles.release(&key, Some(gauges()));
        let text = metrics.encode().unwrap();
        let labels =
            "namespace=\"teams\",cluster=\"prod\",helmchartproxy=\"cni\",helmreleaseproxy=\"cni-prod-x\"";
        let chart =
            "release_namespace=\"kube-system\",release=\"cilium\",chart=\"cilium\",version=\"1.18.2\"";
        for line in [
            format!("capasg_helm_release_info{{{labels},{chart}}} 1"),
            format!("capasg_helm_release_state{{{labels},state=\"pending-install\"}} 1"),
            format!(
                "capasg_helm_release_condition{{{labels},type=\"Ready\",status=\"False\",reason=\"HelmReleasePending\"}} 1"
            ),
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
        reconciles.release(&key, None);
        assert!(!metrics.encode().unwrap().contains("cni-prod-x"));
    }

    #[test]
    fn a_replica_that_does_not_lead_and_one_with_the_flag_have_no_releases() {
        for (seat, objects) in [(Seat::vacant(), ObjectMetrics::Served), (Seat::always(), ObjectMetrics::Off)]
        {
            let metrics = AddonMetrics::new(Arc::new(seat), objects);
            metrics.reconciles.release(&ObjectKey::new("teams", "cni-prod-x"), Some(gauges()));
            assert!(!metrics.encode().unwrap().contains("cni-prod-x"));
        }
    }
}
