//! `spec.providerIDList` never loses a live instance, and what was ready stays so.

use std::collections::BTreeSet;

use capasg_api::pool::DeletionPolicy;
use capasg_cloud::Clock;

use super::state::{Inner, Invariants};

impl Invariants {
    /// An instance leaves the list only once its machine is gone (B1); `ready` is never taken back (B5).
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
            if object.status.as_ref().is_some_and(|status| status.ready) {
                inner.lists.ready.insert(name.clone());
            } else if inner.lists.ready.contains(&name) {
                inner.breaks(now, "ready_is_never_taken_back", format!("{name} is not ready any more"));
            }
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
                if !is_theirs && self.simulator.runs(&self.scope, id) {
                    inner.breaks(
                        now,
                        "list_keeps_the_living",
                        format!("the list of {name} lost {id}, which runs"),
                    );
                }
            }
        }
    }
}
