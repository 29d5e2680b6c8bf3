//! Calls to the cloud: how many, with which outcome, how long they took and how long they waited for the rate limit; and AWS
//! events.

use std::time::Duration;

use capasg_cloud::{CallObserver, EventKind, EventOutcome, Place};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Seconds: from a local endpoint's answer to the deadline of a slow call.
const BUCKETS: [f64; 9] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Api {
    api: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    identity: String,
    api: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Event {
    kind: &'static str,
    outcome: &'static str,
}

/// One of the identities and regions that pools name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Region {
    identity: String,
    region: String,
}

/// Receives every call from the gateway.
#[derive(Debug)]
pub struct CallMetrics {
    calls: Family<CallLabels, Counter>,
    durations: Family<Api, Histogram, fn() -> Histogram>,
    waits: Family<Api, Histogram, fn() -> Histogram>,
    rechecks: Counter,
    events: Family<Event, Counter>,
    queues: Family<Region, Gauge>,
}

impl Default for CallMetrics {
    fn default() -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        Self {
            calls: Family::default(),
            durations: Family::new_with_constructor(buckets),
            waits: Family::new_with_constructor(buckets),
            rechecks: Counter::default(),
            events: Family::default(),
            queues: Family::default(),
        }
    }
}

impl CallMetrics {
    pub(super) fn register(ours: &mut Registry) -> Self {
        let metrics = Self::default();
        ours.register("events", "AWS events received from event queues", metrics.events.clone());
        ours.register(
            "event_queue_up",
            "1 if the event queue of a region is available, else 0; absent without a queue",
            metrics.queues.clone(),
        );
        metrics.register_calls(ours).register(
            "listings_repeated",
            "Listings repeated because a known group was missing",
            metrics.rechecks.clone(),
        );
        metrics
    }

    /// Registers the calls alone, for a process without inventories of groups; the registry of what else is about them.
    pub(super) fn register_calls<'a>(&self, ours: &'a mut Registry) -> &'a mut Registry {
        let registry = ours.sub_registry_with_prefix("cloud");
        registry.register(
            "calls",
            "Calls to AWS; each page of a paginated call counts as one",
            self.calls.clone(),
        );
        registry.register(
            "call_duration_seconds",
            "Duration of calls to AWS, excluding the wait for the rate limit",
            self.durations.clone(),
        );
        registry.register(
            "call_wait_seconds",
            "Time that calls to AWS waited for the rate limit",
            self.waits.clone(),
        );
        registry
    }
}

impl CallObserver for CallMetrics {
    fn called(
        &self,
        identity: &str,
        api: &'static str,
        _mutating: bool,
        outcome: &'static str,
        took: Duration,
    ) {
        self.calls.get_or_create(&CallLabels { identity: identity.to_owned(), api, outcome }).inc();
        self.durations.get_or_create(&Api { api }).observe(took.as_secs_f64());
    }

    fn waited(&self, api: &'static str, waited: Duration) {
        self.waits.get_or_create(&Api { api }).observe(waited.as_secs_f64());
    }

    fn listing_rechecked(&self) {
        self.rechecks.inc();
    }

    fn queue_available(&self, identity: &str, region: &str, available: bool) {
        let (identity, region) = (identity.to_owned(), region.to_owned());
        self.queues.get_or_create(&Region { identity, region }).set(i64::from(available));
    }

    fn closed(&self, place: &Place) {
        let Place { identity, region } = place;
        self.queues.remove(&Region { identity: identity.name.clone(), region: region.clone() });
    }

    fn event(&self, kind: EventKind, outcome: EventOutcome) {
        self.events.get_or_create(&Event { kind: kind.as_str(), outcome: outcome.as_str() }).inc();
    }
}
