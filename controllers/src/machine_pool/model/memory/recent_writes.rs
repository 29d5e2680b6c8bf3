//! The changes of a group that AWS has accepted and that a read does not show yet. A change that AWS accepts again and
//! again without effect is repeated at growing intervals.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use capasg_cloud::Write;
use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::{Curve, remaining};
use crate::machine_pool::model::call_kind::{CallKind, CallTopic};

/// A write is not repeated for this long after its answer.
const REPETITION: Curve = Curve { first: Duration::from_secs(5), longest: Duration::from_mins(5) };
/// A later view may lag behind one that shows a write by this.
const SETTLES: TimeDelta = TimeDelta::seconds(5);
/// The same write this long after the last one is no repetition.
const FORGOTTEN: TimeDelta = TimeDelta::minutes(10);
/// A write that AWS has accepted this often without effect is reported: by then reads have shown it if they only lag.
const REPORTED_FROM: u32 = 4;

/// The last write about each subject that the group does not show yet.
#[derive(Debug, Clone, Default)]
pub struct RecentWrites {
    writes: BTreeMap<Subject, RecentWrite>,
    /// The user's request to retry that was observed last.
    retry: Option<String>,
}

/// What a write is about: a later write about the same replaces it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    kind: CallKind,
    /// The instances, if a plan has several writes of this kind, each about some of the instances.
    instances: BTreeSet<String>,
}

impl Subject {
    fn of(write: &Write) -> Self {
        let instances = match write {
            Write::SetInstanceProtection { instances, .. } => instances.clone(),
            _ => BTreeSet::new(),
        };
        Self { kind: CallKind::of(write), instances }
    }
}

/// A write that AWS has accepted.
#[derive(Debug, Clone)]
struct RecentWrite {
    write: Write,
    /// When AWS answered it last.
    at: DateTime<Utc>,
    /// How often AWS has accepted it.
    times: u32,
}

impl RecentWrites {
    /// How long the same write must wait.
    #[must_use]
    pub fn wait(&self, write: &Write, now: DateTime<Utc>) -> Option<TimeDelta> {
        let recent = self.writes.get(&Subject::of(write)).filter(|recent| recent.write == *write)?;
        let longest = REPETITION.time_delta(u32::MAX);
        remaining(recent.at + REPETITION.time_delta(recent.times), now, longest)
    }

    /// What to report about the calls of a topic that have no effect.
    #[must_use]
    pub fn without_effect(&self, topic: CallTopic) -> Option<String> {
        let mut all = self.writes.iter().filter(|(subject, _)| subject.kind.topic() == topic);
        let (_, recent) = all.find(|(_, recent)| recent.times >= REPORTED_FROM)?;
        Some(recent.message())
    }

    /// What an event reports about a write that AWS has just accepted: `None` unless this is the time to report it.
    #[must_use]
    pub fn newly_without_effect(&self, write: &Write) -> Option<String> {
        let recent = self.writes.get(&Subject::of(write))?;
        (recent.write == *write && recent.times == REPORTED_FROM).then(|| recent.message())
    }

    /// Records that AWS made a change. Terminations and lifecycle actions have other intervals, and launch templates
    /// are read without a lag.
    pub(super) fn add(&mut self, write: &Write, now: DateTime<Utc>) {
        match write {
            Write::CreateGroup(_) => self.writes.clear(),
            Write::TerminateInstances { .. }
            | Write::CompleteLifecycleAction { .. }
            | Write::RecordLifecycleActionHeartbeat { .. } => {}
            write if write.group().is_some() => {
                let subject = Subject::of(write);
                let is_recent = |recent: &&RecentWrite| recent.write == *write && now - recent.at < FORGOTTEN;
                let before = self.writes.get(&subject).filter(is_recent);
                let times = before.map_or(0, |recent| recent.times).saturating_add(1);
                self.writes.insert(subject, RecentWrite { write: write.clone(), at: now, times });
            }
            _ => {}
        }
    }

    /// The user's request to retry that was recorded last.
    #[must_use]
    pub fn retry(&self) -> Option<&String> {
        self.retry.as_ref()
    }

    /// Records the user's request to retry: a new one ends the intervals, except the first, in which reads may lag.
    pub(super) fn observe_retry(&mut self, retry: Option<&String>) {
        if self.retry.as_ref() != retry {
            self.retry = retry.cloned();
            for recent in self.writes.values_mut() {
                recent.times = recent.times.min(1);
            }
        }
    }

    /// Forgets the writes that a complete plan does not repeat: the group shows them. A later view may lag behind, so
    /// that none is forgotten at once.
    pub(super) fn keep<'a>(&mut self, planned: impl Iterator<Item = &'a Write>, now: DateTime<Utc>) {
        let planned: BTreeMap<Subject, &Write> = planned.map(|write| (Subject::of(write), write)).collect();
        self.writes.retain(|subject, recent| {
            if planned.get(subject).is_some_and(|write| **write == recent.write) {
                return true;
            }
            // If another actor reverts it, the next write is no repetition.
            recent.times = 0;
            recent.at + SETTLES > now
        });
    }
}

impl RecentWrite {
    fn message(&self) -> String {
        let Self { write, times, .. } = self;
        format!(
            "AWS accepted {} {times} times, but the group does not show the change. {}. The controller repeats the call \
             at growing intervals of up to {} minutes.",
            write.api(),
            CallKind::of(write).waits(),
            REPETITION.longest.as_secs() / 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspend(process: &str) -> Write {
        let processes = BTreeSet::from([process.to_owned()]);
        Write::SuspendProcesses { group: "g".to_owned(), processes }
    }

    #[test]
    fn a_change_without_effect_is_repeated_at_growing_intervals_and_reported() {
        let (mut recent, write) = (RecentWrites::default(), suspend("AZRebalance"));
        let mut now = DateTime::UNIX_EPOCH;
        let mut intervals = Vec::new();
        for times in 1..=8 {
            recent.add(&write, now);
            let is_reported = recent.without_effect(CallTopic::Group).is_some();
            assert_eq!(is_reported, times >= REPORTED_FROM, "after {times} times");
            assert_eq!(recent.newly_without_effect(&write).is_some(), times == REPORTED_FROM, "one event");
            recent.keep([&write].into_iter(), now);
            let wait = recent.wait(&write, now).unwrap();
            intervals.push(wait.num_seconds());
            now += wait;
            assert_eq!(recent.wait(&write, now), None);
        }
        assert_eq!(intervals, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(recent.wait(&suspend("Launch"), now), None, "another write is due at once");
    }

    fn protect(numbers: std::ops::Range<u32>) -> Write {
        let instances = numbers.map(|number| format!("i-{number}")).collect();
        Write::SetInstanceProtection { group: "g".to_owned(), instances, protected: true }
    }

    #[test]
    fn several_changes_of_one_kind_are_each_repeated_at_growing_intervals() {
        let (mut recent, both) = (RecentWrites::default(), [protect(0..50), protect(50..60)]);
        let mut now = DateTime::UNIX_EPOCH;
        for seconds in [5, 10, 20, 40] {
            for write in &both {
                assert_eq!(recent.wait(write, now), None);
                recent.add(write, now);
            }
            recent.keep(both.iter(), now);
            for write in &both {
                assert_eq!(recent.wait(write, now), Some(TimeDelta::seconds(seconds)));
            }
            now += TimeDelta::seconds(seconds);
        }
        assert!(recent.without_effect(CallTopic::Group).is_some());
        recent.keep(both[..1].iter(), now);
        assert!(!recent.writes.contains_key(&Subject::of(&both[1])), "the group shows it");
    }

    #[test]
    fn a_request_to_retry_ends_the_interval() {
        let (mut recent, write) = (RecentWrites::default(), suspend("AZRebalance"));
        let begin = DateTime::UNIX_EPOCH;
        for _ in 0..8 {
            recent.add(&write, begin);
        }
        let wait = |recent: &RecentWrites| recent.wait(&write, begin).map(|wait| wait.num_seconds());
        recent.observe_retry(None);
        assert_eq!(wait(&recent), Some(300));
        recent.observe_retry(Some(&"1".to_owned()));
        assert_eq!(wait(&recent), Some(5), "reads may still lag behind the last one");
        recent.add(&write, begin + TimeDelta::seconds(5));
        recent.observe_retry(Some(&"1".to_owned()));
        assert_eq!(wait(&recent), Some(15), "the same request counts once");
    }

    #[test]
    fn a_change_that_is_shown_counts_from_the_beginning() {
        let (mut recent, write) = (RecentWrites::default(), suspend("AZRebalance"));
        let begin = DateTime::UNIX_EPOCH;
        for _ in 0..REPORTED_FROM {
            recent.add(&write, begin);
        }
        recent.keep(std::iter::empty(), begin + TimeDelta::seconds(1));
        assert_eq!(recent.without_effect(CallTopic::Group), None, "it has had its effect");
        assert!(recent.wait(&write, begin + TimeDelta::seconds(1)).is_some(), "a later view may lag behind");
        recent.keep(std::iter::empty(), begin + SETTLES);
        assert_eq!(recent.wait(&write, begin + SETTLES), None);
        assert_eq!(recent.without_effect(CallTopic::Group), None);
    }
}
