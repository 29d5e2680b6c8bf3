//! What people and mishaps did that excuses what would otherwise break a rule.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::limits::GRACE;

/// What excuses.
#[derive(Debug, Default)]
pub(crate) struct Exemptions {
    /// ASGMachines that a person deleted directly: nobody drains.
    by_hand: BTreeSet<String>,
    /// Machines whose drain a person excluded.
    undrained: BTreeSet<String>,
    /// Instances that AWS will retire.
    retired: BTreeSet<String>,
    /// Instances that EC2 recommends to replace.
    recommended: BTreeSet<String>,
    /// Spot instances that EC2 takes back.
    interrupted: BTreeSet<String>,
    /// When somebody else wrote desired capacity or bounds, by group; the last time.
    others: BTreeMap<String, DateTime<Utc>>,
    /// Wishes for replicas by pool, with the moment until which each was the newest.
    wishes: BTreeMap<String, Vec<(DateTime<Utc>, i32)>>,
    /// The same as the caches showed them: whoever reads a cache cannot know of a younger one.
    shown: BTreeMap<String, Vec<(DateTime<Utc>, i32)>>,
}

impl Exemptions {
    pub(crate) fn deleted_by_hand(&mut self, asg_machine: &str) {
        self.by_hand.insert(asg_machine.to_owned());
    }

    pub(crate) fn drain_excluded(&mut self, machine: &str) {
        self.undrained.insert(machine.to_owned());
    }

    pub(crate) fn retired(&mut self, instance: &str) {
        self.retired.insert(instance.to_owned());
    }

    pub(crate) fn recommended(&mut self, instance: &str) {
        self.recommended.insert(instance.to_owned());
    }

    pub(crate) fn interrupted(&mut self, instance: &str) {
        self.interrupted.insert(instance.to_owned());
    }

    pub(crate) fn others_wrote(&mut self, group: &str, now: DateTime<Utc>) {
        self.others.insert(group.to_owned(), now);
    }

    pub(crate) fn wished(&mut self, pool: &str, replicas: i32, now: DateTime<Utc>) {
        note(self.wishes.entry(pool.to_owned()).or_default(), replicas, now);
    }

    /// What the caches show of a wish: with a watch that stalls it is older than any lag.
    pub(crate) fn shown(&mut self, pool: &str, replicas: i32, now: DateTime<Utc>) {
        note(self.shown.entry(pool.to_owned()).or_default(), replicas, now);
    }

    pub(crate) fn is_deleted_by_hand(&self, name: &str) -> bool {
        self.by_hand.contains(name)
    }

    pub(crate) fn is_drain_excluded(&self, name: &str) -> bool {
        self.undrained.contains(name)
    }

    /// Whether AWS announced something of the instance of a Machine; a recommendation counts for a pool that `follows` it.
    pub(crate) fn is_announced(&self, machine: &str, follows: bool) -> bool {
        let recommended = self.recommended.iter().filter(|_| follows);
        self.retired.iter().chain(recommended).any(|id| machine.ends_with(id))
    }

    pub(crate) fn is_interrupted(&self, instance: &str) -> bool {
        self.interrupted.contains(instance)
    }

    pub(crate) fn last_write_of_others(&self, group: &str) -> Option<DateTime<Utc>> {
        self.others.get(group).copied()
    }

    /// The smallest number of replicas that may still be acted on.
    pub(crate) fn least(&self, pool: &str, replicas: i32, now: DateTime<Utc>) -> i64 {
        let known = [self.wishes.get(pool), self.shown.get(pool)];
        let recent = known.into_iter().flatten().flatten().filter(|(at, _)| now - *at <= GRACE);
        recent.map(|(_, wish)| *wish).chain([replicas]).min().map_or(0, i64::from)
    }
}

/// Keeps a wish with the moment until which it was the newest.
fn note(known: &mut Vec<(DateTime<Utc>, i32)>, replicas: i32, now: DateTime<Utc>) {
    match known.last_mut() {
        Some((until, last)) if *last == replicas => *until = now,
        _ => known.push((now, replicas)),
    }
}
