//! A pool that reports that it runs has ready Nodes.

use std::{collections::BTreeSet, sync::Arc};

use capasg_api::{
    ASGMachinePoolStatus,
    capi::Machine,
    conditions::{self, NODES_READY},
    names::{labels, must_format_value},
    pool::Phase,
    time::from_kubernetes,
};
use capasg_controllers::kubernetes::KubeWrite;
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::state::{Inner, Invariants};
use crate::{Pool, api_server::is_ready};

/// What the caches show is reported within this time, whatever fails: a reconcile whose calls hang is given up after two
/// minutes, and calls hang four times at most.
const REPORTED: TimeDelta = TimeDelta::minutes(15);

impl Invariants {
    /// No reconcile reports `Running` while fewer Machines are ready than it reports as desired: in the caches when it
    /// began or by now, or on the API server at any time since.
    ///
    /// Exempt: a reconcile that could not read the group, so that `NodesReady` stays as it was.
    pub(super) fn running_is_reported_with_ready_nodes(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        write: &KubeWrite,
    ) {
        let KubeWrite::PatchPoolStatus { pool, status, .. } = write else { return };
        let Some(own) = inner.pools.iter().find(|own| own.key == *pool).cloned() else { return };
        let Some(object) = inner.begun.object.clone() else { return };
        let found = |status: Option<&ASGMachinePoolStatus>| -> Option<Condition> {
            conditions::get(&status?.conditions, NODES_READY).cloned()
        };
        let is_kept = found(Some(status)) == found(object.status.as_ref());
        if status.phase != Some(Phase::Running) || is_kept {
            return;
        }
        let api = self.api.state();
        let cached = api.machines.all_cached().filter(|machine| is_ready(machine));
        let live = api.machines.iter().map(|(_, machine)| machine).filter(|machine| is_ready(machine));
        let mut ready: BTreeSet<String> = cached.chain(live).map(|machine| machine.name_any()).collect();
        // One that the same reconcile read from the API server, and then deleted.
        let deleted = inner.budget.deleted.iter().filter(|(_, at)| **at >= inner.begun.at);
        let was_ready = |name: &&String| {
            let machine = api.machines.get(&pool.sibling(name.as_str()));
            machine.is_none_or(|machine| machine.has_node() && machine.is_ready())
        };
        ready.extend(deleted.map(|(name, _)| name).filter(was_ready).cloned());
        // One that another actor deletes since it was read.
        let since = inner.begun.at.timestamp();
        let goes = |machine: &Machine| {
            let at = machine.metadata.deletion_timestamp.as_ref().map(from_kubernetes);
            at.is_some_and(|at| at.timestamp() >= since) && machine.has_node() && machine.is_ready()
        };
        let going = api.machines.iter().map(|(_, machine)| machine).filter(|machine| goes(machine));
        ready.extend(going.map(|machine| machine.name_any()));
        drop(api);
        ready.extend(inner.begun.ready.iter().cloned());
        let since = inner.budget.available.iter().filter(|(_, at)| **at >= inner.begun.at);
        ready.extend(since.map(|(name, _)| name.clone()));
        ready.retain(|name| name.starts_with(&format!("{}-i-", own.key.name)));
        let desired = desired(status, object.spec.max_size);
        if ready.len() < desired {
            let what = format!("{pool} is Running with {} of {desired} ready", ready.len());
            inner.breaks(now, "running_is_reported_with_ready_nodes", what);
        }
    }

    /// No pool stays `Running` while fewer of its Machines are ready than it reports as desired: in the caches or on the API
    /// server, which the controller reads before it deletes Machines.
    pub(super) fn what_runs_has_ready_nodes(&self, inner: &mut Inner, now: DateTime<Utc>) {
        for pool in inner.pools.clone() {
            let Some((ready, desired)) = self.short_of_nodes(&pool) else {
                inner.short_of_nodes.remove(&pool.key.name);
                continue;
            };
            let since = *inner.short_of_nodes.entry(pool.key.name.clone()).or_insert(now);
            if now - since > REPORTED {
                inner.short_of_nodes.remove(&pool.key.name);
                let what = format!("{} is Running with {ready} of {desired} ready", pool.key.name);
                inner.breaks(now, "what_runs_has_ready_nodes", what);
            }
        }
    }

    /// The ready and the desired replicas of a pool that says `Running` although they differ.
    fn short_of_nodes(&self, pool: &Pool) -> Option<(usize, usize)> {
        let api = self.api.state();
        let own = api.pools.get(&pool.key)?;
        let status = own.status.as_ref().filter(|status| status.phase == Some(Phase::Running))?;
        let label = must_format_value(&pool.machine_pool.name);
        let counts = |machine: &&Arc<Machine>| {
            machine.labels().get(labels::POOL_NAME) == Some(&label) && is_ready(machine)
        };
        let live = api.machines.iter().map(|(_, machine)| machine);
        let ready = api.machines.all_cached().chain(live).filter(counts);
        let ready = ready.map(|machine| machine.name_any()).collect::<BTreeSet<_>>().len();
        let desired = desired(status, own.spec.max_size);
        (ready < desired).then_some((ready, desired))
    }
}

/// The replicas as a status reports them: desired capacity while another actor manages it, until MachinePool and group
/// agree.
fn desired(status: &ASGMachinePoolStatus, most: Option<i32>) -> usize {
    let managed = status.replicas_managed_by.as_ref().and(status.group.as_ref());
    let desired = managed.map_or(status.desired_replicas, |group| group.desired_capacity);
    usize::try_from(desired.min(most.unwrap_or(i32::MAX))).unwrap_or(0)
}
