//! Desired capacity: never a decrement too many, and the group never picks.

use std::collections::{BTreeMap, BTreeSet};

use capasg_simulator::Change;
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::{Inner, Invariants, within_limits};
use crate::{Pool, cloud::MANAGER};

/// What was seen of capacity.
#[derive(Default)]
pub(super) struct Seen {
    /// Instances by which a call of ours shrank their group.
    shrunk_by: BTreeSet<String>,
    /// When an instance was launched.
    pub(super) launched: BTreeMap<String, DateTime<Utc>>,
    /// Instances that were in service.
    pub(super) served: BTreeSet<String>,
    /// When a group chose an instance that had not served, in place of one that was just launched.
    chosen: Vec<DateTime<Utc>>,
}

/// From the read that a decision is made on to the group's answer to it.
const JUST_LAUNCHED: TimeDelta = TimeDelta::seconds(5);
/// Whoever else changed the size: the group answers it for this long.
const ANSWERED: TimeDelta = TimeDelta::minutes(5);

#[cfg(test)]
mod tests;

impl Invariants {
    /// No call of ours lowers desired capacity below the replicas that are asked for, and no instance shrinks its group
    /// twice.
    ///
    /// Exempt: a pool or MachinePool that is being deleted; a group that somebody else sizes (then we never lower at all,
    /// but by bounds that its owner changed).
    pub(super) fn desired_never_falls_below_the_wish(
        &self,
        inner: &mut Inner,
        at: DateTime<Utc>,
        change: &Change,
    ) {
        let Some(group) = &change.group else { return };
        let (Some(before), Some(after)) = change.desired else { return };
        if change.by.as_deref() != Some(MANAGER) {
            if before != after || change.action == "UpdateAutoScalingGroup" {
                inner.exempt.others_wrote(group, at);
            }
            return;
        }
        if after >= before {
            return;
        }
        let Some(pool) = inner.pools.iter().find(|pool| pool.group == *group).cloned() else { return };
        let Some(least) = self.least(inner, &pool, at) else { return };
        if change.action == "TerminateInstanceInAutoScalingGroup" {
            for id in &change.instances {
                if !inner.capacity.shrunk_by.insert(id.clone()) {
                    inner.breaks(
                        at,
                        "desired_never_falls_below_the_wish",
                        format!("{id} shrank its group twice"),
                    );
                }
            }
        }
        if after < least {
            inner.breaks(
                at,
                "desired_never_falls_below_the_wish",
                format!("{} lowered desired {before} -> {after}, {least} are asked for", change.action),
            );
        }
    }

    /// The smallest number of instances that the pool is to have; `None` if it is to go, or somebody else says it.
    pub(super) fn least(&self, inner: &Inner, pool: &Pool, now: DateTime<Utc>) -> Option<i64> {
        let api = self.api.state();
        let object = api.pools.get(&pool.key)?;
        let owner = api.machine_pools.get(&pool.machine_pool)?;
        let theirs = object.status.as_ref().and_then(|status| status.replicas_managed_by.as_ref());
        let gone =
            object.metadata.deletion_timestamp.is_some() || owner.metadata.deletion_timestamp.is_some();
        if gone || owner.replicas_managed_by().is_some() || theirs.is_some() {
            return None;
        }
        let least = inner.exempt.least(&object.name_any(), within_limits(&object, &owner), now);
        // Who decides knows what its caches showed.
        let known = inner.begun.object.as_ref().filter(|known| known.metadata.uid == object.metadata.uid);
        Some(known.and_then(|_| inner.begun.replicas()).map_or(least, |known| known.min(least)))
    }

    /// Instances are ended by name: no write of ours makes the group choose one itself.
    ///
    /// Exempt: somebody else changed its size, bounds or protection within the last minutes; an instance that was
    /// launched while desired capacity was lowered, which no read had shown: it has not even started. In its place the
    /// group may choose another that was never in service.
    pub(super) fn the_group_never_picks(
        &self,
        inner: &mut Inner,
        at: DateTime<Utc>,
        (group, id): (&str, &str),
        cause: &str,
    ) {
        if !cause.contains("shrinking") {
            return;
        }
        let Some(pool) = Self::pool_of_group(inner, group) else { return };
        let others = inner.exempt.last_write_of_others(&pool.group);
        if others.is_some_and(|then| at - then <= ANSWERED) || self.least(inner, &pool, at).is_none() {
            return;
        }
        let lag = TimeDelta::milliseconds(self.read_lag_millis.cast_signed());
        let seen = &mut inner.capacity;
        let is_new = |then: &DateTime<Utc>| at - *then <= lag + JUST_LAUNCHED;
        if !seen.served.contains(id) {
            seen.chosen.retain(|then| is_new(then));
            seen.chosen.push(at);
            if seen.launched.values().filter(|then| is_new(then)).count() >= seen.chosen.len() {
                return;
            }
        }
        inner.breaks(at, "the_group_never_picks", format!("the group chose to end {id}"));
    }
}
