//! The facts that cost a call, read in a reconcile only if decide requires them.

use std::time::Duration;

use capasg_api::pool::RolloutType;
use capasg_cloud::{CloudError, ErrorClass, Inventory};
use chrono::{DateTime, Utc};

use crate::Context;
use crate::kubernetes::KubeError;
use crate::machine_pool::model::{Facts, Machines, Needs, Observation, PoolObjects};
use crate::machine_pool::observe::machines::{cached_machines, live_machines};

/// Facts that were read in this reconcile since decide requires them.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each read or not")]
pub struct Fetched {
    /// Whether the first observation has begun.
    pub(super) begun: bool,
    /// Whether AWS was unreachable when the first observation began.
    pub unreachable: bool,
    /// Machines and ASGMachines, if they were listed live.
    pub live_machines: Option<Machines>,
    /// Why they could not be listed.
    pub unlisted: Option<KubeError>,
    /// When the group was read on its own.
    pub fresh_group: Option<DateTime<Utc>>,
    /// Whether the launch template was read for this reconcile.
    pub fresh_template: bool,
    /// Whether the bootstrap data itself is read.
    pub user_data: bool,
    /// The account of the credentials.
    pub account: Option<String>,
    /// Whether our hook is read.
    pub hook: bool,
    /// Whether our hook was read for this reconcile.
    pub fresh_hook: bool,
    /// When the group's instance refreshes were read.
    pub refreshes: Option<DateTime<Utc>>,
    /// Whether AWS denies to list them, while the pool does not use instance refreshes and none is known to be in
    /// progress.
    pub no_refreshes: bool,
    /// The reads that failed.
    pub failed: Vec<CloudError>,
}

impl Fetched {
    /// The Machines and ASGMachines: live ones if they were listed, else those of the caches.
    pub(super) fn machines(&self, context: &Context, objects: &PoolObjects) -> Machines {
        self.live_machines.clone().unwrap_or_else(|| cached_machines(context, objects))
    }

    /// Begins the first observation.
    pub fn begin(&mut self, inventory: &Inventory) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.unreachable = inventory.reachable().is_err();
    }

    /// Reads what decide requires. Returns whether to decide again now; descriptions of instances arrive later and wake
    /// the pool.
    pub async fn fetch(&mut self, context: &Context, observation: &Observation, needs: &Needs) -> bool {
        let Some(Facts { desired, observed }) = observation.facts() else { return false };
        let Some(place) = observation.objects.place() else { return false };
        let inventory = context.inventories.inventory(&place);
        let mut again = false;
        if needs.live_machines && self.live_machines.is_none() && self.unlisted.is_none() {
            match live_machines(context, &observation.objects).await {
                Ok(machines) => self.live_machines = Some(machines),
                Err(error) => self.unlisted = Some(error),
            }
            again |= self.live_machines.is_some();
        }
        if needs.user_data && !self.user_data {
            self.user_data = true;
            again = true;
        }
        if needs.hook && !self.hook {
            self.hook = true;
            again = true;
        }
        if needs.fresh_hook && !self.fresh_hook {
            inventory.forget_hooks(&desired.group);
            (self.hook, self.fresh_hook) = (true, true);
            again = true;
        }
        if needs.fresh_template && !self.fresh_template {
            inventory.forget_template(&desired.template);
            self.fresh_template = true;
            again = true;
        }
        if needs.account && self.account.is_none() {
            again |= self.keep(inventory.account().await).is_some_and(|account| {
                self.account = Some(account);
                true
            });
        }
        if needs.fresh_group && self.fresh_group.is_none() {
            self.fresh_group = Some(context.clock.now());
            again |= self.keep(inventory.read_group(&desired.group).await).is_some();
        }
        if needs.refreshes && self.refreshes.is_none() {
            self.refreshes = Some(context.clock.now());
            let known = inventory.known_refreshes(&desired.group);
            let mut in_progress = known.iter().flat_map(|view| view.refreshes.iter());
            let is_required = desired.rollout.type_ == RolloutType::InstanceRefresh
                || in_progress.any(|refresh| !refresh.status.is_finished())
                || observed.has_terminations_by_refresh();
            match inventory.instance_refreshes(&desired.group, Duration::ZERO).await {
                Err(error) if error.class == ErrorClass::Denied && !is_required => self.no_refreshes = true,
                read => again |= self.keep(read).is_some(),
            }
            again |= self.no_refreshes;
        }
        if !again && !needs.facts.is_empty() {
            let (pool, count) = (&observation.objects.key, needs.facts.len());
            tracing::debug!(%pool, count, "requesting descriptions of instances");
            inventory.refetch_facts(&desired.group, needs.facts.iter().cloned());
        }
        again
    }

    /// The result of a read. One that fails delays only what requires it: the rest is read and decided on.
    fn keep<T>(&mut self, read: Result<T, CloudError>) -> Option<T> {
        read.map_err(|error| self.failed.push(error)).ok()
    }
}
