//! A recorded run for tests of queries: pools whose controllers run in virtual time on a simulated AWS, releases, and blocked
//! Clusters; and what a scraper reads of them every half minute.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use capasg_addons::{
    controller::{ObjectKey as ReleaseKey, OperationObserver as _},
    runtime::{ReconcileObserver as _, ReleaseGauges},
};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::ConditionState,
    pool::{InstancesDistribution, RebalanceRecommendationPolicy, SubnetSelector},
};
use capasg_cloud::Clock;
use capasg_controllers::ReconcileObserver as _;
use capasg_extensions::{
    Extension,
    blocks::{Block, Cause, Record},
    ports::{Observer as _, Outcome},
    protocol::{ClusterKey, Hook},
};
use capasg_simulation::{Observers, Pool, Setup, World};
use chrono::{DateTime, TimeDelta, Utc};

use super::{AddonMetrics, CallMetrics, Exposed, ExtensionMetrics, HookMetrics, Metrics, ObjectMetrics};
use crate::{extension::tests::extension_with_clock, leadership::Seat};

/// Between two scrapes.
const INTERVAL: TimeDelta = TimeDelta::seconds(30);

/// What a scraper read.
pub struct Scrape {
    /// When.
    pub at: DateTime<Utc>,
    /// The job of the target.
    pub job: &'static str,
    /// The namespace of its pod.
    pub namespace: &'static str,
    /// The text.
    pub text: String,
}

/// All that is scraped.
struct Recorder {
    world: World,
    manager: Arc<Metrics>,
    addons: AddonMetrics,
    hooks: Arc<HookMetrics>,
    extension: Arc<Extension>,
    of_extension: ExtensionMetrics,
    reconciles: usize,
    scrapes: Vec<Scrape>,
}

/// Records the run.
///
/// # Errors
/// If a pool does not do in time what the run is about.
pub fn record() -> Result<Vec<Scrape>> {
    capasg_simulation::run(async {
        let mut recorder = Recorder::new();
        recorder.live().await?;
        Ok(recorder.scrapes)
    })?
}

/// All of it on Spot, and replaced before an interruption.
fn spot(spec: &mut ASGMachinePoolSpec) {
    spec.instances_distribution = Some(InstancesDistribution {
        on_demand_percentage_above_base_capacity: Some(0),
        ..InstancesDistribution::default()
    });
    spec.rebalance_recommendation_policy = Some(RebalanceRecommendationPolicy::Replace);
}

impl Recorder {
    fn new() -> Self {
        let seat = || Arc::new(Seat::always());
        let manager = Arc::new(Metrics::new(seat(), ObjectMetrics::Served));
        let observers =
            Observers { calls: Arc::clone(&manager.calls) as _, pools: Arc::clone(&manager.pools) as _ };
        // The run breaks what the invariants demand of one pool at a time.
        let setup = Setup { events: true, invariants: false, watch: false, ..Setup::default() };
        let world = World::observed(setup, observers);
        let (extension, hooks) = extension_with_clock(Arc::clone(&world.clock) as Arc<dyn Clock>);
        let calls = CallMetrics::default();
        let of_extension =
            ExtensionMetrics::new(&hooks, &calls, Arc::clone(&extension), ObjectMetrics::Served);
        Self {
            world,
            manager,
            addons: AddonMetrics::new(seat(), ObjectMetrics::Served),
            hooks,
            extension,
            of_extension,
            reconciles: 0,
            scrapes: Vec::new(),
        }
    }

    /// What the pools live through, in an order in which each event begins from a quiet fleet.
    async fn live(&mut self) -> Result<()> {
        let workers = self.world.add_pool("workers", 3);
        let cheap = self.world.add_pool_with("cheap", 2, spot);
        let stalled = self.world.add_pool_with("stalled", 1, |spec| {
            spec.subnets =
                vec![SubnetSelector { id: Some("subnet-absent".to_owned()), ..SubnetSelector::default() }];
        });
        self.world.set_drain_seconds(40);
        self.run_until("both run", |world| world.is_running(&workers, 3) && world.is_running(&cheap, 2))
            .await?;
        self.run_for(5).await?;

        self.interrupt(&cheap).await?;
        self.roll_out(&workers).await?;
        self.fail(&workers).await?;

        self.world.delete_machine_pool(&stalled);
        self.run_until("it is deleted", |world| world.is_gone(&stalled)).await?;
        self.run_for(3).await
    }

    /// EC2 reclaims a Spot instance.
    async fn interrupt(&mut self, pool: &Pool) -> Result<()> {
        let id = self.world.in_service(pool).into_iter().next().context("no instance")?;
        self.world.interrupt(&id);
        self.run_for(2).await?;
        self.run_until("it is replaced", |world| world.is_running(pool, 2)).await
    }

    /// A rollout that a drain holds up for a while.
    async fn roll_out(&mut self, pool: &Pool) -> Result<()> {
        self.world.block_drain("*", true);
        self.world.edit_pool(pool, |pool| pool.spec.machine.image.id = Some("ami-0b1c2d3e".to_owned()));
        self.run_for(10).await?;
        self.world.unblock_drains();
        self.run_until("it is rolled out", |world| {
            world.is_running(pool, 3) && world.instances(pool).iter().all(|one| one.image == "ami-0b1c2d3e")
        })
        .await
    }

    /// Launches that fail, and nodes that do not join.
    async fn fail(&mut self, pool: &Pool) -> Result<()> {
        let scope = self.world.scope();
        self.world.simulator.set_capacity(&scope, "m7i.large", "*", Some(4));
        self.world.scale(pool, 6);
        self.run_for(8).await?;
        self.world.mute("*", true);
        self.world.simulator.set_capacity(&scope, "m7i.large", "*", None);
        self.run_for(15).await?;
        self.world.mute("*", false);
        self.run_until("all join", |world| world.is_running(pool, 6)).await
    }

    /// Runs for minutes.
    async fn run_for(&mut self, minutes: i64) -> Result<()> {
        let end = self.world.now() + TimeDelta::minutes(minutes);
        while self.world.now() < end {
            self.step().await?;
        }
        Ok(())
    }

    async fn run_until(&mut self, what: &str, holds: impl Fn(&World) -> bool) -> Result<()> {
        let end = self.world.now() + TimeDelta::hours(1);
        while !holds(&self.world) {
            anyhow::ensure!(self.world.now() < end, "not within an hour: {what}\n{}", self.world.describe());
            self.step().await?;
        }
        Ok(())
    }

    /// Runs until the next scrape.
    async fn step(&mut self) -> Result<()> {
        self.world.run_for(INTERVAL).await?;
        // The runtime of the controllers counts these; the simulation runs the reconciles without it.
        for _ in self.reconciles..self.world.reconciles {
            self.manager.reconciles.reconciled("asgmachinepool", "ok", Duration::from_millis(2));
        }
        self.reconciles = self.world.reconciles;
        self.manager.reconciles.in_backoff("asgmachinepool", self.world.errors.len().min(1));
        let now = self.world.now();
        self.operate();
        self.block(now);
        let targets: [(&str, &str, &dyn Exposed); 3] = [
            ("capasg-metrics", "capasg-system", &*self.manager),
            ("capasg-addons-metrics", "capasg-addons-system", &self.addons),
            ("capasg-extension-metrics", "capasg-extension-system", &self.of_extension),
        ];
        for (job, namespace, metrics) in targets {
            self.scrapes.push(Scrape { at: now, job, namespace, text: metrics.encode()? });
        }
        Ok(())
    }

    /// A release that is ready and has drifted, and one that Helm fails to upgrade.
    fn operate(&self) {
        let of = |name: &str, state: &str, conditions: &[(&str, &str, &str)]| {
            let condition = |(type_, status, reason): &(&str, &str, &str)| ConditionState {
                type_: (*type_).to_owned(),
                status: (*status).to_owned(),
                reason: (*reason).to_owned(),
            };
            let gauges = ReleaseGauges {
                cluster: "prod".to_owned(),
                chart_proxy: name.to_owned(),
                chart: name.to_owned(),
                state: state.to_owned(),
                conditions: conditions.iter().map(condition).collect(),
                ..ReleaseGauges::default()
            };
            self.addons
                .reconciles
                .release(&ReleaseKey::new("default", format!("{name}-prod-x")), Some(gauges));
        };
        of("cni", "deployed", &[("Ready", "True", "InfoReported"), ("Drifted", "True", "ResourcesChanged")]);
        of(
            "csi",
            "failed",
            &[
                ("Ready", "False", "IssuesReported"),
                ("HelmReleaseReady", "False", "HelmInstallOrUpgradeFailed"),
            ],
        );
        self.addons.reconciles.releases(&BTreeMap::from([(("deployed", true), 1), (("failed", false), 1)]));
        self.addons.reconciles.drifted(1);
        self.addons.reconciles.reconciled("helmreleaseproxy", "ok", Duration::from_millis(900));
        self.addons.operations.operated("upgrade", "HelmInstallOrUpgradeFailed", Duration::from_secs(8));
    }

    /// A hook blocks a Cluster.
    fn block(&self, now: DateTime<Utc>) {
        let cluster =
            ClusterKey { namespace: "default".to_owned(), name: "prod".to_owned(), uid: "1".to_owned() };
        let since = now - TimeDelta::minutes(9);
        let causes =
            BTreeMap::from([(Cause::PoolNotReady, Block { since, blocks: true, message: "why".to_owned() })]);
        let hook = Hook::BeforeWorkersUpgrade;
        let record = Record { hook, version: "v1.36.3".to_owned(), last: now, causes };
        self.extension.services().blocks.remember(cluster, record);
        self.hooks.called(hook, Outcome::Blocked, Duration::from_millis(12));
    }
}
