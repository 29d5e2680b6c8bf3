//! The balance of the zones: since when it is lost, and the instance whose replacement is to restore it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::Curve;
use crate::machine_pool::model::{Observed, instances};

/// Zones whose numbers of instances differ by this many are out of balance: by one they differ wherever replicas are no
/// multiple of the zones.
const IMBALANCE: usize = 2;
/// A replacement that did not improve the balance is not repeated for this long, since the zone may have no capacity.
const WITHOUT_EFFECT: Curve = Curve { first: Duration::from_hours(1), longest: Duration::from_hours(24) };

/// The balance of the zones.
#[derive(Debug, Clone, Default)]
pub struct ZoneBalance {
    lost_since: Option<DateTime<Utc>>,
    replacement: Option<Replacement>,
    retry_at: Option<DateTime<Utc>>,
    /// The replacements in a row that did not improve the balance.
    without_effect: u32,
}

/// A replacement in progress.
#[derive(Debug, Clone)]
struct Replacement {
    instance: String,
    /// How uneven the zones were when it began.
    unevenness: Option<usize>,
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
        let Some(zones) = zones(observed) else { return };
        if zones.difference >= IMBALANCE {
            self.lost_since.get_or_insert(now);
        } else {
            self.lost_since = None;
            self.without_effect = 0;
        }
    }

    /// Records which instance a plan replaces to restore the balance.
    pub(super) fn replace(&mut self, instance: Option<&String>, observed: &Observed, now: DateTime<Utc>) {
        if self.replaced() == instance {
            return;
        }
        let unevenness = zones(observed).map(|zones| zones.unevenness);
        if let Some(before) = self.replacement.take() {
            let is_better = before.unevenness.zip(unevenness).is_some_and(|(before, now)| now < before);
            self.without_effect = if is_better { 0 } else { self.without_effect.saturating_add(1) };
            if !is_better {
                self.retry_at = Some(now + WITHOUT_EFFECT.time_delta(self.without_effect));
            }
        }
        self.replacement = instance.map(|instance| Replacement { instance: instance.clone(), unevenness });
    }
}

#[cfg(test)]
impl ZoneBalance {
    /// A plan replaces this instance, for a test to record.
    pub fn planned(&mut self, instance: Option<&String>, observed: &Observed, now: DateTime<Utc>) {
        self.replace(instance, observed, now);
    }
}

/// How the instances are spread over the zones.
struct Zones {
    /// By how much the zone with the most exceeds that with the fewest in which the group launches.
    difference: usize,
    /// The sum of the squares of the counts: every move to a zone with fewer lowers it.
    unevenness: usize,
}

/// The zones; `None` while instances are missing, or if the view is not settled.
fn zones(observed: &Observed) -> Option<Zones> {
    let group = observed.group.present().filter(|_| observed.group.is_settled())?;
    if instances::live_count(observed) < group.capacity.desired {
        return None;
    }
    let counts = instances::zone_counts(observed, group);
    let fewest =
        counts.iter().filter(|(zone, _)| group.zones.contains(**zone)).map(|(_, count)| *count).min()?;
    Some(Zones {
        difference: counts.values().max()?.saturating_sub(fewest),
        unevenness: counts.values().map(|count| count * count).sum(),
    })
}
