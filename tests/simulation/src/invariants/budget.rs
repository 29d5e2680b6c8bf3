//! Our own disruptions never exceed the budget: scale-in takes no more than too many, rollouts keep the available.

use std::collections::BTreeSet;

use capasg_api::{
    capi::Machine,
    names::{labels, machine_name, must_format_value},
    time::from_kubernetes,
};
use capasg_controllers::ObjectKey;
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use super::seen::limits::{UNSEEN, within_limits};
use super::state::{Inner, Invariants};
use crate::Pool;

fn is_available(machine: &Machine) -> bool {
    !machine.is_deleting() && machine.has_node() && machine.is_ready()
}

impl Invariants {
    /// Machines that were available when a decision may have been made.
    pub(super) fn note_available(&self, inner: &mut Inner, now: DateTime<Utc>) {
        for (key, machine) in self.api.state().machines.iter() {
            if machine.has_node() && !inner.drained.joined.contains(&key.name) {
                inner.drained.joined.insert(key.name.clone());
            }
            if is_available(machine) {
                inner.budget.available.insert(key.name.clone(), now);
            }
        }
    }

    pub(super) fn machines_of(&self, pool: &Pool) -> Vec<(String, bool, std::sync::Arc<Machine>)> {
        let label = must_format_value(&pool.machine_pool.name);
        let all = self.api.state().machines.all().into_iter();
        all.filter(|(_, machine)| machine.labels().get(labels::POOL_NAME) == Some(&label))
            .map(|(key, machine)| (key.name, is_available(&machine), machine))
            .collect()
    }

    /// Scale-in deletes Machines only as long as more instances stay than are asked for.
    ///
    /// Exempt: instances that began to end within the last minute and a half, which no poll may have shown, count as
    /// staying; so do those that somebody took out of the group, or whose Machine somebody deleted, since the read that
    /// comes before every choice.
    pub(super) fn scale_in_takes_no_more_than_too_many(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
    ) {
        let Some(pool) = Self::pool_of_machine(inner, machine) else { return };
        let Some(least) = self.least(inner, &pool, now) else { return };
        let machines = self.machines_of(&pool);
        let deleted_unseen = |name: &str, machine: &Machine| {
            let since = machine.metadata.deletion_timestamp.as_ref().map(from_kubernetes);
            !inner.budget.has_deleted(name) && since.is_some_and(|since| now - since <= self.last_read())
        };
        let leaves = |id: &str| match machines.iter().find(|(name, ..)| name.ends_with(id)) {
            Some((name, _, machine)) if machine.is_deleting() => !deleted_unseen(name, machine),
            _ => self.asg_machine_goes(&pool, &machine_name(&pool.key.name, id)),
        };
        let counted = self.simulator.counted(&self.at(&pool.group), &pool.group);
        let staying = counted.iter().filter(|id| !leaves(id)).count();
        let lost = inner.budget.lost.iter().filter(|(_, at)| now - **at <= UNSEEN);
        let taken = inner.budget.taken.iter().filter(|(_, at)| now - **at <= self.last_read());
        let unseen: BTreeSet<&String> = lost.chain(taken).map(|(id, _)| id).collect();
        let unseen = unseen.into_iter().filter(|id| !leaves(id) && !counted.contains(*id)).count();
        let have = i64::try_from(staying + unseen).unwrap_or(i64::MAX);
        if have < least {
            inner.breaks(
                now,
                "scale_in_takes_no_more_than_too_many",
                format!("{} was deleted, {have} stay and {least} are asked for", machine.name),
            );
        }
    }

    /// Whether an ASGMachine is being deleted.
    pub(super) fn asg_machine_goes(&self, pool: &Pool, name: &str) -> bool {
        let found = self.api.state().asg_machines.get(&pool.key.sibling(name));
        found.is_some_and(|machine| machine.metadata.deletion_timestamp.is_some())
    }

    /// A rollout deletes the Machine of an instance that works only as long as `replicas - maxUnavailable` stay
    /// available.
    ///
    /// Exempt: what was available within the last minute and a half and went by other hands counts as available; an
    /// instance that AWS ends already, or that its group reports as unhealthy, which AWS ends next (Auto Scaling User
    /// Guide, "Health checks for instances in an Auto Scaling group"); an instance whose Node a user deleted or whose kubelet
    /// is down, if the caches showed that; one that was not ready when the reconcile listed Machines.
    pub(super) fn rollouts_keep_the_budget(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
    ) {
        let Some(pool) = Self::pool_of_machine(inner, machine) else { return };
        let Some(least) = self.least(inner, &pool, now) else { return };
        let recently = |name: &str| inner.budget.available.get(name).is_some_and(|at| now - *at <= UNSEEN);
        let is_lost = inner.budget.lost.keys().any(|id| machine_name(&pool.key.name, id) == machine.name);
        let instances = self.dump().into_iter().flat_map(|dump| dump.instances);
        let mut unhealthy = instances.filter(|one| one.health.as_deref() == Some("Unhealthy"));
        let is_unhealthy = unhealthy.any(|one| machine_name(&pool.key.name, &one.id) == machine.name);
        let machines = self.machines_of(&pool);
        let works =
            machines.iter().any(|(name, _, of)| *name == machine.name && of.has_node() && of.is_ready());
        let is_known_broken = match self.api.state().listed.get(&pool.key) {
            Some(listed) => !listed.contains(&machine.name),
            None => !works && !inner.begun.ready.contains(&machine.name),
        };
        // One that did not work, or that AWS ends, takes nothing away.
        if !recently(&machine.name) || is_lost || is_unhealthy || is_known_broken {
            return;
        }
        let available = machines
            .iter()
            .filter(|(name, available, machine)| {
                *available
                    || !inner.budget.deleted.contains_key(name) && !machine.is_deleting() && recently(name)
            })
            .count();
        let taken_by_others = inner
            .budget
            .available
            .iter()
            .filter(|(name, at)| {
                now - **at <= UNSEEN
                    && **name != machine.name
                    && Self::pool_of_machine(inner, &ObjectKey::new("", name.as_str()))
                        .is_some_and(|own| own == pool)
                    && !inner.budget.deleted.contains_key(*name)
                    && machines.iter().all(|(there, _, machine)| there != *name || machine.is_deleting())
            })
            .count();
        // A budget is what the reconcile could know.
        let missing = inner.begun.both().map_or(0, |(object, owner)| {
            i64::from(object.spec.rollout(within_limits(object, owner)).max_unavailable)
        });
        let have = i64::try_from(available + taken_by_others).unwrap_or(i64::MAX);
        if have < least - missing {
            inner.breaks(
                now,
                "rollouts_keep_the_budget",
                format!(
                    "{} was deleted: {have} stay available of {least}, {missing} may be missing",
                    machine.name
                ),
            );
        }
    }
}
