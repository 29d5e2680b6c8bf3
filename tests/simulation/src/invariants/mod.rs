//! What must hold at every step of every run, whatever happens: one file and one function for each rule. They look on
//! at each call, write and effect; what they find broken ends the run.

mod begun;
mod budget;
mod capacity;
mod disruption;
mod drained;
mod exempt;
mod identity;
mod lists;
mod paused;
mod preview;
mod refreshes;
mod stopped;
mod trace;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capasg_api::{ASGMachinePool, capi::MachinePool};
use capasg_cloud::Clock;
use capasg_controllers::{
    ObjectKey,
    kubernetes::{DeletionReason, KubeWrite},
};
use capasg_fake_aws::{Scope, Simulator, What};
use chrono::{DateTime, TimeDelta, Utc};
pub(crate) use exempt::Exemptions;
pub use trace::{Line, Trace};

use crate::{ApiServer, Core, Pool, VirtualClock, journal::Moment};

/// For how long after a change of replicas an older wish may still be acted on: a decision that was made is carried out.
/// It begins when the caches show the change: a watch that stalls for minutes (`Act::Freeze`) keeps the older wish.
const GRACE: TimeDelta = TimeDelta::seconds(10);
/// What nobody tells of is seen by a poll, at most a minute later.
const UNSEEN: TimeDelta = TimeDelta::seconds(90);

/// The replicas that are asked for, within the limits of the spec.
pub(crate) fn within_limits(pool: &ASGMachinePool, owner: &MachinePool) -> i32 {
    let limits = pool.spec.limits(Some(owner));
    limits.max.map_or(owner.replicas(), |max| owner.replicas().min(max)).max(limits.min)
}

/// A rule that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: DateTime<Utc>,
    /// The rule: the name of its function.
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
}

/// Looks on at a run.
pub struct Invariants {
    api: Arc<ApiServer>,
    core: Arc<Core>,
    simulator: Simulator,
    clock: Arc<VirtualClock>,
    scope: Scope,
    /// How far reads of AWS may be behind.
    read_lag_millis: u64,
    inner: Mutex<Inner>,
}

/// What was seen so far.
#[derive(Default)]
struct Inner {
    pools: Vec<Pool>,
    broken: Vec<Violation>,
    trace: Trace,
    exempt: Exemptions,
    drained: drained::Seen,
    capacity: capacity::Seen,
    budget: budget::Seen,
    lists: lists::Seen,
    paused: paused::Seen,
    preview: preview::Seen,
    refreshes: refreshes::Seen,
    stopped: stopped::Seen,
    begun: begun::Begun,
    /// Breaches of the contract that were told.
    breaches: BTreeSet<String>,
    /// When what is available was last noted.
    noted: DateTime<Utc>,
}

impl Inner {
    fn breaks(&mut self, at: DateTime<Utc>, rule: &'static str, what: String) {
        self.trace.add(at, "RULE", || format!("{rule}: {what}"));
        self.broken.push(Violation { at, rule, what });
    }
}

impl Invariants {
    pub(crate) fn new(
        api: Arc<ApiServer>,
        core: Arc<Core>,
        simulator: Simulator,
        clock: Arc<VirtualClock>,
        scope: Scope,
    ) -> Arc<Self> {
        let read_lag_millis = simulator.settings(Some(&scope)).read_lag_millis;
        Arc::new(Self { api, core, simulator, clock, scope, read_lag_millis, inner: Mutex::default() })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn watch(&self, pool: &Pool) {
        self.inner().pools.push(pool.clone());
    }

    /// Records what happens, line by line.
    pub fn record(&self) {
        self.inner().trace.begin();
    }

    /// What was recorded.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.inner().trace.clone()
    }

    /// Adds a line of somebody else's.
    pub fn note(&self, actor: &'static str, what: impl FnOnce() -> String) {
        self.inner().trace.add(self.clock.now(), actor, what);
    }

    /// The rules that were broken so far.
    #[must_use]
    pub fn broken(&self) -> Vec<Violation> {
        self.inner().broken.clone()
    }

    /// Takes note of what excuses what would otherwise break a rule.
    pub(crate) fn exempt(&self, note: impl FnOnce(&mut Exemptions, DateTime<Utc>)) {
        note(&mut self.inner().exempt, self.clock.now());
    }

    /// What happened in the cloud since the last look, one by one and before anything else goes on.
    pub(crate) fn look_at_cloud(&self) {
        let feed = self.simulator.take_feed(&self.scope);
        if feed.is_empty() {
            return;
        }
        let mut inner = self.inner();
        // What a call brings about is told before the call itself.
        for happening in &feed {
            if let What::Changed(change) = &happening.what {
                Self::drained_notes(&mut inner, change);
            }
        }
        for happening in &feed {
            trace::cloud(&mut inner.trace, happening);
            match &happening.what {
                What::Changed(change) => {
                    self.desired_never_falls_below_the_wish(&mut inner, happening.at, change);
                    self.note_refresh(&mut inner, change);
                }
                What::Ending { id, group, cause } => {
                    self.the_group_never_picks(&mut inner, happening.at, (group, id), cause);
                    inner.budget.lost(id, happening.at);
                }
                What::ShutDown(end) => {
                    self.nothing_ends_undrained(&mut inner, happening.at, end);
                    inner.budget.lost(&end.id, happening.at);
                }
                What::Launched { id } => {
                    inner.capacity.launched.insert(id.clone(), happening.at);
                }
                What::InService { id } => {
                    inner.capacity.served.insert(id.clone());
                }
                _ => {}
            }
        }
        self.no_second_group_or_template(&mut inner);
    }

    /// Notes what was wished up to now, before somebody changes it.
    pub(crate) fn see(&self) {
        self.note_wishes(&mut self.inner());
    }

    /// Looks at everything after an action of anybody.
    pub(crate) fn look(&self) {
        self.look_at_cloud();
        let mut inner = self.inner();
        self.list_keeps_the_living(&mut inner);
        self.note_pauses(&mut inner);
        self.note_wishes(&mut inner);
        self.trace_refreshes(&mut inner);
        let core = self.core.state();
        trace::core(&mut inner.trace, &core.drained, self.clock.now());
        if let Some(breach) = core.breaches.iter().find(|breach| !inner.breaches.contains(*breach)).cloned() {
            inner.breaches.insert(breach.clone());
            inner.breaks(self.clock.now(), "core_meets_no_breach_of_the_contract", breach);
        }
    }

    pub(crate) fn on(&self, moment: Moment<'_>) {
        self.look_at_cloud();
        let now = self.clock.now();
        match moment {
            Moment::Call => {}
            Moment::Kubernetes { write, changed } => {
                let mut inner = self.inner();
                trace::kubernetes(&mut inner.trace, now, write, changed);
                Self::a_paused_pool_is_left_alone(&mut inner, now, write);
                if changed {
                    self.judge(&mut inner, now, write);
                }
            }
            Moment::Cloud { write } => {
                let mut inner = self.inner();
                Self::a_paused_cloud_is_left_alone(&mut inner, now, write);
                self.note_sent(&mut inner, now, write);
                self.note_end(&mut inner, write);
                Self::a_preview_changes_nothing(&mut inner, now, write);
                self.judge_start(&mut inner, now, write);
                Self::orphans_are_left_alone(&mut inner, now, write);
            }
        }
    }

    /// A write that went through.
    fn judge(&self, inner: &mut Inner, now: DateTime<Utc>, write: &KubeWrite) {
        if let KubeWrite::CreateAsgMachine(machine) = write {
            inner.lists.claimed(&machine.spec.instance_id);
        }
        if let KubeWrite::DeleteMachine { machine, reason: why, .. } = write {
            match why {
                DeletionReason::ScaleIn => {
                    self.scale_in_takes_no_more_than_too_many(inner, now, machine);
                    self.a_held_surge_is_kept(inner, now, machine);
                    self.the_shielded_go_last(inner, now, machine, *why);
                    self.disruptions_keep_to_the_most(inner, now, machine, *why);
                }
                DeletionReason::Outdated => {
                    self.rollouts_keep_the_budget(inner, now, machine);
                    self.held_rollouts_begin_nothing(inner, now, machine);
                    Self::a_stopped_rollout_stays_stopped(inner, now, machine);
                    self.nothing_is_replaced_beside_a_refresh(inner, now, machine);
                    self.the_shielded_go_last(inner, now, machine, *why);
                    self.disruptions_keep_to_the_most(inner, now, machine, *why);
                }
                DeletionReason::Unhealthy => {
                    self.disruptions_keep_to_the_most(inner, now, machine, *why);
                }
                DeletionReason::Terminated | DeletionReason::PoolDeleted => {}
            }
            inner.budget.deleted(machine, now);
        }
        self.note_stops(inner, write);
        Self::note_refreshes(inner, write);
    }

    /// A write of a process that died lands.
    pub(crate) fn landed(&self, write: &KubeWrite) {
        let mut inner = self.inner();
        trace::kubernetes(&mut inner.trace, self.clock.now(), write, true);
    }

    /// The pool that a Machine belongs to, by its name.
    fn pool_of_machine(inner: &Inner, machine: &ObjectKey) -> Option<Pool> {
        inner.pools.iter().find(|pool| machine.name.starts_with(&format!("{}-i-", pool.key.name))).cloned()
    }

    /// The pool of a group.
    fn pool_of_group(inner: &Inner, group: &str) -> Option<Pool> {
        inner.pools.iter().find(|pool| pool.group == group).cloned()
    }

    /// Keeps what was wished, so that decisions that were made before a change are judged by what they knew.
    fn note_wishes(&self, inner: &mut Inner) {
        let now = self.clock.now();
        for pool in inner.pools.clone() {
            let (owner, object, shown) = {
                let api = self.api.state();
                let shown = api.machine_pools.cached(&pool.machine_pool).zip(api.pools.cached(&pool.key));
                (api.machine_pools.get(&pool.machine_pool), api.pools.get(&pool.key), shown)
            };
            if let Some((owner, object)) = shown {
                inner.exempt.shown(&pool.key.name, within_limits(&object, &owner), now);
            }
            if let (Some(owner), Some(object)) = (owner, object) {
                inner.exempt.wished(&pool.key.name, within_limits(&object, &owner), now);
                let limit = object.spec.drain(owner.node_drain_timeout_seconds()).timeout_seconds;
                inner.paused.limit(&pool.key.name, TimeDelta::seconds(i64::from(limit)), now);
            }
        }
        if now - inner.noted >= TimeDelta::seconds(1) {
            inner.noted = now;
            self.note_available(inner, now);
        }
    }
}
