//! What a reconcile could know when it began: rules on its decisions are measured by that, however far caches lag.

use std::{collections::BTreeSet, sync::Arc};

use capasg_api::{
    ASGMachinePool, ASGMachineStatus,
    capi::{Machine, MachinePool},
    names::annotations,
    pool::{ChangePolicy, Opening, RolloutMode},
};
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use super::{Inner, Invariants, within_limits};
use crate::Pool;

/// The reconcile that is under way.
#[derive(Default)]
pub(super) struct Begun {
    /// When it began.
    pub(super) at: DateTime<Utc>,
    /// The pool, as the caches showed it.
    pub(super) object: Option<Arc<ASGMachinePool>>,
    /// Its `MachinePool`.
    pub(super) owner: Option<Arc<MachinePool>>,
    /// Its ASGMachines with `do-not-disrupt` that are still to be chosen: their Machines are not marked.
    pub(super) shielded: BTreeSet<String>,
    /// Its Machines that are marked to go.
    pub(super) marked: BTreeSet<String>,
    /// Its Machines with a node: who joins later may be taken for one that never did.
    pub(super) joined: BTreeSet<String>,
    /// Whether one of its ASGMachines tells that an instance refresh ends its instance.
    pub(super) refreshed: bool,
}

/// Why no rollout may begin anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// `rollout.mode: Paused`.
    Paused,
    /// `changePolicy: Preview`.
    Preview,
    /// No window is open.
    Closed,
}

impl Begun {
    /// The pool and its owner, if both were there and neither was to go.
    pub(super) fn both(&self) -> Option<(&ASGMachinePool, &MachinePool)> {
        let (object, owner) = (self.object.as_deref()?, self.owner.as_deref()?);
        let gone =
            object.metadata.deletion_timestamp.is_some() || owner.metadata.deletion_timestamp.is_some();
        (!gone).then_some((object, owner))
    }

    /// The replicas that were asked for; `None` where somebody else says it.
    pub(super) fn replicas(&self) -> Option<i64> {
        let (object, owner) = self.both()?;
        let theirs = object.status.as_ref().is_some_and(|status| status.replicas_managed_by.is_some());
        let known = owner.replicas_managed_by().is_none() && !theirs;
        known.then(|| i64::from(within_limits(object, owner)))
    }

    /// Whether the rollout is stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.object.as_ref().is_some_and(|own| own.annotations().contains_key(annotations::ROLLOUT_STOPPED))
    }

    /// What holds rollouts, from the beginning until now.
    pub(super) fn hold(&self, now: DateTime<Utc>) -> Option<Hold> {
        let (object, owner) = self.both()?;
        let replicas = within_limits(object, owner);
        if object.spec.change_policy() == ChangePolicy::Preview {
            return Some(Hold::Preview);
        }
        if object.spec.rollout(replicas).mode == RolloutMode::Paused {
            return Some(Hold::Paused);
        }
        let disruption = object.spec.disruption(replicas);
        let closed = |at| !disruption.opening(at).is_open();
        (closed(self.at) && closed(now)).then_some(Hold::Closed)
    }

    /// How many may be disrupted at once, for rollouts or for other reasons.
    pub(super) fn most(&self, rolls: bool, now: DateTime<Utc>) -> Option<i64> {
        let (object, owner) = self.both()?;
        let disruption = object.spec.disruption(within_limits(object, owner));
        let of_window = |at| match disruption.opening(at) {
            Opening::Open { max_disrupted, .. } => max_disrupted.map(i64::from),
            Opening::Always | Opening::Closed { .. } => None,
        };
        // A window that opened or closed meanwhile counts as the more generous one.
        let windows = if rolls { of_window(self.at).zip(of_window(now)) } else { None };
        let own = disruption.max_disrupted.map(i64::from);
        own.into_iter().chain(windows.map(|(then, now)| then.max(now))).min()
    }
}

impl Invariants {
    /// A reconcile begins: what the caches show is kept.
    pub(super) fn note_begin(&self, inner: &mut Inner, pool: &Pool, now: DateTime<Utc>) {
        let api = self.api.state();
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
            object: api.pools.cached(&pool.key),
            owner: api.machine_pools.cached(&pool.machine_pool),
            shielded: shielded.map(|own| own.name_any()).filter(|name| !marked.contains(name)).collect(),
            joined: names(&|machine| machine.has_node()),
            marked,
            refreshed,
        };
    }
}
