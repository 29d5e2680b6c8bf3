//! Desired capacity: never a decrement too many, and the group never picks.

use capasg_cloud::Write;
use capasg_fake_aws::Change;
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::seen::capacity::{ANSWERED, DECIDED, Sent};
use super::seen::limits::within_limits;
use super::state::{Inner, Invariants};
use crate::{Pool, cloud::MANAGER, world::RECONCILE_DEADLINE};

#[cfg(test)]
mod tests;

impl Invariants {
    /// No call of ours lowers desired capacity below the replicas that are asked for, and no instance shrinks its group
    /// twice.
    ///
    /// Exempt: a pool or MachinePool that is being deleted; a group that somebody else sizes (then we never lower at all,
    /// but by bounds that its owner changed), or whose size somebody changed since it was read. A call that lands late is
    /// judged by what was asked for, and had been read, when it was sent.
    pub(super) fn desired_never_falls_below_the_wish(
        &self,
        inner: &mut Inner,
        at: DateTime<Utc>,
        change: &Change,
    ) {
        let Some(group) = &change.group else { return };
        let bounds = self.simulator.bounds(&self.at(group), group).unwrap_or_default();
        let has_other_bounds = inner.capacity.bounds.insert(group.clone(), bounds) != Some(bounds);
        let (Some(before), Some(after)) = change.desired else { return };
        if change.by.as_deref() != Some(MANAGER) {
            if ["EnterStandby", "DetachInstances"].contains(&change.action.as_str()) {
                inner.budget.taken(&change.instances, at);
            }
            if ["ExitStandby", "AttachInstances"].contains(&change.action.as_str()) {
                inner.budget.returned(&change.instances, at);
            }
            if change.action == "SetInstanceProtection" {
                let named = change.instances.iter().map(|id| (id.clone(), at));
                inner.capacity.unprotected.extend(named);
            }
            // Other members of the same call are no change of its size.
            if before != after || has_other_bounds {
                inner.exempt.others_wrote(group, at);
            }
            return;
        }
        if after >= before {
            return;
        }
        let Some(pool) = Self::pool_of_group(inner, group) else { return };
        let Some(least) = self.least(inner, &pool, at) else { return };
        let least = inner.capacity.landed(change, after, at).map_or(least, |then| then.min(least));
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
        // A number that was read before somebody else changed it takes that back, when it lands.
        let decided = inner.capacity.lowered.map_or(at, |(decided, _)| decided);
        let others = inner.exempt.last_write_of_others(group);
        if others.is_some_and(|then| decided - then <= self.last_read()) {
            return;
        }
        if after < least {
            inner.breaks(
                at,
                "desired_never_falls_below_the_wish",
                format!("{} lowered desired {before} -> {after}, {least} are asked for", change.action),
            );
        }
    }

    /// Keeps what a group launches although it has as many as desired.
    pub(super) fn note_surplus(&self, inner: &mut Inner, id: &str) {
        for pool in &inner.pools {
            let counted = self.simulator.counted(&self.at(&pool.group), &pool.group);
            let desired = self.simulator.desired(&self.at(&pool.group), &pool.group);
            let count = i64::try_from(counted.len()).unwrap_or(i64::MAX);
            let is_more = desired.is_some_and(|desired| count > desired);
            if is_more && counted.iter().any(|own| own == id) {
                inner.capacity.surplus.entry(pool.group.clone()).or_default().insert(id.to_owned());
            }
        }
    }

    /// Keeps a call of ours that may lower desired capacity, with the wish that it is sent for.
    pub(super) fn note_sent(&self, inner: &mut Inner, at: DateTime<Utc>, write: &Write) {
        let lowers = match write {
            Write::SetDesiredCapacity { .. } => true,
            // AWS moves desired capacity into new bounds (`UpdateAutoScalingGroup`, `MaxSize`).
            Write::UpdateGroup { change, .. } => change.desired.is_some() || change.max.is_some(),
            Write::TerminateInstances { decrement, .. } => *decrement,
            _ => false,
        };
        let group = write.group().filter(|_| lowers);
        let Some(pool) = group.and_then(|group| Self::pool_of_group(inner, group)) else { return };
        // While somebody else says how many there are, nothing is asked for.
        let asked = self.least(inner, &pool, at).unwrap_or(0);
        let decided = inner.begun.at;
        let is_of_it = (at - decided).to_std().is_ok_and(|age| age <= RECONCILE_DEADLINE);
        let decided = if is_of_it { decided } else { at };
        inner.capacity.sent.push(Sent { at, decided, write: write.clone(), asked });
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

    /// How old the read may be that a decision about capacity is made on, until the group answers it.
    pub(super) fn last_read(&self) -> TimeDelta {
        TimeDelta::milliseconds(self.read_lag_millis.cast_signed()) + DECIDED
    }

    /// Instances are ended by name: no write of ours makes the group choose one itself.
    ///
    /// Exempt: somebody else changed its size or bounds within the last minutes, or the instance's protection; an instance
    /// that was launched while desired capacity was lowered, which no read had shown (the group answers later than it
    /// accepts the call, by a scaling activity): it has not even started, unless the call lands late. What an instance
    /// refresh launched beyond the replicas, which is AWS's own to end when it needs it no more. In the place of either the
    /// group may choose another that was never in service. And what a group launched although it had as many as desired,
    /// for an end that does not come: `InstanceMaintenancePolicy` and `CapacityRebalance` make it exceed desired capacity
    /// (User Guide, "Instance maintenance policies", "Capacity Rebalancing", "Rebalancing activities"). Of what is in service it
    /// may choose one for each of those, unless a call of ours lowered desired capacity within the last minutes.
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
        if inner.capacity.unprotected.get(id).is_some_and(|then| at - *then <= ANSWERED) {
            return;
        }
        let is_lowered = inner.capacity.lowered.is_some_and(|(_, landed)| at - landed <= ANSWERED);
        if inner.capacity.takes_surplus(group, id)
            || !is_lowered
                && inner.capacity.takes_any_surplus(group, &self.simulator.counted(&self.at(group), group))
        {
            return;
        }
        let refresh = self.simulator.refreshes(&self.at(group), group).pop();
        let refresh = refresh.filter(|one| one.ended.is_none_or(|ended| at - ended <= ANSWERED));
        let within = self.last_read();
        let seen = &mut inner.capacity;
        // What was launched from the read that our last call was decided on until it landed. The group answers when it next
        // counts its instances: while one of them ends, that may be after it has.
        let lowered = seen.lowered.filter(|(_, landed)| at - *landed <= ANSWERED);
        let is_unread = |then: &DateTime<Utc>| {
            lowered.is_some_and(|(decided, landed)| (decided - within..=landed).contains(then))
        };
        if seen.launched.get(id).is_some_and(is_unread) {
            return;
        }
        if !seen.served.contains(id) {
            seen.chosen.retain(|then| at - *then <= ANSWERED);
            seen.chosen.push(at);
            let is_new = |then: &&DateTime<Utc>| at - **then <= within || is_unread(then);
            let launched = seen.launched.values().filter(is_new).count();
            let is_answer = |then: &&DateTime<Utc>| {
                at - **then <= within || lowered.is_some_and(|(decided, _)| **then >= decided - within)
            };
            let chosen = seen.chosen.iter().filter(is_answer).count();
            let refreshed = refresh.is_some_and(|refresh| {
                let unserved = seen.launched.iter().filter(|(id, _)| !seen.served.contains(*id));
                let launched = unserved.filter(|(_, then)| refresh.asked <= **then).count();
                launched >= seen.chosen.iter().filter(|then| refresh.asked <= **then).count()
            });
            if launched >= chosen || refreshed {
                return;
            }
        }
        inner.breaks(at, "the_group_never_picks", format!("the group chose to end {id}"));
    }
}
