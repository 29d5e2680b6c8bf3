//! Metrics of single objects: the switch that turns them off, and how they are written at a scrape.

use std::fmt;

use capasg_api::conditions::ConditionState;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeCounterValue, EncodeMetric, MetricEncoder},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// Whether metrics of single pools, releases and Clusters are served. Their number grows with that of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectMetrics {
    /// They are.
    Served,
    /// They are not.
    Off,
}

impl ObjectMetrics {
    /// Whether they are served.
    #[must_use]
    pub fn are_served(self) -> bool {
        self == Self::Served
    }
}

impl From<bool> for ObjectMetrics {
    fn from(served: bool) -> Self {
        if served { Self::Served } else { Self::Off }
    }
}

/// Names and values of the labels that all metrics of an object have.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// Writes metrics of objects, one metric after another, each with all objects.
pub(super) struct Encoder<'a>(DescriptorEncoder<'a>);

impl<'a> Encoder<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// A gauge, whose values `write` writes.
    pub(super) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        write: impl FnOnce(&mut Metric<'_, Gauges>) -> fmt::Result,
    ) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        write(&mut Metric { encoder, kind: Gauges })
    }

    /// What describes objects and is no number.
    pub(super) fn info(
        &mut self,
        name: &str,
        help: &str,
        write: impl FnOnce(&mut Metric<'_, Infos>) -> fmt::Result,
    ) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Info)?;
        write(&mut Metric { encoder, kind: Infos })
    }

    /// A counter, whose values `write` writes.
    pub(super) fn counter(
        &mut self,
        name: &str,
        help: &str,
        write: impl FnOnce(&mut Metric<'_, Counters>) -> fmt::Result,
    ) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        write(&mut Metric { encoder, kind: Counters })
    }
}

/// The values of a metric are gauges.
pub(super) struct Gauges;

/// The values of a metric are counters.
pub(super) struct Counters;

/// The values of a metric are labels.
pub(super) struct Infos;

/// Writes the values of one metric.
pub(super) struct Metric<'a, K> {
    encoder: MetricEncoder<'a>,
    kind: K,
}

impl<K> Metric<'_, K> {
    /// The value of an object.
    pub(super) fn of<const N: usize, V>(&mut self, labels: &Labels<'_, N>, value: V) -> fmt::Result
    where
        K: Kind<V>,
    {
        self.kind.write(self.encoder.encode_family(labels)?, value)
    }

    /// A value of an object that has further labels.
    pub(super) fn with<const N: usize, const M: usize, V>(
        &mut self,
        labels: &Labels<'_, N>,
        more: &Labels<'_, M>,
        value: V,
    ) -> fmt::Result
    where
        K: Kind<V>,
    {
        self.kind.write(self.encoder.encode_family(&(*labels, *more))?, value)
    }
}

impl Metric<'_, Gauges> {
    /// The conditions of an object, with the value 1.
    pub(super) fn conditions<const N: usize>(
        &mut self,
        labels: &Labels<'_, N>,
        conditions: &[ConditionState],
    ) -> fmt::Result {
        conditions.iter().try_for_each(|condition| {
            let more = [
                ("type", condition.type_.as_str()),
                ("status", &condition.status),
                ("reason", &condition.reason),
            ];
            self.with(labels, &more, 1)
        })
    }
}

impl Metric<'_, Infos> {
    /// The description of an object.
    pub(super) fn describe<const N: usize, const M: usize>(
        &mut self,
        labels: &Labels<'_, N>,
        more: &Labels<'_, M>,
    ) -> fmt::Result {
        self.encoder.encode_info(&(*labels, *more))
    }
}

/// A kind of metric that has values of a type.
pub(super) trait Kind<V> {
    /// Writes a value.
    fn write(&self, encoder: MetricEncoder<'_>, value: V) -> fmt::Result;
}

impl Kind<i64> for Gauges {
    fn write(&self, encoder: MetricEncoder<'_>, value: i64) -> fmt::Result {
        ConstGauge::new(value).encode(encoder)
    }
}

impl<V: EncodeCounterValue> Kind<V> for Counters {
    fn write(&self, encoder: MetricEncoder<'_>, value: V) -> fmt::Result {
        ConstCounter::new(value).encode(encoder)
    }
}
