//! Who looks on at a run, and what was seen so far.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use capasg_api::pool::RebalanceRecommendationPolicy;
use capasg_cloud::Clock;
use capasg_controllers::ObjectKey;
use capasg_fake_aws::{Dump, Scope, Simulator};
use chrono::{DateTime, Utc};

use super::seen::exempt::Exemptions;
use super::seen::{
    begun, budget, capacity, current, drained, ended, failing, failures, launches, lists, paused, preview,
    refreshes, stopped, token, turns,
};
use super::trace::Trace;
use crate::{ApiServer, Core, Pool, VirtualClock};

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
    pub(super) api: Arc<ApiServer>,
    pub(super) core: Arc<Core>,
    pub(super) simulator: Simulator,
    pub(super) clock: Arc<VirtualClock>,
    /// The account of pools without another, and the region of all.
    pub(super) scope: Scope,
    /// Where the groups of pools in other accounts are.
    pub(super) elsewhere: Mutex<BTreeMap<String, Scope>>,
    /// How far reads of AWS may be behind.
    pub(super) read_lag_millis: u64,
    pub(super) inner: Mutex<Inner>,
}

/// What was seen so far.
#[derive(Default)]
pub(super) struct Inner {
    pub(super) pools: Vec<Arc<Pool>>,
    pub(super) broken: Vec<Violation>,
    pub(super) trace: Trace,
    pub(super) exempt: Exemptions,
    pub(super) current: current::Seen,
    pub(super) drained: drained::Seen,
    pub(super) ended: ended::Seen,
    pub(super) failures: failures::Seen,
    pub(super) failing: failing::Seen,
    pub(super) capacity: capacity::Seen,
    pub(super) budget: budget::Seen,
    pub(super) launches: launches::Seen,
    pub(super) lists: lists::Seen,
    pub(super) paused: paused::Seen,
    pub(super) preview: preview::Seen,
    pub(super) refreshes: refreshes::Seen,
    pub(super) stopped: stopped::Seen,
    pub(super) token: token::Seen,
    /// What the reconcile that goes on knew when it began.
    pub(super) begun: begun::Begun,
    pub(super) turns: turns::Turns,
    /// Since when a pool says `Running` although fewer Machines are ready than desired, by its name.
    pub(super) short_of_nodes: BTreeMap<String, DateTime<Utc>>,
    /// Breaches of the contract that were told.
    pub(super) breaches: BTreeSet<String>,
    /// When what is available was last noted.
    pub(super) noted: DateTime<Utc>,
}

impl Inner {
    /// Whether AWS announced something of the instance of a Machine for which the pool replaces instances.
    pub(super) fn is_announced(&self, machine: &str) -> bool {
        let policy = self.begun.object.as_ref().and_then(|own| own.spec.rebalance_recommendation_policy);
        self.exempt.is_announced(machine, policy == Some(RebalanceRecommendationPolicy::Replace))
    }

    pub(super) fn breaks(&mut self, at: DateTime<Utc>, rule: &'static str, what: String) {
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
        let (elsewhere, inner) = (Mutex::default(), Mutex::default());
        Arc::new(Self { api, core, simulator, clock, scope, elsewhere, read_lag_millis, inner })
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn watch(&self, pool: &Pool) {
        self.inner().pools.push(Arc::new(pool.clone()));
    }

    /// The group of a pool is in another account.
    pub(crate) fn is_in(&self, pool: &Pool, account: &str) {
        let scope = Scope::account(account, &self.scope.region);
        self.elsewhere().insert(pool.group.clone(), scope);
    }

    fn elsewhere(&self) -> MutexGuard<'_, BTreeMap<String, Scope>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a group is.
    pub(super) fn at(&self, group: &str) -> Cow<'_, Scope> {
        self.elsewhere().get(group).cloned().map_or(Cow::Borrowed(&self.scope), Cow::Owned)
    }

    /// Where an instance is.
    pub(super) fn at_instance(&self, id: &str) -> Cow<'_, Scope> {
        let has = |scope: &&Scope| self.simulator.launched_from(scope, id).is_some();
        let found = self.elsewhere().values().find(has).cloned();
        found.map_or(Cow::Borrowed(&self.scope), Cow::Owned)
    }

    /// Every account.
    pub(super) fn scopes(&self) -> BTreeSet<Scope> {
        std::iter::once(self.scope.clone()).chain(self.elsewhere().values().cloned()).collect()
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

    /// The pool that a Machine belongs to, by its name.
    pub(super) fn pool_of_machine(inner: &Inner, machine: &ObjectKey) -> Option<Arc<Pool>> {
        let is_of = |pool: &&Arc<Pool>| {
            machine.name.strip_prefix(&pool.key.name).is_some_and(|id| id.starts_with("-i-"))
        };
        inner.pools.iter().find(is_of).cloned()
    }

    /// What the account holds in the region.
    pub(super) fn dump(&self) -> Option<Dump> {
        self.simulator.dump(Some(&self.scope.region)).into_iter().find(|dump| dump.scope == self.scope)
    }

    /// The pool of a group.
    pub(super) fn pool_of_group(inner: &Inner, group: &str) -> Option<Arc<Pool>> {
        inner.pools.iter().find(|pool| pool.group == group).cloned()
    }
}
