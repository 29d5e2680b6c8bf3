//! How a run begins: its parts, its Cluster, its pools.

use std::{collections::BTreeMap, sync::Arc};

use capasg_api::{
    ASGMachinePool, ASGMachinePoolSpec,
    capi::{
        Cluster, ClusterInitialization, ClusterSpec, ClusterStatus, ContractReference, MachinePool,
        MachinePoolSpec,
    },
    names::{aws_name, tags},
};
use capasg_cloud::{Cadence, Clock, Inventories, InventoryParts, Limits, Supervisor};
use capasg_controllers::{
    Context, ObjectKey, identity,
    kubernetes::{Kubernetes, Randomness},
    machine,
};
use capasg_fake_aws::{Scope, Settings, Simulator};
use chrono::TimeDelta;
use kube::ResourceExt;

use super::{
    World,
    lease::Lease,
    policy,
    pool::{CLUSTER, NAMESPACE, Pool, pool_spec},
    running::Running,
    setup::{Observers, Setup},
    watchdog::Watchdog,
};
use crate::{
    ApiServer, Core, Invariants, Journal, Kind, Lag, Random, VirtualClock,
    capi::{CLUSTER_FINALIZER, MACHINE_POOL_FINALIZER},
    clock::HostClock,
    cloud::{Factory, Shared},
    latency::Delays,
};

impl World {
    /// A world with a Cluster and no pool.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self::observed(setup, Observers::default())
    }

    /// The same, with observers as metrics are.
    #[must_use]
    pub fn observed(setup: Setup, observers: Observers) -> Self {
        let settings = Settings { keep_feed: setup.invariants, ..setup.settings.clone() };
        let simulator = Simulator::with_settings(setup.seed, settings);
        let world = Self::over(setup, VirtualClock::begin(), simulator, observers);
        if world.setup.events {
            world.add_queue();
        }
        world.add_cluster();
        world
    }

    /// A world for tests of the rules: its caches do not lag, and nothing is looked at but when a test says so.
    #[cfg(test)]
    pub(crate) fn judged() -> Self {
        Self::new(Setup { watch: false, lag_millis: 0, ..Setup::default() })
    }

    /// Another management cluster with a manager of its own over the same cloud, and nothing in it. From then on the rules
    /// of [`Invariants`] are not checked: they know the calls and the wishes of one management cluster.
    #[must_use]
    pub fn beside(other: &mut Self, setup: Setup) -> Self {
        other.invariants = None;
        let setup = Setup { invariants: false, ..setup };
        let (clock, simulator) = (Arc::clone(&other.clock), other.simulator.clone());
        let world = Self::over(setup, clock, simulator, Observers::default());
        // The Nodes of instances that run have joined long ago.
        world.core.state().join_time = TimeDelta::zero();
        world
    }

    fn over(setup: Setup, clock: Arc<VirtualClock>, simulator: Simulator, observers: Observers) -> Self {
        if setup.policy {
            policy::enforce(&simulator);
        }
        let journal = Arc::new(Journal::default());
        let random = Random::new(setup.seed);
        let delays = Delays::new(setup.seed, setup.latency);
        let api =
            ApiServer::delayed(Arc::clone(&clock), Arc::clone(&journal), random.clone(), delays.clone());
        let core = Core::new(Arc::clone(&api), simulator.clone(), Arc::clone(&clock));
        for kind in Kind::ALL {
            api.set_lag(kind, Lag { millis: setup.lag_millis, frozen: false });
        }
        if setup.latency.is_some() {
            api.remember();
        }
        clock.set_off(TimeDelta::seconds(setup.clock_off_seconds));
        let shared = Shared::new(Arc::clone(&clock), Arc::clone(&journal), delays);
        if setup.latency.is_none() {
            let act = meanwhile(&api, &core, random.clone(), setup.meanwhile_percent);
            shared.set_meanwhile(Arc::clone(&act));
            api.set_meanwhile(act);
        }
        let lease = Arc::new(Lease::new(Arc::clone(&clock)));
        let factory = Factory { simulator: simulator.clone(), shared, events: setup.events };
        let parts = Parts { factory, api: &api, clock: &clock, random: &random, lease: &lease };
        let (context, inventories) = parts.controllers(&setup.cadence, &observers);
        let factory = parts.factory;
        let changes = inventories.changes();
        let invariants = setup.invariants.then(|| {
            let scope = Scope::account(&setup.account, &setup.region);
            let invariants = Invariants::new(
                Arc::clone(&api),
                Arc::clone(&core),
                simulator.clone(),
                Arc::clone(&clock),
                scope,
            );
            let witness = Arc::downgrade(&invariants);
            journal.set_witness(Arc::new(move |moment| {
                if let Some(witness) = witness.upgrade() {
                    witness.on(moment);
                }
            }));
            invariants
        });
        let orphans_due = clock.now() + machine::INTERVAL;
        let identities_due = clock.now() + identity::INTERVAL;
        Self {
            api,
            core,
            simulator,
            journal,
            clock,
            random,
            errors: Vec::new(),
            last_reconciles: Vec::new(),
            reconciles: 0,
            restarts: 0,
            factory,
            context,
            inventories,
            changes,
            queue: BTreeMap::new(),
            resyncs: BTreeMap::new(),
            failures: BTreeMap::new(),
            core_saw: None,
            running: Running::default(),
            stale: None,
            invariants,
            lease,
            takeover: None,
            dead: false,
            orphans_due,
            identities_due,
            watchdog: Watchdog::new(setup.watch),
            pools: Vec::new(),
            observers,
            setup,
        }
    }

    /// The process ended and another begins: nothing is remembered, caches are filled anew.
    pub(super) fn restart(&mut self) {
        self.running.clear();
        if self.is_concurrent() {
            // It may have died since the last look.
            let _ = self.journal.take_death();
        }
        let parts = Parts {
            factory: self.factory.clone(),
            api: &self.api,
            clock: &self.clock,
            random: &self.random,
            lease: &self.lease,
        };
        let (context, inventories) = parts.controllers(&self.setup.cadence, &self.observers);
        self.lease.renew();
        self.takeover = None;
        self.dead = false;
        if let Some(invariants) = &self.invariants {
            invariants.note("manager", || "another process begins".to_owned());
            invariants.begins();
        }
        self.restarts += 1;
        self.changes = inventories.changes();
        self.context = context;
        self.inventories = inventories;
        self.queue.clear();
        self.resyncs.clear();
        self.failures.clear();
        match self.stale.take() {
            None => self.api.state().relist(),
            Some(stale) => self.api.state().relist_old(stale),
        }
    }

    /// The queue of the run, with a rule for everything.
    fn add_queue(&self) {
        let scope = self.scope();
        self.simulator.put_queue(&scope, crate::cloud::QUEUE);
        for source in ["aws.autoscaling", "aws.ec2", "aws.health"] {
            let pattern = serde_json::json!({"source": [source]});
            self.simulator.put_rule(&scope, crate::cloud::QUEUE, pattern);
        }
    }

    /// Adds the Cluster of every pool that is not added to another one; [`World::new`] has it already.
    pub fn add_cluster(&self) {
        self.add_another_cluster(CLUSTER);
    }

    /// Adds a Cluster.
    pub fn add_another_cluster(&self, name: &str) {
        let spec = ClusterSpec::default();
        let mut cluster = Cluster::new(name, spec);
        cluster.metadata.namespace = Some(NAMESPACE.to_owned());
        cluster.metadata.finalizers = Some(vec![CLUSTER_FINALIZER.to_owned()]);
        cluster.status = Some(ClusterStatus {
            initialization: ClusterInitialization {
                infrastructure_provisioned: Some(true),
                control_plane_initialized: Some(true),
            },
            ..ClusterStatus::default()
        });
        let mut api = self.api.state();
        let crate::api_server::State { ledger, clusters, .. } = &mut *api;
        let _ = clusters.create(ledger, cluster);
    }

    /// Takes note of a pool whose objects are there already.
    pub(super) fn adopt(&mut self, pool: Pool) {
        self.pools.push(pool);
    }

    /// Adds a pool with the smallest spec.
    pub fn add_pool(&mut self, name: &str, replicas: i32) -> Pool {
        self.add_pool_with(name, replicas, |_| {})
    }

    /// Adds a pool with a spec that differs from the smallest.
    pub fn add_pool_with(
        &mut self,
        name: &str,
        replicas: i32,
        edit: impl FnOnce(&mut ASGMachinePoolSpec),
    ) -> Pool {
        self.add_pool_to(CLUSTER, name, replicas, edit)
    }

    /// Adds a pool to any Cluster.
    pub fn add_pool_to(
        &mut self,
        cluster: &str,
        name: &str,
        replicas: i32,
        edit: impl FnOnce(&mut ASGMachinePoolSpec),
    ) -> Pool {
        let key = ObjectKey::new(NAMESPACE, name);
        let pool = Pool {
            machine_pool: key.sibling(format!("{name}-mp")),
            config: key.sibling(format!("{name}-config")),
            group: aws_name(NAMESPACE, cluster, name),
            cluster: key.sibling(cluster),
            key,
        };
        let mut spec = pool_spec();
        edit(&mut spec);
        let mut object = ASGMachinePool::new(name, spec);
        object.metadata.namespace = Some(NAMESPACE.to_owned());
        let mut machine_pool = MachinePool::new(&pool.machine_pool.name, MachinePoolSpec::default());
        machine_pool.metadata.namespace = Some(NAMESPACE.to_owned());
        machine_pool.finalizers_mut().push(MACHINE_POOL_FINALIZER.to_owned());
        cluster.clone_into(&mut machine_pool.spec.cluster_name);
        machine_pool.spec.replicas = Some(replicas);
        let template = &mut machine_pool.spec.template.spec;
        template.version = Some("v1.36.3".to_owned());
        template.infrastructure_ref = reference(capasg_api::GROUP, "ASGMachinePool", name);
        template.bootstrap.config_ref =
            Some(reference("bootstrap.cluster.x-k8s.io", "KubeadmConfig", &pool.config.name));
        {
            let mut api = self.api.state();
            let crate::api_server::State { ledger, pools, machine_pools, .. } = &mut *api;
            let _ = pools.create(ledger, object);
            let _ = machine_pools.create(ledger, machine_pool);
        }
        self.core.create_config(&pool.config);
        if let Some(invariants) = &self.invariants {
            invariants.watch(&pool);
        }
        self.pools.push(pool.clone());
        pool
    }
}

/// Core acts between two calls of a reconcile. Those who look on and those who act in between are held by the world alone,
/// which goes as a whole.
fn meanwhile(
    api: &Arc<ApiServer>,
    core: &Arc<Core>,
    random: Random,
    percent: u64,
) -> Arc<dyn Fn() + Send + Sync> {
    let (api, core) = (Arc::downgrade(api), Arc::downgrade(core));
    Arc::new(move || {
        if let (Some(api), Some(core)) = (api.upgrade(), core.upgrade())
            && random.chance(percent)
        {
            core.step();
            api.state().deliver();
        }
    })
}

fn reference(group: &str, kind: &str, name: &str) -> ContractReference {
    ContractReference { api_group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}

/// What the controllers are made of.
struct Parts<'a> {
    factory: Factory,
    api: &'a Arc<ApiServer>,
    clock: &'a Arc<VirtualClock>,
    random: &'a Random,
    lease: &'a Arc<Lease>,
}

impl Parts<'_> {
    fn controllers(&self, cadence: &Cadence, observers: &Observers) -> (Arc<Context>, Arc<Inventories>) {
        let clock: Arc<dyn Clock> = Arc::new(HostClock(Arc::clone(self.clock)));
        let inventories = Inventories::stepped(InventoryParts {
            factory: Arc::new(self.factory.clone()),
            guard: Arc::<Lease>::clone(self.lease),
            observer: Arc::clone(&observers.calls),
            clock: Arc::clone(&clock),
            limits: Limits::default(),
            cadence: *cadence,
            template_tag: tags::OWNER_ID,
            supervisor: Supervisor::default(),
        });
        let kubernetes: Arc<dyn Kubernetes> = Arc::<ApiServer>::clone(self.api);
        let random: Arc<dyn Randomness> = Arc::new(self.random.clone());
        let context = Context::new(kubernetes, Arc::clone(&inventories), clock, random);
        (Arc::new(context.observed_by(Arc::clone(&observers.pools))), inventories)
    }
}
