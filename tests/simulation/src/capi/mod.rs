//! A model of core Cluster API: its Cluster, `MachinePool` and Machine controllers and the kubeadm bootstrap provider, as
//! far as a pool feels them.

mod bootstrap;
mod cluster;
mod drain;
mod machine;
mod machine_pool;
mod nodes;
mod owners;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capasg_cloud::Clock;
use capasg_fake_aws::Simulator;
use chrono::{DateTime, TimeDelta, Utc};

pub use bootstrap::CANARY;
pub(crate) use cluster::FINALIZER as CLUSTER_FINALIZER;
pub use drain::Drain;
pub(crate) use machine_pool::FINALIZER as MACHINE_POOL_FINALIZER;

use crate::{ApiServer, VirtualClock};

/// Core Cluster API.
pub struct Core {
    api: Arc<ApiServer>,
    simulator: Simulator,
    clock: Arc<VirtualClock>,
    state: Mutex<State>,
}

/// What core does and what it remembers.
pub(crate) struct State {
    /// How long a drain takes.
    pub(crate) drain_time: TimeDelta,
    /// How long after it runs an instance's Node joins.
    pub(crate) join_time: TimeDelta,
    /// Machines whose drain a `PodDisruptionBudget` blocks; `*` blocks all.
    pub(crate) blocked: BTreeSet<String>,
    /// Instances whose Node never joins; `*` for all.
    pub(crate) mute: BTreeSet<String>,
    /// Core is down.
    pub(crate) stopped: bool,
    /// Drains that began, by the Machine's uid.
    drains: BTreeMap<String, DateTime<Utc>>,
    /// Machines whose drain is over, by uid.
    drain_over: BTreeSet<String>,
    /// How each Machine's drain went, by the Machine's name, in order.
    pub(crate) drained: Vec<(String, Drain)>,
    /// Time and number of calls when the machines were last looked at.
    looked: (DateTime<Utc>, u64),
    /// What was seen of a Machine and its infrastructure when nothing was to do, by the Machine's uid.
    settled: BTreeMap<String, (String, String, &'static str)>,
    /// When each instance was first seen running.
    running: BTreeMap<String, DateTime<Utc>>,
    /// Nodes by instance id.
    nodes: BTreeSet<String>,
    /// Instances whose Node somebody deleted; their kubelets do not register again by themselves.
    lost: BTreeSet<String>,
    /// Instances whose kubelet is down.
    down: BTreeSet<String>,
    /// The API server of the workload cluster does not answer.
    pub(crate) unreachable: bool,
    /// Breaches of the contract that core met.
    pub(crate) breaches: BTreeSet<String>,
    /// Tokens made so far.
    tokens: u64,
    /// How long after the next one was made a token is valid; `None` for ever.
    pub(crate) expiry: Option<TimeDelta>,
    /// Tokens that were replaced, with the moment.
    pub(crate) replaced: Vec<(String, DateTime<Utc>)>,
    /// The newest token of each config.
    pub(crate) newest: BTreeMap<capasg_controllers::ObjectKey, (String, DateTime<Utc>)>,
    /// The certificate authority in the data of a config, once somebody rotated it.
    authorities: BTreeMap<capasg_controllers::ObjectKey, String>,
    /// Instances that booted with an expired token: they never join.
    pub(crate) expired: BTreeSet<String>,
    due: Option<DateTime<Utc>>,
}

impl Core {
    /// Core on an API server, with Nodes for the simulator's machines.
    #[must_use]
    pub fn new(api: Arc<ApiServer>, simulator: Simulator, clock: Arc<VirtualClock>) -> Arc<Self> {
        let state = State {
            drain_time: TimeDelta::seconds(10),
            join_time: TimeDelta::seconds(20),
            blocked: BTreeSet::new(),
            mute: BTreeSet::new(),
            stopped: false,
            drains: BTreeMap::new(),
            drain_over: BTreeSet::new(),
            drained: Vec::new(),
            looked: (DateTime::UNIX_EPOCH, 0),
            settled: BTreeMap::new(),
            running: BTreeMap::new(),
            nodes: BTreeSet::new(),
            lost: BTreeSet::new(),
            down: BTreeSet::new(),
            unreachable: false,
            breaches: BTreeSet::new(),
            tokens: 0,
            expiry: None,
            replaced: Vec::new(),
            newest: BTreeMap::new(),
            authorities: BTreeMap::new(),
            expired: BTreeSet::new(),
            due: None,
        };
        Arc::new(Self { api, simulator, clock, state: Mutex::new(state) })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets every controller of core and the garbage collector look once.
    pub fn step(&self) {
        let mut state = self.state();
        state.due = None;
        if state.stopped {
            return;
        }
        self.simulator.set_time(self.clock.now());
        let mut api = self.api.state();
        state.look_at_instances(&self.simulator, api.ledger.now);
        State::clusters(&mut api);
        state.machine_pools(&mut api);
        state.machines(&mut api);
        api.collect_garbage();
    }

    /// When something will happen by itself that core waits for.
    #[must_use]
    pub fn next_due(&self) -> Option<DateTime<Utc>> {
        self.state().due
    }
}

impl State {
    /// Looks again at a moment at the latest.
    pub(crate) fn look_again(&mut self, at: DateTime<Utc>) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn breach(&mut self, what: String) {
        self.breaches.insert(what);
    }
}
