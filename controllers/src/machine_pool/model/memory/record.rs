//! The only module that changes memory: it passes each entry to the parts of memory that it concerns.

use capasg_api::pool::RolloutStatus;
use capasg_cloud::{Capacity, CloudError, Write};
use chrono::{DateTime, TimeDelta, Utc};

use crate::kubernetes::{KubeError, KubeWrite};
use crate::machine_pool::model::memory::capacity_view::CapacityView;
use crate::machine_pool::model::memory::launch_watch::PlaceNames;
use crate::machine_pool::model::memory::node_startups::NodeStartups;
use crate::machine_pool::model::memory::{Drift, PoolMemory};
use crate::machine_pool::model::read_lag::{reads_behind, unless_set_back};
use crate::machine_pool::model::retry_key::desired_key;
use crate::machine_pool::model::revision::{identity, revision};
use crate::machine_pool::model::stopped_rollout::stops;
use crate::machine_pool::model::{
    Blocker, Desired, DesiredLaunch, Known, Observation, Observed, Plan, PoolState, ReportReads, Step,
};

/// What memory records.
#[derive(Debug)]
pub enum Entry<'a> {
    /// The pool was observed.
    Observed(&'a Observation),
    /// A plan was made.
    Decided {
        /// What it was made from.
        observation: &'a Observation,
        /// The plan.
        plan: &'a Plan,
    },
    /// The facts from AWS that only report requires were read.
    Read(&'a Observation),
    /// A call to AWS is about to be made.
    Issued(&'a Write),
    /// A call to AWS was answered, or its answer was lost.
    Answered {
        /// The call.
        write: &'a Write,
        /// The answer.
        answer: Answer<'a>,
    },
    /// The API server made a change.
    Written {
        /// The write.
        write: &'a KubeWrite,
        /// The resource version of the object since then.
        resource_version: Option<&'a str>,
    },
    /// The API server did not make a change.
    NotWritten {
        /// The write.
        write: &'a KubeWrite,
        /// Why.
        error: &'a KubeError,
    },
    /// Something was reported.
    Reported(Report<'a>),
}

/// The result of a call.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// AWS made the change.
    Made {
        /// Whether it adopted the group.
        adopts: bool,
    },
    /// The change was made already.
    NothingLeft,
    /// AWS rejected it.
    Rejected {
        /// The error.
        error: &'a CloudError,
        /// Hash of all inputs that a user can edit (spec, MachinePool, ...). If it changes, rejected calls are
        /// retried at once.
        retry_key: &'a str,
    },
    /// It failed otherwise, or its answer was lost.
    Failed(&'a CloudError),
}

/// What was reported.
#[derive(Debug)]
pub enum Report<'a> {
    /// The pool's status.
    Status {
        /// The UID of the pool, if it was reported as provisioned.
        provisioned: Option<&'a String>,
        /// The rollout.
        rollout: Option<&'a RolloutStatus>,
        /// Whether a rollout is in progress.
        rolling_out: bool,
        /// The reason of `NodesReady`; `None` if the group was not read.
        nodes: Option<&'static str>,
        /// Whether replicas are managed externally.
        external: bool,
    },
    /// The pool's status was not written, or the answer was lost.
    Unanswered {
        /// Whether it says that replicas are managed externally.
        external: bool,
    },
    /// The blocker that an event is about; `None` if there is none.
    Blocker(Option<String>),
    /// The event that the group was adopted.
    Adoption,
    /// An event for corrected drift.
    Drift(Drift),
    /// Why AWS rejects to describe instance types; `None` if it does not.
    InstanceTypes(Option<String>),
    /// What happened to instances.
    Milestones,
    /// The writes of a report that the API server rejected.
    Rejected(&'a [(KubeWrite, KubeError)]),
}

impl PoolMemory {
    /// When this process first observed the pool, or when it noticed that the clock was set back since: reads may be behind
    /// what the previous leader wrote until then.
    #[must_use]
    pub fn began(&self) -> Option<DateTime<Utc>> {
        self.began
    }

    /// For how much longer reads may not show what the previous leader wrote.
    #[must_use]
    pub fn behind_previous_leader(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        self.began.and_then(|began| reads_behind(began, now))
    }

    /// When this process first observed the pool, for a test to set.
    #[cfg(test)]
    pub fn began_mut(&mut self) -> &mut Option<DateTime<Utc>> {
        &mut self.began
    }

    /// Remembers what happened at `now`.
    pub fn record(&mut self, entry: Entry<'_>, now: DateTime<Utc>) {
        match entry {
            Entry::Observed(observation) => self.observed(observation, now),
            Entry::Decided { observation, plan } => self.decided(observation, plan, now),
            Entry::Read(observation) => self.read(observation, now),
            // Before the call: the instance refresh may have ended when the answer arrives.
            Entry::Issued(Write::StartInstanceRefresh(_)) => self.refreshes.request_start(now),
            Entry::Issued(_) => {}
            Entry::Answered { write, answer } => self.answered(write, answer, now),
            Entry::Written { write, resource_version } => self.written(write, resource_version, now),
            Entry::NotWritten { write, error } => self.failed_writes.fail(write, error, now),
            Entry::Reported(report) => self.reported(report, now),
        }
    }

    fn observed(&mut self, observation: &Observation, now: DateTime<Utc>) {
        let objects = &observation.objects;
        let is_deleting = objects.is_deleting();
        self.rollout.show(objects.pool.metadata.resource_version.as_deref());
        if let PoolState::Paused(_) = observation.state {
            self.rollout.take_over(&objects.pool, now);
            // Core is paused as well: no instance could have joined.
            self.rollout.restart_wait();
            self.startups = NodeStartups::default();
        } else {
            // If the clock was set back, all that is timed from the start would wait until it is there again.
            self.began = self.began.and_then(|began| unless_set_back(began, now)).or(Some(now));
            self.drift.read(&objects.pool);
            self.startups.restore(objects.pool.status.as_ref(), objects.pool.metadata.generation);
            if observation.registered.is_some() && !is_deleting {
                let (source, key) = desired_key(objects, self);
                self.suspension.set_desired_key(&key);
                self.sources.set_desired_key(source, key);
                self.rollout.take_over(&objects.pool, now);
                self.rollout.set_aws_unreachable(observation.unreachable);
            }
        }
        if observation.unregistered {
            self.sources.unregister();
        }
        if let Some(registered) = &observation.registered {
            self.sources.register(registered.clone());
        }
        if let Some(bootstrap) = &observation.bootstrap {
            self.sources.set_bootstrap(bootstrap.clone());
            self.token_age.observe(bootstrap, now);
        }
        if let PoolState::Running(_) = observation.state {
            self.sources.set_named_image(observation.named_image.clone());
        }
        if let Some(facts) = observation.facts() {
            self.observed_facts(&facts.desired, &facts.observed, now);
        }
    }

    /// Records the facts of an observation.
    #[cfg(test)]
    pub fn observe_facts(&mut self, desired: &Desired, observed: &Observed, now: DateTime<Utc>) {
        self.observed_facts(desired, observed, now);
    }

    /// Records that the pool is paused.
    #[cfg(test)]
    pub fn observe_pause(&mut self) {
        self.rollout.restart_wait();
    }

    /// Records whether AWS is unreachable.
    #[cfg(test)]
    pub fn observe_unreachable(&mut self, unreachable: bool) {
        self.rollout.set_aws_unreachable(unreachable);
    }

    /// Records a plan.
    #[cfg(test)]
    pub fn decide(&mut self, observed: &Observed, plan: &Plan, now: DateTime<Utc>) {
        self.drift.agree(observed, plan);
        self.terminations.observe_blocker(plan.blocker.as_ref());
        if let Some(facts) = &plan.rollout_facts {
            self.rollout_progress.record(facts, now);
        }
    }

    fn observed_facts(&mut self, desired: &Desired, observed: &Observed, now: DateTime<Utc>) {
        self.unknown_versions.observe(observed, now);
        // An unknown launch template, or an unknown version that the group launches, is no change of the desired state.
        let is_known = matches!(desired.launch, DesiredLaunch::Known { .. })
            && self.unknown_versions.missing(observed, now).is_none();
        if let Some(identity) = is_known.then(|| identity(desired, observed)).flatten() {
            self.rollout.set_desired(&identity, now);
        }
        self.rollout.read_back(desired.stopped.as_ref());
        // The answer to our annotation may be lost, and a user may set it.
        let stops_now = |revision: String| {
            let stopped = desired.stopped.as_ref();
            stopped.is_some_and(|stopped| stops(stopped, &revision))
        };
        let revision = revision(desired, observed);
        self.startups.observe(observed, revision.as_ref().filter(|_| is_known), now);
        if revision.is_some_and(stops_now) {
            self.refreshes.end_rollout();
        }
        if let Some(view) = &observed.refreshes {
            self.refreshes.observe(view);
        }
        self.shortfall.observe(observed, now);
        self.surplus.observe(observed, now);
        self.zone_balance.observe(observed, now);
        self.sightings.observe(observed, now);
        self.ownership.observe(&observed.group);
        self.launch_change.observe(&observed.group, now);
        self.terminations.observe(observed, now);
        self.lifecycle_actions.observe(observed);
        self.milestones.observe(observed, &self.terminations, self.began.unwrap_or(now), now);
        if let Some(group) = observed.group.present().filter(|_| observed.group.is_settled()) {
            self.capacity.shown(group.capacity.desired, observed.group.as_of().unwrap_or(now));
        }
        self.suspension.observe(desired, observed);
        self.recent_writes.observe_retry(desired.retry.as_ref());
    }

    fn decided(&mut self, observation: &Observation, plan: &Plan, now: DateTime<Utc>) {
        let (PoolState::Running(facts) | PoolState::Unreferenced(facts) | PoolState::Deleting(facts)) =
            &observation.state
        else {
            return;
        };
        let observed = &facts.observed;
        self.drift.agree(observed, plan);
        if let Some(facts) = &plan.rollout_facts {
            self.rollout_progress.record(facts, now);
        }
        self.zone_balance.replace(plan.zone_replacement.as_ref(), observed, now);
        self.failed_calls.set_launches_previous(plan.launches_previous);
        if is_complete(observed, plan) {
            self.failed_calls.keep(plan.writes(), observed, now);
            self.recent_writes.keep(plan.writes(), now);
            self.failed_writes.keep(plan.steps().filter_map(Step::kubernetes));
        }
        self.terminations.observe_blocker(plan.blocker.as_ref());
        let is_ours = !plan.blocker.as_ref().is_some_and(Blocker::is_not_owned);
        match CapacityView::of(&observation.objects, observed).filter(|_| is_ours) {
            Some(view) => self.launches.observe(&view, observation.pool().status.as_ref(), now),
            None => self.launches.reset(now),
        }
    }

    fn read(&mut self, observation: &Observation, now: DateTime<Utc>) {
        let Some(facts) = observation.facts() else { return };
        let ReportReads { launch_activities, instance_types, termination_causes, .. } = &observation.reads;
        if let Some(read) = launch_activities {
            let zones = &observation.references.zones;
            let zones = zones.iter().map(|subnet| (subnet.id.clone(), subnet.zone.clone())).collect();
            let types = observation.pool().spec.instance_type_names();
            let names = PlaceNames { types: &types, zones: &zones };
            self.launches.record_read(read.clone(), names, now);
        }
        if let Some(read) = instance_types {
            self.instance_types.record(read.as_ref().err(), now);
        }
        let causes = termination_causes.iter().map(|(id, cause)| (id.clone(), *cause)).collect();
        self.terminations.learn(causes, &facts.observed);
        self.milestones.observe(&facts.observed, &self.terminations, self.began.unwrap_or(now), now);
    }

    fn answered(&mut self, write: &Write, answer: Answer<'_>, now: DateTime<Utc>) {
        // Also if the answer is lost, reads may be behind what was requested.
        self.capacity.requested(write, now);
        if matches!(write, Write::CancelInstanceRefresh { .. } | Write::RollbackInstanceRefresh { .. }) {
            self.refreshes.request_stop(now, !matches!(answer, Answer::NothingLeft));
        }
        match answer {
            Answer::Made { adopts } => {
                self.recent_writes.add(write, now);
                self.launch_change.accept(write, now);
                self.made(write, now);
                if adopts {
                    self.ownership.adopt(now);
                }
            }
            // The group does not have the instances: another actor may have detached them, so that they run. EC2 tells.
            Answer::NothingLeft if matches!(write, Write::TerminateInstances { .. }) => {
                self.failed_calls.clear(write);
                self.capacity.made(write, now);
            }
            Answer::NothingLeft => self.made(write, now),
            Answer::Rejected { error, retry_key } => {
                self.failed_calls.add(write, error, Some(retry_key), now);
                self.rejected(write);
            }
            Answer::Failed(error) => {
                self.failed_calls.add(write, error, None, now);
                self.launch_change.fail(write, now);
            }
        }
    }

    fn made(&mut self, write: &Write, now: DateTime<Utc>) {
        self.failed_calls.clear(write);
        self.capacity.made(write, now);
        match write {
            Write::CreateGroup(create) => {
                let Capacity { min, max, .. } = create.capacity;
                self.drift.set_bounds(min, max);
            }
            Write::UpdateGroup { change, .. } => {
                if let (Some(min), Some(max)) = (change.min, change.max) {
                    self.drift.set_bounds(min, max);
                }
                if change.launch.is_some() {
                    self.refreshes.accept_launch_change();
                }
            }
            Write::TerminateInstances { instances, .. } => self.terminations.accept(instances.iter(), now),
            Write::PutLifecycleHook { hook, .. } => {
                self.lifecycle_actions.set_heartbeat_timeout(hook.heartbeat_timeout);
            }
            Write::StartInstanceRefresh(_) => self.refreshes.accept_start(),
            Write::CompleteLifecycleAction { instance, .. } => self.lifecycle_actions.complete(instance, now),
            Write::RecordLifecycleActionHeartbeat { instance, .. } => {
                self.lifecycle_actions.extend(instance, now);
            }
            _ => {}
        }
    }

    fn rejected(&mut self, write: &Write) {
        match write {
            Write::UpdateGroup { change, .. } if change.launch.is_some() => {
                self.refreshes.reject_launch_change();
            }
            Write::StartInstanceRefresh(_) => self.refreshes.reject_start(),
            Write::RollbackInstanceRefresh { .. } => self.refreshes.reject_rollback(),
            _ => {}
        }
    }

    fn written(&mut self, write: &KubeWrite, resource_version: Option<&str>, now: DateTime<Utc>) {
        self.failed_writes.succeed(write);
        match write {
            KubeWrite::RemoveAsgMachineFinalizer { instance, .. } => self.sightings.release(instance, now),
            KubeWrite::PatchMachinePoolReplicas { replicas, .. } => self.replicas.write(*replicas, now),
            KubeWrite::AnnotateRolloutStopped { revision, .. } => {
                self.rollout.annotated(revision.as_ref(), resource_version);
                if revision.is_some() {
                    self.refreshes.end_rollout();
                }
            }
            KubeWrite::AnnotateTerminationRequested { instance, at, .. } => {
                self.terminations.annotated(instance, *at);
            }
            _ => {}
        }
    }

    fn reported(&mut self, report: Report<'_>, now: DateTime<Utc>) {
        match report {
            Report::Status { provisioned, rollout, rolling_out, nodes, external } => {
                if provisioned.is_some() {
                    self.ownership.report_provisioned(provisioned);
                }
                let stopped = |status: &RolloutStatus| status.ended_refresh_id.clone();
                let (before, after) = (self.rollout.reported().and_then(stopped), rollout.and_then(stopped));
                if before != after {
                    if let Some(id) = before.filter(|_| rollout.is_some() && after.is_none()) {
                        self.refreshes.withdraw_stop(&id);
                    }
                    self.refreshes.announce_stop(after);
                }
                if self.rollout.reported().is_some() && rollout.is_none() {
                    self.refreshes.end_rollout();
                }
                self.rollout_progress.report(self.rollout.reported(), rollout);
                self.rollout.report(rollout);
                self.published.set_rolling_out(rolling_out);
                if let Some(nodes) = nodes {
                    self.published.set_nodes(nodes);
                }
                self.replicas.report(external);
            }
            Report::Unanswered { external } => self.replicas.lose_report(external),
            Report::Blocker(blocker) => self.published.set_blocker(blocker),
            Report::Adoption => self.published.add_adoption(),
            Report::Drift(drift) => self.published.add_drift(drift, now),
            Report::InstanceTypes(message) => self.published.set_instance_types(message),
            Report::Milestones => self.milestones.report(),
            Report::Rejected(rejected) => self.failed_writes.report(rejected, now),
        }
    }
}

/// Whether the plan has all steps: a plan that is made while facts are unknown leaves steps out.
fn is_complete(observed: &Observed, plan: &Plan) -> bool {
    observed.group.is_settled() && !matches!(observed.template, Known::Unread(_)) && plan.needs.is_empty()
}
