//! Caches that list again, or begin with the past.

use capasg_controllers::ObjectKey;

use super::{ApiServer, Kind, State, past::Stale};

impl ApiServer {
    /// Remembers from now on what was there.
    pub(crate) fn remember(&self) {
        let mut state = self.state();
        state.clusters.remember();
        state.machine_pools.remember();
        state.machines.remember();
        state.pools.remember();
        state.asg_machines.remember();
        state.secrets.remember();
    }

    /// The watch of a kind breaks and lists again.
    pub(crate) fn list_again(&self, kind: Kind) {
        let mut state = self.state();
        let now = state.ledger.now;
        match kind {
            Kind::Cluster => state.clusters.list_again(now),
            Kind::MachinePool => state.machine_pools.list_again(now),
            Kind::Machine => state.machines.list_again(now),
            Kind::Pool => state.pools.list_again(now),
            Kind::AsgMachine => state.asg_machines.list_again(now),
            Kind::Secret => state.secrets.list_again(now),
        }
    }
}

impl State {
    /// A new process lists everything from caches that are behind, and its queue begins with every pool that they show.
    pub(crate) fn relist_old(&mut self, stale: Stale) {
        self.clusters.relist_old(stale);
        self.machine_pools.relist_old(stale);
        self.machines.relist_old(stale);
        self.pools.relist_old(stale);
        self.asg_machines.relist_old(stale);
        self.secrets.relist_old(stale);
        self.woken = self.pools.all_cached().map(|pool| ObjectKey::of(pool.as_ref())).collect();
    }
}
