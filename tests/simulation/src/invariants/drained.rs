//! No instance that we end, or that our hook holds, ends with its Machine undrained.

use capasg_api::{
    ASGMachinePool,
    names::{TERMINATE_HOOK, machine_name},
    pool::{DeletionPolicy, OnCloudTermination, OnPoolDeletion},
    time::from_kubernetes,
};
use capasg_fake_aws::{Change, End};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::state::{Inner, Invariants};
use crate::{Drain, Pool, cloud::MANAGER};

const RULE: &str = "nothing_ends_undrained";

/// For how long after the deletion of a hook what it held ends.
const LET_GO: TimeDelta = TimeDelta::seconds(10);

/// A shorter drain limit leaves core this long to make a Machine.
const CORE_STARTS: TimeDelta = TimeDelta::minutes(2);

/// Core had at least this long to make a Machine for an ASGMachine.
const CORE_MAKES: TimeDelta = TimeDelta::minutes(1);

/// The limit counts from when an instance is seen to terminate; the hook holds it this much later at most.
const HELD_LATER: TimeDelta = TimeDelta::seconds(1);

/// What answers a hook, and shows that it holds something.
const ANSWERS: [&str; 2] = ["RecordLifecycleActionHeartbeat", "DescribeAutoScalingGroups"];

impl Invariants {
    /// Notes whose ends are ours.
    pub(super) fn drained_notes(&self, inner: &mut Inner, change: &Change, at: DateTime<Utc>) {
        let ours = change.by.as_deref() == Some(MANAGER);
        let group = change.group.clone().unwrap_or_default();
        let has_hook = || self.simulator.has_hook(&self.at(&group), &group, TERMINATE_HOOK);
        match (change.action.as_str(), ours) {
            ("TerminateInstanceInAutoScalingGroup", true) => {
                inner.drained.asked.extend(change.instances.clone());
            }
            ("DeleteAutoScalingGroup", true) => drop(inner.drained.forced.insert(group)),
            // Others have hooks of their own.
            ("DeleteLifecycleHook", false) if !has_hook() => drop(inner.drained.unhooked.insert(group, at)),
            ("PutLifecycleHook", _) if ours || has_hook() => drop(inner.drained.unhooked.remove(&group)),
            _ => {}
        }
    }

    /// An instance that we end, or that our hook holds, ends only once its Machine is drained.
    ///
    /// Exempt, as issue and design say: already dead; drain limit passed; never joined; the drain skipped by a person's
    /// annotation; ASGMachine deleted by hand; the Cluster is deleted; a pause for a third of the hook's time-out; a
    /// spot machine past its notice (it is gone without its group); a pool that is not to be drained at its deletion;
    /// an instance that the deletion of an orphaned pool has released (API reference, `deletionPolicy`) and that
    /// neither we nor a refresh of ours ends; no Machine, and no Node that joined, or core makes no Machine for it
    /// because the pool or its MachinePool is deleted, or made none within the drain limit (at least two minutes), for
    /// which our hook held it, although its ASGMachine existed for a minute or a pause kept us from creating that. What
    /// our hook held and is let go at the moment at which somebody else deletes the hook (`DeleteLifecycleHook`:
    /// "outstanding lifecycle actions are completed first"), what ends while it is gone and was not read again, and what
    /// ends because the spec no longer wants ends held. The drain limit is measured by the clock of the host, from moments that
    /// the API server wrote by its own. What AWS ends at the time-out of the hook (`HeartbeatTimeout`)
    /// while it fails our heartbeats, or the reads that would show the instance, or before they are repeated.
    pub(super) fn nothing_ends_undrained(&self, inner: &mut Inner, at: DateTime<Utc>, end: &End) {
        // Its group had no part in it: a person, EC2 or the spot market took it.
        if end.cause.is_none() {
            return;
        }
        let Some(pool) = end.group.as_ref().and_then(|group| Self::pool_of_group(inner, group)) else {
            return;
        };
        let held = end.held.as_ref().filter(|(_, hooks)| hooks.iter().any(|hook| hook == TERMINATE_HOOK));
        let ours = inner.drained.asked.contains(&end.id) || inner.drained.forced.contains(&pool.group);
        let is_held = held.is_some() || !Self::is_unhooked(inner, &pool, at);
        if !ours && (!is_held || self.is_let_go(inner, &pool, at)) {
            return;
        }
        let name = machine_name(&pool.key.name, &end.id);
        if inner.exempt.is_deleted_by_hand(&name) || inner.exempt.is_drain_excluded(&name) {
            return;
        }
        if let Some(why) = self.undrained(inner, at, end, &pool, &name) {
            let how = match (ours, held) {
                (true, _) => "we ended it",
                (false, Some(_)) => "our hook held it",
                (false, None) => "our hook was missing",
            };
            inner.breaks(at, RULE, format!("{} ended undrained ({how}): {why}", end.id));
        }
    }

    /// Whether nothing is to be held: somebody else took our hook away, or the spec says that ends are not held, or said
    /// so when the reconcile began.
    fn is_let_go(&self, inner: &Inner, pool: &Pool, at: DateTime<Utc>) -> bool {
        let ignores =
            |pool: &ASGMachinePool| pool.spec.drain(None).on_cloud_termination == OnCloudTermination::Ignore;
        inner.drained.unhooked.get(&pool.group).is_some_and(|then| at - *then <= LET_GO)
            || self.api.state().pools.get(&pool.key).is_some_and(|pool| ignores(&pool))
            || inner
                .begun
                .object
                .as_ref()
                .is_some_and(|known| known.name_any() == pool.key.name && ignores(known))
    }

    fn undrained(
        &self,
        inner: &Inner,
        at: DateTime<Utc>,
        end: &End,
        pool: &Pool,
        name: &str,
    ) -> Option<String> {
        let core = self.core.state();
        let last = core.drained.iter().rev().find(|(machine, _)| machine == name).map(|(_, drain)| drain);
        let api = self.api.state();
        let present = api.pools.get(&pool.key);
        let goes = present.as_ref().is_none_or(|own| own.metadata.deletion_timestamp.is_some());
        let object = present.or_else(|| inner.drained.last.get(&pool.key.name).cloned());
        let skips = Self::skips(object.as_deref(), goes);
        let cluster = api.clusters.get(&pool.cluster);
        // The Cluster is deleted.
        if cluster.is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some()) {
            return None;
        }
        let last_refresh = self.refreshes(&pool.group).pop();
        let refreshed = end.cause.as_ref().is_some_and(|cause| cause.contains("an instance refresh"))
            && last_refresh.is_some_and(|last| inner.refreshes.ours.contains_key(&last.id));
        let is_by_us = refreshed || inner.drained.asked.contains(&end.id);
        let is_released = api.asg_machines.get(&pool.key.sibling(name)).is_none();
        if Self::orphans(object.as_deref(), goes) && is_released && !is_by_us {
            return None;
        }
        match last {
            None => {}
            // Core drains no Machine whose infrastructure object is deleted.
            Some(Drain::Skipped(why)) if *why != "no Node has joined" && !skips => {
                return Some(format!("its drain was skipped: {why}"));
            }
            Some(_) => return None,
        }
        if skips {
            return None;
        }
        let timed_out = end.held.as_ref().filter(|_| end.timed_out).map(|(since, _)| *since);
        // Somebody's pause, or what AWS did not answer, kept us from answering the hook.
        let is_unanswered = timed_out.is_some_and(|since| {
            inner.failures.over(&ANSWERS).is_some_and(|over| over >= at)
                || inner.paused.kept_from_answering(since, at)
        });
        if is_unanswered {
            return None;
        }
        let owner = api.machine_pools.get(&pool.machine_pool);
        let limit = object.as_ref().map(|pool| {
            let core = owner.as_ref().and_then(|owner| owner.node_drain_timeout_seconds());
            TimeDelta::seconds(i64::from(pool.spec.drain(core).timeout_seconds))
        })?;
        // The host measures it by its own clock.
        let limit =
            inner.paused.shortest_limit(&pool.key.name, limit, at) - inner.begun.off.max(TimeDelta::zero());
        let Some(machine) = api.machines.get(&capasg_controllers::ObjectKey::new(&pool.key.namespace, name))
        else {
            // Core makes no Machines any more: its MachinePool controller returns early for a MachinePool that is deleted
            // (`reconcileDelete`), and for infrastructure that is (`reconcileInfrastructure`).
            let goes = goes || owner.is_none_or(|own| own.metadata.deletion_timestamp.is_some());
            let joined = inner.drained.joined.contains(name) || core.has_node(&end.id) && !goes;
            // The hook held it for the drain limit (API reference, `drain.timeoutSeconds`), in which core made no Machine for
            // its ASGMachine, or we might not make that.
            let own = api.asg_machines.get(&pool.key.sibling(name));
            let created = own.and_then(|own| own.metadata.creation_timestamp.as_ref().map(from_kubernetes));
            let was_due = created.is_some_and(|created| at - created >= CORE_MAKES);
            let waited = end.held.as_ref().is_some_and(|(since, _)| {
                at - *since >= limit.max(CORE_STARTS) - HELD_LATER
                    && (was_due || inner.paused.kept_from_answering(*since, at))
            });
            return (joined && !waited).then(|| "it has no Machine, and its Node has joined".to_owned());
        };
        if !machine.has_node() {
            return None;
        }
        let began = machine.metadata.deletion_timestamp.as_ref().map(from_kubernetes);
        if began.is_some_and(|began| at - began >= limit) {
            return None;
        }
        // The hook held it for the drain limit.
        if timed_out.is_some_and(|since| at - since >= limit) {
            return None;
        }
        Some(match began {
            None => format!("{} is not being deleted", machine.name_any()),
            Some(began) => format!("its drain goes on since {} s", (at - began).num_seconds()),
        })
    }

    /// Whether the pool goes and leaves its instances running.
    fn orphans(pool: Option<&ASGMachinePool>, goes: bool) -> bool {
        goes && pool.is_some_and(|pool| pool.spec.deletion_policy() == DeletionPolicy::Orphan)
    }

    /// Whether the pool goes and is not to be drained.
    fn skips(pool: Option<&ASGMachinePool>, goes: bool) -> bool {
        pool.is_none_or(|pool| goes && pool.spec.drain(None).on_pool_deletion == OnPoolDeletion::Terminate)
    }
}

#[cfg(test)]
mod tests;
