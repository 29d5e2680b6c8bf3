//! `spec.providerIDList` never loses a live instance; a pool is ready once its group exists, and stays so.

use std::collections::BTreeSet;

use capasg_api::{
    ASGMachinePool,
    pool::{ASGMachinePoolStatus, AdoptionPolicy, DeletionPolicy},
};
use capasg_cloud::Clock;
use chrono::{DateTime, Utc};
use kube::ResourceExt as _;

use super::state::{Inner, Invariants};

#[cfg(test)]
mod tests;

impl Invariants {
    /// An instance leaves the list only once its machine is gone (B1).
    ///
    /// Exempt: a pool that is deleted and leaves its instances to themselves; what somebody took out of the group before
    /// it had an ASGMachine, or out of the group of a pool that is deleted, which waits for no machine but the group's.
    pub(super) fn list_keeps_the_living(&self, inner: &mut Inner) {
        let now = self.clock.now();
        for pool in inner.pools.clone() {
            let name = pool.key.name.clone();
            let Some(object) = self.api.state().pools.get(&pool.key) else {
                inner.lists.ready.remove(&name);
                inner.lists.lists.remove(&name);
                continue;
            };
            let version = object.metadata.resource_version.clone().unwrap_or_default();
            if inner.lists.versions.insert(name.clone(), version.clone()) == Some(version) {
                continue;
            }
            self.ready_follows_the_group(inner, object.as_ref());
            Self::ready_is_never_taken_back(inner, now, object.as_ref());
            let list = &object.spec.provider_id_list;
            let before = inner.lists.lists.insert(name.clone(), list.clone()).unwrap_or_default();
            let goes = object.metadata.deletion_timestamp.is_some();
            let orphans = goes && object.spec.deletion_policy() == DeletionPolicy::Orphan;
            if orphans || before == *list {
                continue;
            }
            let kept: BTreeSet<&String> = list.iter().collect();
            for id in before.iter().filter(|id| !kept.contains(id)).filter_map(|id| id.rsplit('/').next()) {
                let is_theirs = inner.budget.has_taken(id) && (goes || !inner.lists.claimed.contains(id));
                if !is_theirs && self.simulator.runs(&self.at_instance(id), id) {
                    inner.breaks(
                        now,
                        "list_keeps_the_living",
                        format!("the list of {name} lost {id}, which runs"),
                    );
                }
            }
        }
    }

    /// A pool is reported as ready for the first time once its group exists, which launches from a version of a launch
    /// template (B8). Another actor may have deleted that launch template meanwhile, or before the pool adopted the group.
    fn ready_follows_the_group(&self, inner: &mut Inner, pool: &ASGMachinePool) {
        let name = pool.name_any();
        let is_ready = |status: &ASGMachinePoolStatus| status.ready || status.initialization.provisioned;
        if !pool.status.as_ref().is_some_and(is_ready) || inner.lists.ready.contains(&name) {
            return;
        }
        let arn = pool.spec.provider_id.as_deref().unwrap_or_default();
        let group = arn.rsplit('/').next().unwrap_or_default();
        let scope = self.at(group);
        let launched =
            inner.preview.pinned(group).is_some() && self.simulator.is_pinned_by_number(&scope, group);
        let adopted = pool.spec.adoption_policy == Some(AdoptionPolicy::Adopt)
            && self.simulator.bounds(&scope, group).is_some();
        if !launched && !adopted && self.simulator.pinned(&scope, group).is_none() {
            let what = format!("{name} is ready, and its group ({arn}) does not exist");
            inner.breaks(self.clock.now(), "ready_follows_the_group", what);
        }
    }

    /// `ready` and `initialization.provisioned` are equal in every version, and neither is taken back (B5, B6).
    fn ready_is_never_taken_back(inner: &mut Inner, now: DateTime<Utc>, pool: &ASGMachinePool) {
        let name = pool.name_any();
        let fields = pool.status.as_ref().map(|status| (status.ready, status.initialization.provisioned));
        match fields.unwrap_or_default() {
            (true, true) => drop(inner.lists.ready.insert(name)),
            (false, false) if !inner.lists.ready.contains(&name) => {}
            fields => {
                let what = format!("(ready, provisioned) of {name} is {fields:?}");
                inner.breaks(now, "ready_is_never_taken_back", what);
            }
        }
    }
}
