//! What a reconcile could know when it began: rules on its decisions are measured by that, however far caches lag.

use std::collections::BTreeSet;

use capasg_api::{ASGMachineStatus, capi::Machine, names::annotations};
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use super::seen::begun::Begun;
use super::state::{Inner, Invariants};
use crate::{Pool, api_server::is_ready};

impl Invariants {
    /// A reconcile begins: what the caches show is kept.
    pub(super) fn note_begin(&self, inner: &mut Inner, pool: &Pool, now: DateTime<Utc>) {
        let mut api = self.api.state();
        api.listed.remove(&pool.key);
        let own = format!("{}-i-", pool.key.name);
        let shielded = api.asg_machines.all_cached().filter(|machine| {
            machine.annotations().contains_key(annotations::DO_NOT_DISRUPT)
                && machine.name_any().starts_with(&own)
        });
        let refreshed = api
            .asg_machines
            .all_cached()
            .any(|machine| machine.status.as_ref().is_some_and(ASGMachineStatus::is_replaced_by_refresh));
        let is_marked = |machine: &Machine| machine.annotations().contains_key(annotations::DELETE_MACHINE);
        let names = |is: &dyn Fn(&Machine) -> bool| -> BTreeSet<String> {
            let machines = api.machines.iter().filter(|(key, _)| key.name.starts_with(&own));
            machines.filter(|(_, machine)| is(machine)).map(|(key, _)| key.name.clone()).collect()
        };
        let marked = names(&is_marked);
        inner.begun = Begun {
            at: now,
            off: self.clock.off(),
            object: api.pools.cached(&pool.key),
            owner: api.machine_pools.cached(&pool.machine_pool),
            desired: self.simulator.desired(&self.at(&pool.group), &pool.group),
            shielded: shielded.map(|own| own.name_any()).filter(|name| !marked.contains(name)).collect(),
            joined: names(&|machine| machine.has_node()),
            marked,
            ready: api
                .machines
                .all_cached()
                .filter(|machine| is_ready(machine))
                .map(|own| own.name_any())
                .collect(),
            refreshed,
        };
    }
}
