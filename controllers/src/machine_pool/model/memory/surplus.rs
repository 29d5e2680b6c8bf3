//! Since when the same instances are more than are desired.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::{Observed, instances};

/// A surplus that AWS launched itself is left to AWS for this long: where it launches a replacement before it terminates
/// an instance, it waits until the replacement is in service and warmed up.
const REPLACED_WITHIN: TimeDelta = TimeDelta::minutes(10);
/// However many replacements follow one another: remediation and rollouts wait meanwhile.
const AT_MOST: TimeDelta = TimeDelta::minutes(30);

/// The instances beyond desired capacity.
#[derive(Debug, Clone, Default)]
pub struct Surplus {
    /// Since when there has been any.
    first: Option<DateTime<Utc>>,
    since: Option<DateTime<Utc>>,
    /// The live instances since then: another one is another replacement of AWS, with a time of its own.
    live: BTreeSet<String>,
}

impl Surplus {
    /// How long the surplus is left to AWS; `None` if there is none, or if it has been left long enough.
    #[must_use]
    pub fn wait(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let ends = [self.since.map(|at| at + REPLACED_WITHIN), self.first.map(|at| at + AT_MOST)];
        let end = ends.into_iter().flatten().min()?;
        Some(end - now).filter(|wait| *wait > TimeDelta::zero())
    }

    /// Records the group as it is observed now; only a settled view counts.
    pub(super) fn observe(&mut self, observed: &Observed, now: DateTime<Utc>) {
        let Some(group) = observed.group.present().filter(|_| observed.group.is_settled()) else { return };
        if instances::live_count(observed) <= group.capacity.desired {
            *self = Self::default();
            return;
        }
        let live: BTreeSet<String> = instances::live(observed).map(|(id, _)| id.clone()).collect();
        if self.since.is_none() || !live.is_subset(&self.live) {
            self.since = Some(now);
            self.first.get_or_insert(now);
        }
        self.live = live;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_pool::decide::testing::{Stage, now};

    /// Minutes that are left of the time for AWS.
    fn left(surplus: &Surplus, minutes: i64) -> Option<i64> {
        surplus.wait(now() + TimeDelta::minutes(minutes)).map(|wait| wait.num_minutes())
    }

    #[test]
    fn each_surplus_has_a_time_of_its_own() {
        let (mut stage, mut surplus) = (Stage::new(3), Surplus::default());
        let observe = |surplus: &mut Surplus, stage: &Stage, minutes| {
            surplus.observe(&stage.observed, now() + TimeDelta::minutes(minutes));
        };
        stage.add("i-4", 1);
        observe(&mut surplus, &stage, 0);
        assert_eq!(left(&surplus, 0), Some(10));
        // AWS terminates i-1 and launches the next replacement: there are always more than desired.
        stage.observed.instances.remove("i-1");
        stage.add("i-5", 1);
        observe(&mut surplus, &stage, 9);
        assert_eq!(left(&surplus, 12), Some(7), "the second one has begun");
        stage.observed.instances.remove("i-5");
        stage.add("i-6", 1);
        observe(&mut surplus, &stage, 20);
        assert_eq!(left(&surplus, 20), Some(10), "and the third one, after the time of the first");
        stage.observed.instances.remove("i-6");
        stage.add("i-7", 1);
        observe(&mut surplus, &stage, 25);
        assert_eq!(left(&surplus, 25), Some(5), "half an hour in all");
    }

    #[test]
    fn a_surplus_that_stays_is_left_to_aws_no_longer() {
        let (mut stage, mut surplus) = (Stage::new(3), Surplus::default());
        stage.add("i-4", 1);
        stage.add("i-5", 1);
        surplus.observe(&stage.observed, now());
        // Fewer are no other surplus.
        stage.observed.instances.remove("i-1");
        surplus.observe(&stage.observed, now() + TimeDelta::minutes(5));
        assert_eq!(left(&surplus, 9), Some(1));
        assert_eq!(left(&surplus, 10), None);
        stage.observed.instances.remove("i-2");
        surplus.observe(&stage.observed, now() + TimeDelta::minutes(11));
        stage.observed.instances.insert("i-2".to_owned(), Stage::new(3).instance("i-2").clone());
        surplus.observe(&stage.observed, now() + TimeDelta::minutes(12));
        assert_eq!(left(&surplus, 12), Some(10), "it ended in between");
    }
}
