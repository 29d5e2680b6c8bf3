//! Two management clusters over one cloud, each with core and a manager of its own, and `clusterctl move` between them.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use capasg_api::names::annotations;
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt;

use super::{Pool, Setup, World};
use crate::api_server::{Expect, Ledger, Object, State, Store};

/// More actions than this in one virtual second are a loop that does not rest.
const MOST_ACTIONS_PER_SECOND: usize = 8000;
/// clusterctl takes this long between two groups of objects, at most.
const BETWEEN_GROUPS: u64 = 800;

/// The source and the target of a move. Both managers run all the time.
pub struct Pair {
    /// Where the objects are at first.
    pub source: World,
    /// Where they go.
    pub target: World,
    /// clusterctl looks for `block-move` just before it is set: it does not wait for it.
    pub looks_too_early: bool,
}

/// The moments of a move.
#[derive(Debug, Clone, Copy)]
pub struct Moved {
    /// The cloud's last call when the source was paused.
    pub paused: u64,
    /// When the source was paused.
    pub paused_at: DateTime<Utc>,
    /// The cloud's last call when the target was unpaused.
    pub unpaused: u64,
}

/// The groups of objects in clusterctl's order: owners first.
#[derive(Debug, Clone, Copy)]
enum Group {
    Clusters,
    MachinePools,
    Bootstrap,
    Pools,
    Machines,
    AsgMachines,
}

const GROUPS: [Group; 6] = [
    Group::Clusters,
    Group::MachinePools,
    Group::Bootstrap,
    Group::Pools,
    Group::Machines,
    Group::AsgMachines,
];

impl Pair {
    /// The steps of a move between pause and unpause: each group of objects is created, then each is deleted.
    pub const STEPS: usize = 2 * GROUPS.len();

    /// Puts an empty management cluster beside one that runs.
    #[must_use]
    pub fn new(mut source: World, seed: u64) -> Self {
        let target = World::beside(&mut source, Setup::seed(seed));
        Self { source, target, looks_too_early: false }
    }

    /// Runs both until a condition holds.
    ///
    /// # Errors
    /// If it does not hold within that much virtual time, or a rule was broken.
    pub async fn run_until(
        &mut self,
        what: &str,
        within: TimeDelta,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<()> {
        let deadline = self.source.now() + within;
        let (mut second, mut actions) = (self.source.now(), 0);
        while !condition(self) {
            let now = self.source.now();
            if now >= deadline || actions > MOST_ACTIONS_PER_SECOND {
                let (source, target) = (self.source.describe(), self.target.describe());
                bail!("not within {within}: {what}\nsource {source}\ntarget {target}");
            }
            if now - second >= TimeDelta::seconds(1) {
                (second, actions) = (now, 0);
            }
            actions += 1;
            if self.source.act().await? | self.target.act().await? {
                continue;
            }
            let due = [self.source.next_due(), self.target.next_due()].into_iter().flatten().min();
            let until = due.map_or(deadline, |due| due.min(deadline));
            World::rest(&mut [&mut self.source, &mut self.target], until).await;
        }
        Ok(())
    }

    /// Runs both for a while.
    ///
    /// # Errors
    /// If a rule was broken.
    pub async fn run_for(&mut self, span: TimeDelta) -> Result<()> {
        let end = self.source.now() + span;
        self.run_until("the end of the span", span + TimeDelta::seconds(1), |pair| pair.source.now() >= end)
            .await
    }

    /// `clusterctl move` (F5, M1 to M5): looks for `block-move`, pauses, waits for what it has seen, creates on the
    /// target without status and deletions, deletes on the source, unpauses.
    ///
    /// # Errors
    /// If a rule was broken, or `block-move` stays.
    pub async fn clusterctl_move(&mut self, pool: &Pool) -> Result<Moved> {
        self.move_with(pool, |_, _| {}).await
    }

    /// The same, and something happens before each step of clusterctl while the pool is paused: what is called gets the
    /// number of the step, below [`Self::STEPS`].
    ///
    /// # Errors
    /// As [`Self::clusterctl_move`].
    pub async fn move_with(
        &mut self,
        pool: &Pool,
        mut meanwhile: impl FnMut(&mut Self, usize),
    ) -> Result<Moved> {
        let held = |world: &World| {
            world.pool(pool).is_some_and(|pool| pool.annotations().contains_key(annotations::BLOCK_MOVE))
        };
        let was_held = held(&self.source) && !self.looks_too_early;
        self.pause_for_a_moment().await?;
        self.source.edit_cluster(|cluster| cluster.spec.paused = Some(true));
        let (paused, paused_at) = (self.source.mark(), self.source.now());
        if was_held {
            self.run_until("block-move goes", TimeDelta::minutes(2), |pair| !held(&pair.source)).await?;
        }
        let (mut uids, mut steps) = (BTreeMap::new(), 0..Self::STEPS);
        for group in GROUPS {
            self.pause_for_a_moment().await?;
            meanwhile(self, steps.next().unwrap_or_default());
            create(group, &mut self.source.api.state(), &mut self.target.api.state(), &mut uids);
        }
        if !self.target.pools.contains(pool) {
            self.target.pools.push(pool.clone());
        }
        for group in GROUPS.into_iter().rev() {
            self.pause_for_a_moment().await?;
            meanwhile(self, steps.next().unwrap_or_default());
            delete(group, &mut self.source.api.state());
        }
        self.pause_for_a_moment().await?;
        let unpaused = self.target.mark();
        self.target.edit_cluster(|cluster| cluster.spec.paused = None);
        Ok(Moved { paused, paused_at, unpaused })
    }

    /// clusterctl is at work elsewhere.
    async fn pause_for_a_moment(&mut self) -> Result<()> {
        let millis = i64::try_from(self.target.random.below(BETWEEN_GROUPS))?;
        self.run_for(TimeDelta::milliseconds(millis)).await
    }
}

fn create(group: Group, from: &mut State, to: &mut State, uids: &mut BTreeMap<String, String>) {
    let ledger = &mut to.ledger;
    match group {
        Group::Clusters => copy(&from.clusters, &mut to.clusters, ledger, uids, |cluster| {
            cluster.spec.paused = Some(true);
        }),
        Group::MachinePools => {
            copy(&from.machine_pools, &mut to.machine_pools, ledger, uids, |own| own.status = None);
        }
        Group::Bootstrap => {
            copy(&from.configs, &mut to.configs, ledger, uids, |_| {});
            copy(&from.secrets, &mut to.secrets, ledger, uids, |_| {});
        }
        Group::Pools => copy(&from.pools, &mut to.pools, ledger, uids, |own| own.status = None),
        Group::Machines => copy(&from.machines, &mut to.machines, ledger, uids, |own| own.status = None),
        Group::AsgMachines => {
            copy(&from.asg_machines, &mut to.asg_machines, ledger, uids, |own| own.status = None);
        }
    }
}

/// Creates objects anew: uids are others, owners are found again, no deletion is known.
fn copy<T: Object>(
    from: &Store<T>,
    to: &mut Store<T>,
    ledger: &mut Ledger,
    uids: &mut BTreeMap<String, String>,
    edit: impl Fn(&mut T),
) {
    for (_, object) in from.all() {
        let mut new = T::clone(&object);
        edit(&mut new);
        for owner in new.owner_references_mut() {
            if let Some(uid) = uids.get(&owner.uid) {
                owner.uid.clone_from(uid);
            }
        }
        if let (Some(old), Ok(created)) = (object.uid(), to.create(ledger, new)) {
            uids.insert(old, created.uid().unwrap_or_default());
        }
    }
}

fn delete(group: Group, state: &mut State) {
    let State { ledger, clusters, machine_pools, configs, secrets, pools, machines, asg_machines, .. } =
        state;
    match group {
        Group::Clusters => remove(clusters, ledger),
        Group::MachinePools => remove(machine_pools, ledger),
        Group::Bootstrap => {
            remove(configs, ledger);
            remove(secrets, ledger);
        }
        Group::Pools => remove(pools, ledger),
        Group::Machines => remove(machines, ledger),
        Group::AsgMachines => remove(asg_machines, ledger),
    }
}

/// All annotations give way to `delete-for-move`; then the object is deleted, and its finalizers are taken off.
fn remove<T: Object>(store: &mut Store<T>, ledger: &mut Ledger) {
    for (key, _) in store.all() {
        let _ = store.update(ledger, &key, Expect::default(), |object| {
            *object.annotations_mut() =
                BTreeMap::from([(annotations::DELETE_FOR_MOVE.to_owned(), String::new())]);
        });
        let _ = store.delete(ledger, &key, Expect::default());
        let _ = store.update(ledger, &key, Expect::default(), |object| {
            object.meta_mut().finalizers = Some(Vec::new());
        });
    }
}
