//! The table of machines: whose facts are wanted, what is known, and what a reply changes. No IO and no clock of
//! its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};

use crate::{
    Facts, FactsView, Group, Instance, InstanceFacts, InstanceState, LifecycleState, inventory::Cadence,
};

/// Facts that are not whole yet (no address, still pending, not known to EC2 yet) are asked for again after
/// this, then twice as late each time.
const FIRST_RETRY: Duration = Duration::from_secs(5);
const LONGEST_RETRY: Duration = Duration::from_mins(1);
/// A machine that starts has nothing whole to tell: it is asked for when its group has it in service, or after this.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// After this, an instance that EC2 did not know is asked for again if somebody wants it.
const ABSENT_AGAIN: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct FactsTable {
    entries: BTreeMap<Box<str>, Entry>,
}

#[derive(Debug)]
struct Entry {
    group: Arc<str>,
    known: FactsView,
    due: Option<DateTime<Utc>>,
    tries: u32,
    standing: Standing,
    /// Listed by its group as `Pending`.
    starts: bool,
    /// Somebody waits for an answer, also one that says the same again.
    asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Listed by its group, live or in standby.
    Stays,
    /// Listed by its group, on its way out.
    Leaves,
    /// In no group's view: kept until then.
    Stranger(DateTime<Utc>),
}

impl Standing {
    fn of(instance: &Instance) -> Self {
        if instance.lifecycle.is_terminating() { Self::Leaves } else { Self::Stays }
    }
}

impl FactsTable {
    pub(super) fn view(&self, id: &str) -> FactsView {
        self.entries.get(id).map_or(FactsView::Unknown, |entry| entry.known.clone())
    }

    /// The group that lists a machine.
    pub(super) fn group_of(&self, id: &str) -> Option<Arc<str>> {
        let entry = self.entries.get(id)?;
        (!matches!(entry.standing, Standing::Stranger(_))).then(|| entry.group.clone())
    }

    /// A group's members changed: new ones are wanted, the facts of those that left are dropped.
    pub(super) fn members(
        &mut self,
        group: &str,
        before: Option<&Group>,
        after: Option<&Group>,
        now: DateTime<Utc>,
        cadence: &Cadence,
    ) {
        let shared: Arc<str> = group.into();
        let members = |group: Option<&Group>| -> BTreeSet<String> {
            group.into_iter().flat_map(|group| &group.instances).map(|instance| instance.id.clone()).collect()
        };
        for gone in members(before).difference(&members(after)) {
            // It may have been attached to another group meanwhile.
            if self.entries.get(gone.as_str()).is_some_and(|entry| *entry.group == *group) {
                self.entries.remove(gone.as_str());
            }
        }
        for instance in after.into_iter().flat_map(|group| &group.instances) {
            let standing = Standing::of(instance);
            let starts = instance.lifecycle == LifecycleState::Pending;
            let soon = now + cadence.coalesce;
            let at = if starts { now + STARTS_WITHIN } else { soon };
            self.entries
                .entry(instance.id.as_str().into())
                .and_modify(|entry| {
                    if std::mem::take(&mut entry.starts) && !starts {
                        entry.due = entry.due.map(|due| due.min(soon));
                    }
                    entry.starts = starts;
                    let was_strange = matches!(entry.standing, Standing::Stranger(_));
                    entry.standing = standing;
                    // EC2 may not have known it yet when an event named it.
                    if was_strange && standing == Standing::Stays && !entry.is_whole() {
                        entry.due.get_or_insert(at);
                    }
                    entry.group = shared.clone();
                })
                .or_insert_with(|| Entry { starts, ..Entry::wanted(shared.clone(), standing, at) });
        }
    }

    /// Asks for what is not known of these machines; `again` asks also for what is.
    pub(super) fn want(
        &mut self,
        group: &str,
        ids: impl IntoIterator<Item = String>,
        again: bool,
        now: DateTime<Utc>,
        cadence: &Cadence,
    ) {
        let shared: Arc<str> = group.into();
        let (at, kept_until) = (now + cadence.coalesce, now + cadence.strangers);
        for id in ids {
            let entry = self
                .entries
                .entry(id.into_boxed_str())
                .or_insert_with(|| Entry::wanted(shared.clone(), Standing::Stranger(kept_until), at));
            if let Standing::Stranger(until) = &mut entry.standing {
                *until = kept_until;
            }
            let stale = match &entry.known {
                FactsView::Unknown | FactsView::Present(_) => false,
                FactsView::Absent { as_of } => now >= *as_of + ABSENT_AGAIN,
            };
            entry.asked |= again;
            if again || stale {
                entry.due = Some(entry.due.map_or(at, |due| due.min(at)));
            }
        }
    }

    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        self.entries.values().filter_map(|entry| entry.due).min()
    }

    pub(super) fn count_due(&self, now: DateTime<Utc>) -> usize {
        self.entries.values().filter(|entry| entry.due.is_some_and(|due| due <= now)).count()
    }

    /// Takes up to `most` machines that are due, for a request that starts now.
    pub(super) fn take_due(&mut self, now: DateTime<Utc>, most: usize) -> Vec<String> {
        let due = self.entries.iter_mut().filter(|(_, entry)| entry.due.is_some_and(|due| due <= now));
        due.take(most)
            .map(|(id, entry)| {
                entry.due = None;
                id.to_string()
            })
            .collect()
    }

    /// A request failed: its machines are due again.
    pub(super) fn put_back(&mut self, ids: &[String], at: DateTime<Utc>) {
        for id in ids {
            if let Some(entry) = self.entries.get_mut(id.as_str()) {
                entry.due.get_or_insert(at);
            }
        }
    }

    /// Takes in a whole reply to a request for `ids`; returns the groups for which something changed, or whose pool waits.
    pub(super) fn apply(
        &mut self,
        ids: &[String],
        as_of: DateTime<Utc>,
        listed: Vec<InstanceFacts>,
        now: DateTime<Utc>,
    ) -> BTreeSet<String> {
        let mut listed: BTreeMap<String, InstanceFacts> =
            listed.into_iter().map(|facts| (facts.id.clone(), facts)).collect();
        let mut changed = BTreeSet::new();
        for id in ids {
            let Some(entry) = self.entries.get_mut(id.as_str()) else { continue };
            let is_news = entry.take_in(listed.remove(id), as_of);
            if std::mem::take(&mut entry.asked) || is_news {
                changed.insert(entry.group.to_string());
            }
            if entry.standing == Standing::Stays && !entry.is_whole() {
                let retry = FIRST_RETRY.saturating_mul(1 << entry.tries.min(8)).min(LONGEST_RETRY);
                entry.tries += 1;
                entry.due.get_or_insert(now + retry);
            }
        }
        changed
    }

    pub(super) fn prune(&mut self, now: DateTime<Utc>) {
        self.entries.retain(|_, entry| match entry.standing {
            Standing::Stranger(until) => now < until,
            Standing::Stays | Standing::Leaves => true,
        });
    }

    /// Drops everything about a group's machines.
    pub(super) fn forget(&mut self, group: &str) {
        self.entries.retain(|_, entry| *entry.group != *group);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn wanted(group: Arc<str>, standing: Standing, at: DateTime<Utc>) -> Self {
        Self {
            group,
            known: FactsView::Unknown,
            due: Some(at),
            tries: 0,
            standing,
            starts: false,
            asked: false,
        }
    }

    /// Returns whether something changed.
    fn take_in(&mut self, found: Option<InstanceFacts>, as_of: DateTime<Utc>) -> bool {
        let Some(mut facts) = found else {
            let changed = !matches!(self.known, FactsView::Absent { .. });
            self.known = FactsView::Absent { as_of };
            return changed;
        };
        facts.tags.clear();
        let changed = self.known.facts() != Some(&facts);
        self.known = FactsView::Present(Arc::new(Facts { facts, as_of }));
        changed
    }

    /// Whether asking again would tell nothing new as long as the group lists it as staying.
    fn is_whole(&self) -> bool {
        self.known.facts().is_some_and(|facts| match facts.state {
            InstanceState::Pending => false,
            InstanceState::Running => facts.private_ip.is_some(),
            InstanceState::Gone | InstanceState::Stopped => true,
        })
    }
}
