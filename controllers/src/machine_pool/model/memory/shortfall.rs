//! Since when fewer instances are live than are desired.

use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::{Observed, instances};

/// A launch that has been missing for this long fails: if replicas may be unavailable, the rollout continues without a
/// surge that AWS does not launch.
const LONG: TimeDelta = TimeDelta::minutes(5);

/// The instances that are missing.
#[derive(Debug, Clone, Default)]
pub struct Shortfall {
    since: Option<DateTime<Utc>>,
    long_at: Option<DateTime<Utc>>,
}

impl Shortfall {
    /// Since when instances are missing.
    #[must_use]
    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.since
    }

    /// The last time at which instances had been missing for at least 5 minutes.
    #[must_use]
    pub fn last_long(&self) -> Option<DateTime<Utc>> {
        self.long_at
    }

    /// How long until instances have been missing for 5 minutes, or until the last time they had been is `recent` ago.
    #[must_use]
    pub fn until_next(&self, recent: TimeDelta, now: DateTime<Utc>) -> Option<TimeDelta> {
        let times = [self.since.map(|since| since + LONG), self.long_at.map(|at| at + recent)];
        times.into_iter().flatten().map(|at| at - now).filter(|wait| *wait > TimeDelta::zero()).min()
    }

    /// Records the group as it is observed now; only a settled view counts.
    pub(super) fn observe(&mut self, observed: &Observed, now: DateTime<Utc>) {
        let Some(group) = observed.group.present().filter(|_| observed.group.is_settled()) else { return };
        if instances::live_count(observed) >= group.capacity.desired {
            self.since = None;
        } else if now - *self.since.get_or_insert(now) >= LONG {
            self.long_at = Some(now);
        }
    }
}
