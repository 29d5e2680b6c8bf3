//! What the caches showed when a reconcile began.

use std::{collections::BTreeSet, sync::Arc};

use capasg_api::{
    ASGMachinePool,
    capi::MachinePool,
    names::annotations,
    pool::{ChangePolicy, Opening, RolloutMode},
};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::limits::within_limits;

/// The reconcile that is under way.
#[derive(Default)]
pub(crate) struct Begun {
    /// When it began.
    pub(crate) at: DateTime<Utc>,
    /// How far the clock of its host was off.
    pub(crate) off: TimeDelta,
    /// The pool, as the caches showed it.
    pub(crate) object: Option<Arc<ASGMachinePool>>,
    /// Its `MachinePool`.
    pub(crate) owner: Option<Arc<MachinePool>>,
    /// The desired capacity of its group.
    pub(crate) desired: Option<i64>,
    /// Its ASGMachines with `do-not-disrupt` that are still to be chosen: their Machines are not marked.
    pub(crate) shielded: BTreeSet<String>,
    /// Its Machines that are marked to go.
    pub(crate) marked: BTreeSet<String>,
    /// Its Machines with a node: who joins later may be taken for one that never did.
    pub(crate) joined: BTreeSet<String>,
    /// Its Machines that are ready by the caches.
    pub(crate) ready: BTreeSet<String>,
    /// Whether one of its ASGMachines tells that an instance refresh ends its instance.
    pub(crate) refreshed: bool,
}

/// Why no rollout may begin anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// `rollout.mode: Paused`.
    Paused,
    /// `changePolicy: Preview`.
    Preview,
    /// No window is open.
    Closed,
}

impl Begun {
    /// The pool and its owner, if both were there and neither was to go.
    pub(crate) fn both(&self) -> Option<(&ASGMachinePool, &MachinePool)> {
        let (object, owner) = (self.object.as_deref()?, self.owner.as_deref()?);
        let gone =
            object.metadata.deletion_timestamp.is_some() || owner.metadata.deletion_timestamp.is_some();
        (!gone).then_some((object, owner))
    }

    /// Whether changes were only previewed.
    pub(crate) fn previews(&self) -> bool {
        self.both().is_some_and(|(object, _)| object.spec.change_policy() == ChangePolicy::Preview)
    }

    /// The replicas that were asked for; `None` where somebody else says it.
    pub(crate) fn replicas(&self) -> Option<i64> {
        let (object, owner) = self.both()?;
        let theirs = object.status.as_ref().is_some_and(|status| status.replicas_managed_by.is_some());
        let known = owner.replicas_managed_by().is_none() && !theirs;
        known.then(|| i64::from(within_limits(object, owner)))
    }

    /// Whether the rollout is stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.object.as_ref().is_some_and(|own| own.annotations().contains_key(annotations::ROLLOUT_STOPPED))
    }

    /// What holds rollouts, from the beginning until now.
    pub(crate) fn hold(&self, now: DateTime<Utc>) -> Option<Hold> {
        let (object, owner) = self.both()?;
        let replicas = within_limits(object, owner);
        if object.spec.change_policy() == ChangePolicy::Preview {
            return Some(Hold::Preview);
        }
        if object.spec.rollout(replicas).mode == RolloutMode::Paused {
            return Some(Hold::Paused);
        }
        let disruption = object.spec.disruption(replicas);
        // Windows are open by the clock of the host.
        let closed = |at| !disruption.opening(at + self.off).is_open();
        (closed(self.at) && closed(now)).then_some(Hold::Closed)
    }

    /// How many may be disrupted at once, for rollouts or for other reasons.
    pub(crate) fn most(&self, rolls: bool, now: DateTime<Utc>) -> Option<i64> {
        let (object, owner) = self.both()?;
        // Percentages are of the replicas, which are those of the group while another actor manages them; the MachinePool
        // gets their number later (API reference, `replicasManagedBy`).
        let theirs = self.desired.filter(|_| self.replicas().is_none());
        let theirs = theirs.and_then(|desired| i32::try_from(desired).ok());
        let disruption = object.spec.disruption(theirs.unwrap_or(within_limits(object, owner)));
        let of_window = |at| match disruption.opening(at + self.off) {
            Opening::Open { max_disrupted, .. } => max_disrupted.map(i64::from),
            Opening::Always | Opening::Closed { .. } => None,
        };
        // A window that opened or closed meanwhile counts as the more generous one.
        let windows = if rolls { of_window(self.at).zip(of_window(now)) } else { None };
        let own = disruption.max_disrupted.map(i64::from);
        own.into_iter().chain(windows.map(|(then, now)| then.max(now))).min()
    }
}
