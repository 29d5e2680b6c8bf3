//! The balance of the zones: since when it is lost, and the instance whose replacement is to restore it.

use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::{Observed, instances};

/// Zones whose numbers of instances differ by this many are out of balance: by one they differ wherever replicas are no
/// multiple of the zones.
const IMBALANCE: usize = 2;
/// A replacement that did not improve the balance is not repeated for this long: the zone may have no capacity.
const WITHOUT_EFFECT: TimeDelta = TimeDelta::hours(1);

/// The balance of the zones.
#[derive(Debug, Clone, Default)]
pub struct ZoneBalance {
    lost_since: Option<DateTime<Utc>>,
    replacement: Option<Replacement>,
    retry_at: Option<DateTime<Utc>>,
}

/// A replacement in progress.
#[derive(Debug, Clone)]
struct Replacement {
    instance: String,
    /// By how much the zones differed when it began.
    difference: usize,
}

impl ZoneBalance {
    /// From when on an instance may be replaced to restore the balance: once it has been lost for `lasts`, and not soon
    /// after a replacement that did not improve it. `None` while the zones are balanced.
    #[must_use]
    pub fn due_at(&self, lasts: TimeDelta) -> Option<DateTime<Utc>> {
        self.lost_since.map(|since| (since + lasts).max(self.retry_at.unwrap_or(since)))
    }

    /// The instance that is being replaced.
    #[must_use]
    pub fn replaced(&self) -> Option<&String> {
        self.replacement.as_ref().map(|replacement| &replacement.instance)
    }

    /// Records the zones as they are observed now; only a settled view that shows all desired instances counts.
    pub(super) fn observe(&mut self, observed: &Observed, now: DateTime<Utc>) {
        let Some(difference) = difference(observed) else { return };
        if difference >= IMBALANCE {
            self.lost_since.get_or_insert(now);
        } else {
            self.lost_since = None;
        }
    }

    /// Records which instance a plan replaces to restore the balance.
    pub(super) fn replace(&mut self, instance: Option<&String>, observed: &Observed, now: DateTime<Utc>) {
        if self.replaced() == instance {
            return;
        }
        let difference = difference(observed).unwrap_or(IMBALANCE);
        let before = std::mem::take(&mut self.replacement);
        if before.is_some_and(|before| difference >= before.difference) {
            self.retry_at = Some(now + WITHOUT_EFFECT);
        }
        self.replacement = instance.map(|instance| Replacement { instance: instance.clone(), difference });
    }
}

#[cfg(test)]
impl ZoneBalance {
    /// A plan replaces this instance, for a test to record.
    pub fn planned(&mut self, instance: Option<&String>, observed: &Observed, now: DateTime<Utc>) {
        self.replace(instance, observed, now);
    }
}

/// By how much the numbers of instances of two zones differ at most; `None` while instances are missing, or if the view
/// is not settled.
fn difference(observed: &Observed) -> Option<usize> {
    let group = observed.group.present().filter(|_| observed.group.is_settled())?;
    if instances::live_count(observed) < group.capacity.desired {
        return None;
    }
    let counts = instances::zone_counts(observed, group);
    Some(counts.values().max()? - counts.values().min()?)
}
