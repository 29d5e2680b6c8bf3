//! The changes of a group that AWS has accepted and that a read does not show yet. A change that AWS accepts again and
//! again without effect is repeated at growing intervals.

use std::{collections::BTreeMap, time::Duration};

use capasg_cloud::Write;
use chrono::{DateTime, TimeDelta, Utc};

use crate::backoff::Curve;
use crate::machine_pool::model::call_kind::{CallKind, CallTopic};

/// A write is not repeated for this long after its answer.
const REPETITION: Curve = Curve { first: Duration::from_secs(5), longest: Duration::from_mins(5) };
/// A later view may lag behind one that shows a write by this.
const SETTLES: TimeDelta = TimeDelta::seconds(5);
/// The same write this long after the last one is no repetition.
const FORGOTTEN: TimeDelta = TimeDelta::minutes(10);
/// A write that AWS has accepted this often without effect is reported: by then reads have shown it if they only lag.
const REPORTED_FROM: u32 = 4;

/// The last write of each kind that the group does not show yet.
#[derive(Debug, Clone, Default)]
pub struct RecentWrites(BTreeMap<CallKind, RecentWrite>);

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
        let recent = self.0.get(&CallKind::of(write)).filter(|recent| recent.write == *write)?;
        Some(recent.at + REPETITION.time_delta(recent.times) - now).filter(|wait| *wait > TimeDelta::zero())
    }

    /// What to report about the calls of a topic that have no effect.
    #[must_use]
    pub fn without_effect(&self, topic: CallTopic) -> Option<String> {
        let (_, recent) =
            self.0.iter().find(|(kind, recent)| kind.topic() == topic && recent.times >= REPORTED_FROM)?;
        Some(recent.message())
    }

    /// What an event reports about a write that AWS has just accepted: `None` unless this is the time to report it.
    #[must_use]
    pub fn newly_without_effect(&self, write: &Write) -> Option<String> {
        let recent = self.0.get(&CallKind::of(write))?;
        (recent.write == *write && recent.times == REPORTED_FROM).then(|| recent.message())
    }

    /// Records that AWS made a change. Terminations and lifecycle actions have other intervals, and launch templates
    /// are read without a lag.
    pub(super) fn add(&mut self, write: &Write, now: DateTime<Utc>) {
        match write {
            Write::CreateGroup(_) => self.0.clear(),
            Write::TerminateInstances { .. }
            | Write::CompleteLifecycleAction { .. }
            | Write::RecordLifecycleActionHeartbeat { .. } => {}
            write if write.group().is_some() => {
                let kind = CallKind::of(write);
                let is_recent = |recent: &&RecentWrite| recent.write == *write && now - recent.at < FORGOTTEN;
                let before = self.0.get(&kind).filter(is_recent);
                let times = before.map_or(0, |recent| recent.times).saturating_add(1);
                self.0.insert(kind, RecentWrite { write: write.clone(), at: now, times });
            }
            _ => {}
        }
    }

    /// Forgets the writes that a complete plan does not repeat: the group shows them. A later view may lag behind, so
    /// that none is forgotten at once.
    pub(super) fn keep<'a>(&mut self, planned: impl Iterator<Item = &'a Write>, now: DateTime<Utc>) {
        let planned: BTreeMap<CallKind, &Write> = planned.map(|write| (CallKind::of(write), write)).collect();
        self.0.retain(|kind, recent| {
            if planned.get(kind).is_some_and(|write| **write == recent.write) {
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
    use std::collections::BTreeSet;

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
