//! What must hold at every step of every run, whatever happens: one file and one function for each rule. They look on
//! at each call, write and effect; what they find broken ends the run.

mod begun;
mod budget;
mod capacity;
mod current;
mod disruption;
mod drained;
mod ended;
mod hooked;
mod identity;
mod launches;
mod lists;
mod nodes;
mod owned;
mod paused;
mod preview;
mod refreshes;
mod reported;
mod resync;
mod schema;
mod seen;
mod state;
mod stopped;
mod token;
mod trace;
mod turns;

use capasg_api::{ASGMachinePool, capi::MachinePool};
use capasg_cloud::Clock;
use capasg_controllers::kubernetes::{DeletionReason, KubeWrite};
use capasg_fake_aws::What;
use chrono::{DateTime, TimeDelta, Utc};
pub(crate) use disruption::is_attached;
pub use schema::exceeded_limits;
pub(crate) use seen::{exempt::Exemptions, limits::within_limits};
use state::Inner;
pub use state::{Invariants, Violation};
pub use trace::{Line, Trace};

use crate::journal::Moment;

impl Invariants {
    /// What happened in the cloud since the last look, one by one and before anything else goes on.
    pub(crate) fn look_at_cloud(&self) {
        let feed: Vec<_> = self.scopes().iter().flat_map(|scope| self.simulator.take_feed(scope)).collect();
        let mut inner = self.inner();
        // What a call brings about is told before the call itself.
        for happening in &feed {
            if let What::Changed(change) = &happening.what {
                self.drained_notes(&mut inner, change, happening.at);
                self.note_choice_of_others(&mut inner, change, happening.at);
            }
        }
        self.note_pins(&mut inner);
        if feed.is_empty() {
            return;
        }
        let turn = inner.turn();
        for happening in &feed {
            trace::cloud(&mut inner.trace, happening);
            inner.turn_to_group_of(&happening.what);
            match &happening.what {
                What::Changed(change) => {
                    self.desired_never_falls_below_the_wish(&mut inner, happening.at, change);
                    self.note_refresh(&mut inner, change);
                }
                What::Ending { id, group, cause } => {
                    self.the_group_never_picks(&mut inner, happening.at, (group, id), cause);
                    inner.ended.ending.insert(id.clone());
                    inner.budget.terminates(id, happening.at);
                }
                What::ShutDown(end) => {
                    self.nothing_ends_undrained(&mut inner, happening.at, end);
                    inner.budget.shut_down(&end.id, happening.at);
                }
                What::Launched { id } => {
                    inner.capacity.launched.insert(id.clone(), happening.at);
                    self.note_surplus(&mut inner, id);
                }
                What::InService { id } => {
                    inner.capacity.served.insert(id.clone());
                }
                _ => {}
            }
        }
        if let Some(pool) = turn {
            inner.turn_to(&pool);
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
        // An answer follows the call, at which the rules looked.
        if !matches!(moment, Moment::Answered { .. }) {
            self.look_at_cloud();
        }
        let now = self.clock.now();
        match moment {
            Moment::Call => {}
            Moment::Answered { api, failure } => {
                self.a_lasting_failure_is_reported(&mut self.inner(), api, failure);
            }
            Moment::Sent { write } => self.note_sent(&mut self.inner(), now, write),
            Moment::Failed { api, is_rejected, is_of_spec } => {
                let mut inner = self.inner();
                if !is_of_spec {
                    inner.failures.failed(api, is_rejected, now);
                }
                inner.ended.failed = (api == "TerminateInstanceInAutoScalingGroup").then_some(is_rejected);
            }
            Moment::Kubernetes { write, changed } => {
                let mut inner = self.inner();
                trace::kubernetes(&mut inner.trace, now, write, changed);
                Self::a_paused_pool_is_left_alone(&mut inner, now, write);
                Self::note_reported_failures(&mut inner, write);
                if changed {
                    self.judge(&mut inner, now, write);
                }
            }
            Moment::Cloud { write } => {
                let mut inner = self.inner();
                let turn = inner.turn();
                inner.turn_to_pool_of(write.group());
                Self::a_paused_cloud_is_left_alone(&mut inner, now, write);
                self.note_sent(&mut inner, now, write);
                self.note_version(&mut inner, write);
                self.note_end(&mut inner, write);
                Self::note_terminations(&mut inner, now, write);
                self.a_termination_waits_for_the_pause(&mut inner, now, write);
                Self::a_preview_changes_nothing(&mut inner, now, write);
                self.judge_start(&mut inner, now, write);
                Self::orphans_are_left_alone(&mut inner, now, write);
                self.what_is_changed_is_ours(&mut inner, now, write);
                if let Some(pool) = turn {
                    inner.turn_to(&pool);
                }
            }
        }
    }

    /// A write that went through.
    fn judge(&self, inner: &mut Inner, now: DateTime<Utc>, write: &KubeWrite) {
        if let KubeWrite::CreateAsgMachine(machine) = write {
            inner.lists.claimed(&machine.spec.instance_id);
            self.no_second_machine(inner, machine);
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
                    self.what_is_up_to_date_stays(inner, now, machine);
                    self.held_rollouts_begin_nothing(inner, now, machine);
                    Self::a_stopped_rollout_stays_stopped(inner, now, machine);
                    self.nothing_is_replaced_beside_a_refresh(inner, now, machine);
                    self.the_shielded_go_last(inner, now, machine, *why);
                    self.disruptions_keep_to_the_most(inner, now, machine, *why);
                }
                DeletionReason::Unhealthy => {
                    self.disruptions_keep_to_the_most(inner, now, machine, *why);
                }
                DeletionReason::Terminated => self.what_runs_is_not_terminated(inner, now, machine),
                DeletionReason::PoolDeleted => {}
            }
            inner.budget.deleted(machine, now);
        }
        self.running_is_reported_with_ready_nodes(inner, now, write);
        Self::a_status_fits_its_schema(inner, now, write);
        Self::note_marks(inner, now, write);
        self.note_stops(inner, write);
        self.note_refreshes(inner, write);
    }

    /// A write of a process that died lands.
    pub(crate) fn landed(&self, write: &KubeWrite) {
        let mut inner = self.inner();
        trace::kubernetes(&mut inner.trace, self.clock.now(), write, true);
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
            let limit = |object: &ASGMachinePool, owner: &MachinePool| {
                let limit = object.spec.drain(owner.node_drain_timeout_seconds()).timeout_seconds;
                TimeDelta::seconds(i64::from(limit))
            };
            if let Some((owner, object)) = shown {
                inner.exempt.shown(&pool.key.name, within_limits(&object, &owner), now);
                inner.paused.limit(&pool.key.name, limit(&object, &owner), now);
            }
            if let (Some(owner), Some(object)) = (owner, object) {
                inner.exempt.wished(&pool.key.name, within_limits(&object, &owner), now);
                inner.paused.limit(&pool.key.name, limit(&object, &owner), now);
            }
        }
        if now - inner.noted >= TimeDelta::seconds(1) {
            inner.noted = now;
            self.note_available(inner, now);
            self.note_hooks(inner, now);
            self.the_drained_end(inner, now);
            self.what_runs_has_ready_nodes(inner, now);
            self.failed_launches_are_reported(inner, now);
            self.the_launch_template_has_the_token(inner, now);
        }
    }
}
