//! One run: the API server, core, the cloud and the controllers under one virtual clock.

mod begin;
mod checks;
mod interrupt;
mod lease;
mod look;
mod operators;
mod pair;
mod people;
mod policy;
mod pool;
mod reconcile;
mod recording;
mod running;
mod schedule;
mod setup;
mod under_way;
mod watchdog;

use std::{collections::BTreeMap, sync::Arc};

use capasg_api::{ASGMachinePool, capi::MachinePool};
use capasg_cloud::{Clock, Inventories, Place};
use capasg_controllers::{Context, ObjectKey, backoff::FailedOperations};
use capasg_fake_aws::{Scope, Simulator};
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use lease::Lease;
pub use pair::{Moved, Pair};
pub use pool::{Pool, pool_spec};
pub(crate) use reconcile::RECONCILE_DEADLINE;
use running::Running;
pub use setup::{Observers, Setup};
use watchdog::Watchdog;

use crate::{ApiServer, Core, Invariants, Journal, Random, VirtualClock, api_server::Stale, cloud::Factory};

/// Everything that takes part in a run.
pub struct World {
    /// The API server.
    pub api: Arc<ApiServer>,
    /// Core Cluster API.
    pub core: Arc<Core>,
    /// AWS.
    pub simulator: Simulator,
    /// The controllers' writes.
    pub journal: Arc<Journal>,
    /// The time.
    pub clock: Arc<VirtualClock>,
    /// Chance.
    pub random: Random,
    /// Errors with which reconciles ended, oldest first.
    pub errors: Vec<(DateTime<Utc>, ObjectKey, String)>,
    /// When reconciles began and ended, oldest first.
    pub last_reconciles: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// How often a pool was reconciled.
    pub reconciles: usize,
    /// How often the process died or was killed.
    pub restarts: usize,
    setup: Setup,
    factory: Factory,
    context: Arc<Context>,
    inventories: Arc<Inventories>,
    changes: mpsc::UnboundedReceiver<(Place, String)>,
    queue: BTreeMap<ObjectKey, DateTime<Utc>>,
    /// When the periodic resync of a pool is due, if nothing wakes it before.
    resyncs: BTreeMap<ObjectKey, DateTime<Utc>>,
    failures: BTreeMap<ObjectKey, FailedOperations>,
    core_saw: Option<u64>,
    running: Running,
    /// The next process lists from an old cache.
    stale: Option<Stale>,
    watchdog: Watchdog,
    invariants: Option<Arc<Invariants>>,
    lease: Arc<Lease>,
    /// When another process takes over from one that lost its lease.
    takeover: Option<DateTime<Utc>>,
    /// The process died and none follows yet.
    dead: bool,
    /// When the controllers release ASGMachines without a pool the next time.
    orphans_due: DateTime<Utc>,
    /// When the controllers check the identities the next time.
    identities_due: DateTime<Utc>,
    pools: Vec<Pool>,
    observers: Observers,
}

impl World {
    /// The time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The scope of the pools' cloud.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::account(&self.setup.account, &self.setup.region)
    }

    /// A pool as it is.
    #[must_use]
    pub fn pool(&self, pool: &Pool) -> Option<Arc<ASGMachinePool>> {
        self.api.state().pools.get(&pool.key)
    }

    /// A pool's `MachinePool` as it is.
    #[must_use]
    pub fn machine_pool(&self, pool: &Pool) -> Option<Arc<MachinePool>> {
        self.api.state().machine_pools.get(&pool.machine_pool)
    }
}
