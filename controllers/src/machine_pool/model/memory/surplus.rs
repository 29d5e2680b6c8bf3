//! Since when more instances are live than are desired.

use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::{Observed, instances};

/// A surplus that AWS launched itself is left to AWS for this long: where it launches a replacement before it terminates
/// an instance, it waits until the replacement is in service and warmed up.
const REPLACED_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// The instances beyond desired capacity.
#[derive(Debug, Clone, Default)]
pub struct Surplus {
    since: Option<DateTime<Utc>>,
}

impl Surplus {
    /// How long the surplus is left to AWS; `None` if there is none, or if it has been left long enough.
    #[must_use]
    pub fn wait(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        self.since.map(|since| since + REPLACED_WITHIN - now).filter(|wait| *wait > TimeDelta::zero())
    }

    /// Records the group as it is observed now; only a settled view counts.
    pub(super) fn observe(&mut self, observed: &Observed, now: DateTime<Utc>) {
        let Some(group) = observed.group.present().filter(|_| observed.group.is_settled()) else { return };
        if instances::live_count(observed) > group.capacity.desired {
            self.since.get_or_insert(now);
        } else {
            self.since = None;
        }
    }
}
