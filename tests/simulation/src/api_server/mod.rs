//! A model of the API server: optimistic locking, uids, generations, finalizers, owner references, the garbage
//! collector, and caches that lag behind.

mod held;
mod lists;
mod namespaces;
mod on_its_way;
mod operators;
mod past;
mod port;
mod store;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool, owner_machine_pool, pool_owner_of_machine},
    names::{labels, must_format_value},
};
use capasg_cloud::Clock;
use capasg_controllers::{
    ObjectKey,
    kubernetes::{KubeEvent, KubeWrite, pools_of_asg_machine},
};
use chrono::{DateTime, Utc};
pub use held::Objects;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{ResourceExt, core::DynamicObject};
pub(crate) use operators::Operators;
pub(crate) use past::Stale;
pub use store::Lag;
pub(crate) use store::{Expect, Ledger, Object, Store};

use crate::{Journal, Random, VirtualClock, latency::Delays};

/// The kinds of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `Cluster`.
    Cluster,
    /// `MachinePool`.
    MachinePool,
    /// `Machine`.
    Machine,
    /// `ASGMachinePool`.
    Pool,
    /// `ASGMachine`.
    AsgMachine,
    /// `Secret`.
    Secret,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Cluster, Self::MachinePool, Self::Machine, Self::Pool, Self::AsgMachine, Self::Secret];
}

/// A change of one of the controllers' objects, for tests that count them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The kind.
    pub kind: Kind,
    /// The object.
    pub object: ObjectKey,
    /// Its resourceVersion.
    pub resource_version: String,
}

/// Whether a Machine counts as a ready replica.
pub(crate) fn is_ready(machine: &Machine) -> bool {
    machine.has_node() && machine.is_ready() && !machine.is_deleting()
}

/// Everything that the API server holds.
pub(crate) struct State {
    pub(crate) ledger: Ledger,
    pub(crate) clusters: Store<Cluster>,
    pub(crate) machine_pools: Store<MachinePool>,
    pub(crate) machines: Store<Machine>,
    pub(crate) pools: Store<ASGMachinePool>,
    pub(crate) asg_machines: Store<ASGMachine>,
    pub(crate) secrets: Store<Secret>,
    pub(crate) configs: Store<DynamicObject>,
    pub(crate) operators: Operators,
    /// The ready Machines of each pool as its last LIST shows them, since its reconcile began.
    pub(crate) listed: BTreeMap<ObjectKey, BTreeSet<String>>,
    /// Pools that a delivered change concerns.
    woken: BTreeSet<ObjectKey>,
    events: Vec<(DateTime<Utc>, KubeEvent)>,
    /// That many of the controllers' next writes meet a conflict.
    conflicts: u32,
    /// The writes of the controllers that an admission policy rejects.
    rejects: Option<fn(&KubeWrite) -> bool>,
    /// That many of the controllers' next calls fail otherwise.
    failures: u32,
    /// Whether the controllers' LISTs fail.
    fails_lists: bool,
    /// That many of the controllers' next writes take effect without an answer.
    lost_replies: u32,
    /// Until when a process waits for the last reply that was lost.
    pub(crate) waits_for_lost: Option<DateTime<Utc>>,
    /// Writes of a process that died, or that their senders gave up, and when they land.
    late: Vec<(DateTime<Utc>, KubeWrite)>,
    /// What the garbage collector has seen of who owns what.
    collected: u64,
}

/// The API server.
pub struct ApiServer {
    state: Mutex<State>,
    clock: Arc<VirtualClock>,
    journal: Arc<Journal>,
    delays: Delays,
    /// Lets others act between two calls of a reconcile.
    meanwhile: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

impl ApiServer {
    /// An empty API server.
    #[must_use]
    pub fn new(clock: Arc<VirtualClock>, journal: Arc<Journal>, random: Random) -> Arc<Self> {
        Self::delayed(clock, journal, random, Delays::default())
    }

    /// An empty API server whose calls take time.
    pub(crate) fn delayed(
        clock: Arc<VirtualClock>,
        journal: Arc<Journal>,
        random: Random,
        delays: Delays,
    ) -> Arc<Self> {
        let state = State {
            ledger: Ledger::new(clock.now(), random),
            clusters: Store::new("Cluster"),
            machine_pools: Store::new("MachinePool"),
            machines: Store::new("Machine"),
            pools: Store::new("ASGMachinePool"),
            asg_machines: Store::new("ASGMachine"),
            secrets: Store::new("Secret"),
            configs: Store::new("KubeadmConfig"),
            operators: Operators::of_an_earlier_release(),
            listed: BTreeMap::new(),
            woken: BTreeSet::new(),
            events: Vec::new(),
            conflicts: 0,
            rejects: None,
            failures: 0,
            fails_lists: false,
            lost_replies: 0,
            waits_for_lost: None,
            late: Vec::new(),
            collected: 0,
        };
        Arc::new(Self { state: Mutex::new(state), clock, journal, delays, meanwhile: Mutex::default() })
    }

    /// Changes what operators say, and wakes every pool, as the watches do.
    pub(crate) fn operate(&self, change: impl FnOnce(&mut Operators)) {
        let mut state = self.state();
        change(&mut state.operators);
        let pools: Vec<ObjectKey> = state.pools.all().into_iter().map(|(key, _)| key).collect();
        state.woken.extend(pools);
    }

    /// The objects, with the API server's clock set.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ledger.now = self.clock.now();
        state
    }

    pub(crate) fn set_meanwhile(&self, act: Arc<dyn Fn() + Send + Sync>) {
        *self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner) = Some(act);
    }

    fn meanwhile(&self) {
        let act = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(act) = act {
            act();
        }
    }

    /// How far the cache of a kind is behind.
    pub fn set_lag(&self, kind: Kind, lag: Lag) {
        let mut state = self.state();
        match kind {
            Kind::Cluster => state.clusters.lag = lag,
            Kind::MachinePool => state.machine_pools.lag = lag,
            Kind::Machine => state.machines.lag = lag,
            Kind::Pool => state.pools.lag = lag,
            Kind::AsgMachine => state.asg_machines.lag = lag,
            Kind::Secret => state.secrets.lag = lag,
        }
    }

    /// The controllers' next writes meet a conflict.
    pub fn add_conflicts(&self, count: u32) {
        self.state().conflicts += count;
    }

    /// An admission policy rejects these writes of the controllers, or none any more.
    pub fn reject_writes(&self, which: Option<fn(&KubeWrite) -> bool>) {
        self.state().rejects = which;
    }

    /// The controllers' LISTs fail, or no longer do.
    pub fn fail_lists(&self, fails: bool) {
        self.state().fails_lists = fails;
    }

    /// The controllers' next calls fail as if the API server were down.
    pub fn add_failures(&self, count: u32) {
        self.state().failures += count;
    }

    /// The controllers' next writes take effect, and their replies are lost.
    pub fn lose_replies(&self, count: u32) {
        self.state().lost_replies += count;
    }

    /// Nothing fails any more that was to.
    pub fn forgive(&self) {
        let mut state = self.state();
        (state.conflicts, state.failures, state.lost_replies) = (0, 0, 0);
    }

    /// The events that were published, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<(DateTime<Utc>, KubeEvent)> {
        self.state().events.clone()
    }

    /// The resourceVersions of all objects of our kinds.
    #[must_use]
    pub fn versions(&self) -> Vec<Change> {
        let state = self.state();
        let version = |version: Option<String>| version.unwrap_or_default();
        let pools = state.pools.all().into_iter().map(|(object, pool)| Change {
            kind: Kind::Pool,
            object,
            resource_version: version(pool.resource_version()),
        });
        let machines = state.asg_machines.all().into_iter().map(|(object, machine)| Change {
            kind: Kind::AsgMachine,
            object,
            resource_version: version(machine.resource_version()),
        });
        pools.chain(machines).collect()
    }
}

impl State {
    /// Whether operators let a pool use its identity: without it, the controllers make no call for the pool ("While an identity
    /// cannot be used" in the documentation).
    pub(crate) fn may_call(&self, pool: &ASGMachinePool) -> bool {
        let Some(reference) = &pool.spec.identity_ref else { return true };
        let namespace = pool.namespace().unwrap_or_default();
        let identity = self.operators.identities.get(&reference.name);
        identity
            .is_some_and(|identity| identity.allows(&namespace, self.operators.namespaces.get(&namespace)))
    }

    /// When a cache learns something next.
    pub(crate) fn next_delivery(&self) -> Option<DateTime<Utc>> {
        [
            self.clusters.next_delivery(),
            self.machine_pools.next_delivery(),
            self.machines.next_delivery(),
            self.pools.next_delivery(),
            self.asg_machines.next_delivery(),
            self.secrets.next_delivery(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether a watch has something to deliver, or delivered something that concerns a pool since that was woken last. A
    /// watch that stalls delivers nothing until its stream ends.
    pub(crate) fn is_to_wake(&self, pool: &ObjectKey) -> bool {
        self.clusters.is_behind()
            || self.machine_pools.is_behind()
            || self.machines.is_behind()
            || self.pools.is_behind()
            || self.asg_machines.is_behind()
            || self.secrets.is_behind()
            || self.woken.contains(pool)
    }

    /// Lets the caches learn what is due, and notes the pools concerned as the controllers' watches would.
    pub(crate) fn deliver(&mut self) {
        let now = self.ledger.now;
        for pool in self.pools.deliver(now) {
            self.woken.insert(ObjectKey::of(pool.as_ref()));
        }
        for machine_pool in self.machine_pools.deliver(now) {
            self.woken.insert(pool_of(&machine_pool));
            // It may have referred to others before.
            let name = machine_pool.name_any();
            let is_owned =
                |pool: &ASGMachinePool| owner_machine_pool(pool).is_some_and(|owner| owner.name == name);
            let owned = self.pools.iter().filter(|(_, pool)| is_owned(pool));
            self.woken.extend(owned.map(|(key, _)| key.clone()));
        }
        for cluster in self.clusters.deliver(now) {
            let name = cluster.name_any();
            let all = self.pools.iter();
            let of_cluster = all.filter(|(_, pool)| pool.labels().get(labels::CLUSTER_NAME) == Some(&name));
            self.woken.extend(of_cluster.map(|(key, _)| key.clone()));
        }
        for machine in self.asg_machines.deliver(now) {
            let all = |_: &str| self.pools.iter().map(|(_, pool)| Arc::clone(pool)).collect();
            let pools = pools_of_asg_machine(&machine, all);
            self.woken.extend(pools);
        }
        for machine in self.machines.deliver(now) {
            let infrastructure =
                ObjectKey::of(machine.as_ref()).sibling(&machine.spec.infrastructure_ref.name);
            let asg_machine = self.asg_machines.cached(&infrastructure);
            if let Some(owner) = asg_machine.as_deref().and_then(pool_owner_of_machine) {
                self.woken.insert(infrastructure.sibling(&owner.name));
                continue;
            }
            let pool = machine.labels().get(labels::POOL_NAME);
            let mut owners = self.machine_pools.iter();
            let owner = owners.find(|(key, _)| Some(&must_format_value(&key.name)) == pool);
            self.woken.extend(owner.map(|(_, owner)| pool_of(owner)));
        }
        for secret in self.secrets.deliver(now) {
            let name = secret.name_any();
            let users = self
                .machine_pools
                .iter()
                .filter(|(_, owner)| owner.data_secret_name() == Some(name.as_str()));
            self.woken.extend(users.map(|(_, owner)| pool_of(owner)));
        }
    }

    /// When a write of a process that died lands next.
    pub(crate) fn next_landing(&self) -> Option<DateTime<Utc>> {
        self.late.iter().map(|(due, _)| *due).min()
    }

    /// The pools that delivered changes concern, once each.
    pub(crate) fn take_woken(&mut self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut self.woken)
    }

    /// A new process lists everything, and its queue begins with every pool.
    pub(crate) fn relist(&mut self) {
        self.clusters.relist();
        self.machine_pools.relist();
        self.machines.relist();
        self.pools.relist();
        self.asg_machines.relist();
        self.secrets.relist();
        self.woken = self.pools.keys().cloned().collect();
    }

    /// One round of the garbage collector: what had owners and lost them all is deleted. Tells whether it did.
    pub(crate) fn collect_garbage(&mut self) -> bool {
        if std::mem::replace(&mut self.collected, self.ledger.kinship) == self.ledger.kinship {
            return false;
        }
        let mut alive: BTreeSet<String> = BTreeSet::new();
        let mut note = |uid: Option<String>| alive.extend(uid);
        self.clusters.iter().for_each(|(_, object)| note(object.uid()));
        self.machine_pools.iter().for_each(|(_, object)| note(object.uid()));
        self.machines.iter().for_each(|(_, object)| note(object.uid()));
        self.pools.iter().for_each(|(_, object)| note(object.uid()));
        let Self { ledger, machine_pools, machines, pools, asg_machines, secrets, configs, .. } = self;
        collect(machine_pools, ledger, &alive)
            | collect(machines, ledger, &alive)
            | collect(pools, ledger, &alive)
            | collect(asg_machines, ledger, &alive)
            | collect(secrets, ledger, &alive)
            | collect(configs, ledger, &alive)
    }
}

/// The pool that a `MachinePool` refers to.
pub(crate) fn pool_of(machine_pool: &MachinePool) -> ObjectKey {
    ObjectKey::of(machine_pool).sibling(&machine_pool.spec.template.spec.infrastructure_ref.name)
}

fn collect<T: Object>(store: &mut Store<T>, ledger: &mut Ledger, alive: &BTreeSet<String>) -> bool {
    let orphaned = |owners: &[OwnerReference]| {
        !owners.is_empty() && owners.iter().all(|owner| !alive.contains(&owner.uid))
    };
    let left: Vec<ObjectKey> = store
        .iter()
        .filter(|(_, object)| {
            object.meta().deletion_timestamp.is_none() && orphaned(object.owner_references())
        })
        .map(|(key, _)| key.clone())
        .collect();
    let mut collected = false;
    for key in left {
        collected |= store.delete(ledger, &key, Expect::default()).unwrap_or(false);
    }
    collected
}
