//! What the queue contains.

use crate::controller::ObjectKey;

/// An object that is reconciled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A `HelmChartProxy`.
    Chart(ObjectKey),
    /// A `HelmReleaseProxy`.
    Release(ObjectKey),
}

impl Item {
    /// The name of its controller, for logs and metrics.
    #[must_use]
    pub fn controller(&self) -> &'static str {
        match self {
            Self::Chart(_) => "helmchartproxy",
            Self::Release(_) => "helmreleaseproxy",
        }
    }

    /// The object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Chart(key) | Self::Release(key) => key,
        }
    }

    pub(super) fn is_chart(&self) -> bool {
        matches!(self, Self::Chart(_))
    }
}
