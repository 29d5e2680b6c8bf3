//! Since when the instance types of the spec cannot be read.

use capasg_cloud::CloudError;
use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::Failures;
use crate::machine_pool::model::ReconcileError;

/// The reads of the instance types that failed in a row. Only report requires the types, so that a failure delays
/// nothing else.
#[derive(Debug, Clone, Default)]
pub struct InstanceTypeReads(Option<Failures>);

impl InstanceTypeReads {
    /// How long to wait from `now` on until the types are read again; `None` if the last read succeeded.
    #[must_use]
    pub fn wait(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        self.0.as_ref().map(|failures| failures.wait(now).unwrap_or(TimeDelta::zero()))
    }

    /// Records a read.
    pub(super) fn record(&mut self, failed: Option<&CloudError>, now: DateTime<Utc>) {
        self.0 = failed.map(|error| {
            let curve = ReconcileError::Cloud(error.clone()).curve();
            Failures::after(self.0.as_ref(), curve, now)
        });
    }
}
