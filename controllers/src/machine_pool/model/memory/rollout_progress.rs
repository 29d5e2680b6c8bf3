//! How far a rollout has come: each instance counts once, so that one whose new instances come and go, or are outdated
//! again on arrival, makes no progress.

use std::collections::BTreeSet;

use capasg_api::pool::{RolloutStatus, RolloutWait};
use chrono::{DateTime, TimeDelta, Utc};

/// An instance that AWS launched before the version of the group was corrected appears within this time: in a rollout the
/// group is read every few seconds.
const APPEARS_WITHIN: TimeDelta = TimeDelta::minutes(1);

/// How often another actor may pin the group to another version during a rollout until its instances count.
const MOST_PINS: u32 = 3;

/// The facts about a rollout that decide passes to memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RolloutFacts {
    /// The revision that is rolled out.
    pub revision: String,
    /// Whether instances may be replaced now.
    pub is_open: bool,
    /// Whether it is stopped.
    pub is_stopped: bool,
    /// All instances of the group.
    pub instances: BTreeSet<String>,
    /// The up-to-date instances that are available.
    pub available: BTreeSet<String>,
    /// The instances that are outdated although they were launched during the rollout.
    pub outdated_on_arrival: BTreeSet<String>,
    /// The instances of the version that the group is pinned to, or that another actor pinned it to until shortly before.
    pub launched_as_pinned: BTreeSet<String>,
    /// The version that the group is pinned to.
    pub pinned: Option<i64>,
    /// The number of outdated instances.
    pub outdated: i32,
}

/// The progress of a rollout as this process has seen it.
#[derive(Debug, Clone, Default)]
pub struct RolloutProgress {
    revision: Option<String>,
    /// The instances that existed when replacements began, and those that AWS launched as the group specified since.
    before: Option<BTreeSet<String>>,
    /// The up-to-date instances that became available.
    available: BTreeSet<String>,
    /// The instances that existed when the rollout was first recorded.
    at_begin: BTreeSet<String>,
    /// The fewest outdated instances.
    least_outdated: i32,
    outdated_on_arrival: BTreeSet<String>,
    /// The version that the group was pinned to when replacements were last allowed: the desired one.
    pinned: Option<i64>,
    /// Another version that the group was pinned to since, and when it was last.
    pinned_by_others: Option<(i64, DateTime<Utc>)>,
    /// How often the group was pinned to another version since.
    pins_by_others: u32,
    is_pinned_by_others: bool,
    was_stopped: bool,
    /// When it last progressed, until the status reports that: a reconcile decides several times, and reports once.
    unreported: Option<DateTime<Utc>>,
}

impl RolloutProgress {
    /// Whether anything is known of a revision.
    #[must_use]
    pub fn knows(&self, revision: &str) -> bool {
        self.revision.as_deref() == Some(revision)
    }

    /// When the rollout progressed, if it did since it was last reported: another instance became available, or fewer
    /// instances are outdated than at any time before.
    #[must_use]
    pub fn made_at(
        &self,
        available: &BTreeSet<String>,
        outdated: i32,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        if self.has_progressed(available, outdated) { Some(now) } else { self.unreported }
    }

    fn has_progressed(&self, available: &BTreeSet<String>, outdated: i32) -> bool {
        outdated < self.least_outdated || !available.is_subset(&self.available)
    }

    /// Whether the rollout waits for an instance that terminates: it is new, and was never available.
    #[must_use]
    pub fn awaits(&self, id: &str) -> bool {
        !self.available.contains(id) && !self.at_begin.contains(id)
    }

    /// Records what the status reports, and reported before. The progress is reported once the wait for new instances is
    /// over or begins again; if a step fails, the status stays as it was.
    pub(super) fn report(&mut self, before: Option<&RolloutStatus>, now: Option<&RolloutStatus>) {
        let waits = |status: &RolloutStatus| {
            status.waiting_since.filter(|_| status.waiting_for == Some(RolloutWait::NewInstances))
        };
        let since = now.and_then(waits);
        self.unreported.take_if(|_| since.is_none() || since != before.and_then(waits));
    }

    /// Whether the rollout was stopped when it was last decided on.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.was_stopped
    }

    /// Whether an instance was launched after replacements began.
    #[must_use]
    pub fn is_new(&self, revision: &str, id: &str) -> bool {
        self.knows(revision) && self.before.as_ref().is_some_and(|before| !before.contains(id))
    }

    /// Whether another actor pins the group to other versions again and again: what AWS launches from them would be replaced
    /// without end.
    #[must_use]
    pub fn is_contested(&self) -> bool {
        self.pins_by_others > MOST_PINS
    }

    /// Whether another actor pinned the group to this version during the rollout, until shortly before: instances that AWS
    /// launched from it may still appear.
    #[must_use]
    pub fn was_pinned_by_others(&self, version: i64, now: DateTime<Utc>) -> bool {
        self.pinned_by_others.is_some_and(|(pinned, at)| pinned == version && now - at < APPEARS_WITHIN)
    }

    /// The instances that were outdated on arrival, terminated ones included.
    #[must_use]
    pub fn outdated_on_arrival(&self, revision: &str) -> BTreeSet<String> {
        if self.knows(revision) { self.outdated_on_arrival.clone() } else { BTreeSet::new() }
    }

    /// Records the facts of a plan. A rollout that continues after it was stopped begins again.
    pub(super) fn record(&mut self, facts: &RolloutFacts, now: DateTime<Utc>) {
        let continues = std::mem::replace(&mut self.was_stopped, facts.is_stopped) && !facts.is_stopped;
        if self.revision.as_ref() != Some(&facts.revision) || continues {
            *self = Self {
                revision: Some(facts.revision.clone()),
                available: facts.available.clone(),
                at_begin: facts.instances.clone(),
                least_outdated: facts.outdated,
                was_stopped: facts.is_stopped,
                ..Self::default()
            };
        }
        if self.before.is_none() {
            // Before replacements begin, it may not be known yet which instances are outdated.
            self.least_outdated = facts.outdated;
        }
        if self.has_progressed(&facts.available, facts.outdated) {
            self.unreported = Some(now);
        }
        if facts.is_open {
            self.is_pinned_by_others = false;
            self.pinned = facts.pinned;
            self.before.get_or_insert_with(|| facts.instances.clone());
        } else if self.before.is_some() && facts.pinned != self.pinned {
            self.pins_by_others += u32::from(!std::mem::replace(&mut self.is_pinned_by_others, true));
            self.pinned_by_others = facts.pinned.map(|pinned| (pinned, now)).or(self.pinned_by_others);
        }
        if let Some(before) = &mut self.before {
            before.extend(facts.launched_as_pinned.iter().cloned());
        }
        // An ID is never used again.
        let Self { available, at_begin, before, .. } = self;
        for known in [Some(&mut *available), Some(at_begin), before.as_mut()].into_iter().flatten() {
            known.retain(|id| facts.instances.contains(id));
        }
        available.extend(facts.available.iter().cloned());
        self.outdated_on_arrival.extend(facts.outdated_on_arrival.iter().cloned());
        self.least_outdated = self.least_outdated.min(facts.outdated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn ids(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    fn facts(instances: &[&str], available: &[&str], outdated: i32) -> RolloutFacts {
        RolloutFacts {
            revision: "r".to_owned(),
            is_open: true,
            instances: ids(instances),
            available: ids(available),
            outdated,
            ..RolloutFacts::default()
        }
    }

    /// Whether it progressed by these facts.
    fn is_made(progress: &RolloutProgress, available: &[&str], outdated: i32) -> bool {
        progress.made_at(&ids(available), outdated, BEGIN).is_some()
    }

    #[test]
    fn an_instance_counts_once_as_progress() {
        let mut progress = RolloutProgress::default();
        assert!(!progress.knows("r"));
        progress.record(&facts(&["a", "b", "c"], &["a"], 2), BEGIN);
        assert!(progress.knows("r") && !progress.knows("other"));
        assert!(!is_made(&progress, &["a"], 2));
        assert!(!is_made(&progress, &[], 3), "it is not available for a time");
        progress.record(&facts(&["a", "b", "c"], &[], 3), BEGIN);
        assert!(!is_made(&progress, &["a"], 2), "available again");
        assert!(is_made(&progress, &["a"], 1), "fewer are outdated");
        assert!(is_made(&progress, &["a", "d"], 2));
    }

    #[test]
    fn progress_counts_from_its_time_until_it_is_reported() {
        let later = BEGIN + TimeDelta::minutes(5);
        let mut progress = RolloutProgress::default();
        progress.record(&facts(&["a", "b"], &[], 2), BEGIN);
        progress.record(&facts(&["a", "b"], &["a"], 1), BEGIN);
        let status = |second| -> RolloutStatus {
            let status = serde_json::json!({
                "type": "RollingUpdate", "total": 2, "updated": 1, "outdated": 1,
                "waitingFor": "NewInstances", "waitingSince": format!("2026-01-01T00:00:0{second}Z"),
            });
            serde_json::from_value(status).unwrap()
        };
        progress.report(Some(&status(1)), Some(&status(1)));
        // A step that fails again and again keeps the status, and not the deadline.
        assert_eq!(progress.made_at(&ids(&["a"]), 1, later), Some(BEGIN), "the status is that of before");
        progress.report(Some(&status(1)), Some(&status(2)));
        assert_eq!(progress.made_at(&ids(&["a"]), 1, later), None);
    }

    #[test]
    fn what_is_outdated_counts_from_the_begin_of_replacements() {
        let mut progress = RolloutProgress::default();
        progress.record(&RolloutFacts { is_open: false, ..facts(&["a", "b"], &[], 0) }, BEGIN);
        progress.record(&facts(&["a", "b"], &[], 2), BEGIN);
        assert!(is_made(&progress, &[], 1));
    }

    #[test]
    fn a_version_that_another_actor_pinned_is_known_for_a_minute() {
        let at = |seconds| BEGIN + TimeDelta::seconds(seconds);
        let pinned =
            |is_open, pinned| RolloutFacts { is_open, pinned: Some(pinned), ..facts(&["a"], &[], 1) };
        let mut progress = RolloutProgress::default();
        progress.record(&pinned(false, 1), at(0));
        progress.record(&pinned(true, 2), at(10));
        assert!(!progress.was_pinned_by_others(1, at(10)), "it was pinned before the rollout");
        progress.record(&pinned(false, 9), at(20));
        let expected = RolloutFacts { launched_as_pinned: ids(&["x"]), ..pinned(true, 2) };
        progress.record(&RolloutFacts { instances: ids(&["a", "x"]), ..expected }, at(30));
        assert!(progress.was_pinned_by_others(9, at(79)) && !progress.was_pinned_by_others(9, at(80)));
        assert!(!progress.was_pinned_by_others(2, at(30)), "it is the desired one");
        progress.record(&RolloutFacts { instances: ids(&["a", "x", "y"]), ..pinned(true, 2) }, at(90));
        assert!(!progress.is_new("r", "x") && progress.is_new("r", "y"));
        for seconds in [40, 60, 80] {
            assert!(!progress.is_contested(), "{seconds}");
            progress.record(&pinned(false, 9), at(seconds));
            progress.record(&pinned(false, 9), at(seconds + 1));
            progress.record(&pinned(true, 2), at(seconds + 10));
        }
        assert!(progress.is_contested(), "the fourth time");
    }

    #[test]
    fn a_rollout_that_continues_counts_arrivals_anew() {
        let mut progress = RolloutProgress::default();
        progress.record(&facts(&["a"], &[], 1), BEGIN);
        assert!(progress.is_new("r", "b") && !progress.is_new("r", "a"));
        progress
            .record(&RolloutFacts { outdated_on_arrival: ids(&["b"]), ..facts(&["a", "b"], &[], 2) }, BEGIN);
        progress.record(&facts(&["a"], &[], 1), BEGIN);
        assert_eq!(progress.outdated_on_arrival("r"), ids(&["b"]), "also once it is terminated");
        progress.record(&RolloutFacts { is_stopped: true, is_open: false, ..facts(&["a"], &[], 1) }, BEGIN);
        assert_eq!(progress.outdated_on_arrival("r"), ids(&["b"]), "the reason for the stop is kept");
        progress.record(&facts(&["a", "c"], &[], 2), BEGIN);
        assert!(progress.outdated_on_arrival("r").is_empty() && !progress.is_new("r", "c"));
    }
}
