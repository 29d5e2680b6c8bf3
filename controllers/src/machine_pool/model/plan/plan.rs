//! A plan: what to do now, in order.

use std::collections::BTreeMap;

use capasg_api::pool::{PendingChange, RolloutStatus};
use capasg_cloud::Write;
use chrono::TimeDelta;

use crate::machine_pool::model::outdated::Outdated;
use crate::machine_pool::model::plan::blocker::Blocker;
use crate::machine_pool::model::plan::deletion_phase::DeletionPhase;
use crate::machine_pool::model::plan::difference::{Comparison, Difference};
use crate::machine_pool::model::plan::needs::Needs;
use crate::machine_pool::model::plan::part::{Part, sooner};
use crate::machine_pool::model::plan::phase::Phase;
use crate::machine_pool::model::plan::rollout_phase::RolloutPhase;
use crate::machine_pool::model::plan::step::Step;

/// What to do now.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// In the order of [`Phase::ORDER`].
    steps: Vec<(Phase, Step)>,
    /// Facts that decide needs before it can go on.
    pub needs: Needs,
    /// When to requeue the pool although nothing wakes it.
    pub requeue_after: Option<TimeDelta>,
    /// Whether the group is changing, so that it joins the faster poll.
    pub in_transition: bool,
    /// What prevents the pool from being made or changed.
    pub blocker: Option<Blocker>,
    /// The number of instances to aim at, once there is a group of ours.
    pub target: Option<i32>,
    /// The outdated instances; none while a pool is deleted.
    pub outdated: Outdated,
    /// Where a rollout stands; `None` if there is nothing to replace.
    pub rollout: Option<RolloutPhase>,
    /// What `status.rollout` reports.
    pub rollout_status: Option<RolloutStatus>,
    /// Whether the MachinePool sizes the group again: what the group has was read for this, and the MachinePool has it.
    pub handed_back: bool,
    /// Whether the rollout was decided about; else what was reported of it stays.
    pub follows_rollout: bool,
    /// The phase of a deletion.
    pub deletion: Option<DeletionPhase>,
    /// What would change if it were not only shown; `None` while that is not known.
    pub pending: Option<Vec<PendingChange>>,
    /// What is not as desired.
    pub differences: Vec<Difference>,
    /// What is as desired: the value by path.
    pub agreed: BTreeMap<String, String>,
}

impl Plan {
    /// A plan by which the instances are outdated.
    #[must_use]
    pub fn with_outdated(outdated: Outdated) -> Self {
        Self { outdated, ..Self::default() }
    }

    /// A plan for a pool whose deletion has come to this phase.
    #[must_use]
    pub fn of_deletion(phase: DeletionPhase) -> Self {
        Self { deletion: Some(phase), ..Self::default() }
    }

    /// Adds a part, whose steps belong to `phase`.
    pub fn add(&mut self, phase: Phase, part: Part) {
        let Part { steps, needs, requeue_after, in_transition, blocker } = part;
        self.steps.extend(steps.into_iter().map(|step| (phase, step)));
        // Stable: within a phase steps stay as they were added.
        self.steps.sort_by_key(|(phase, _)| phase.position());
        self.needs.merge(needs);
        self.requeue_after = sooner(self.requeue_after, requeue_after);
        self.in_transition |= in_transition;
        self.blocker = self.blocker.take().or(blocker);
    }

    /// Adds what a group held against its desired state came to.
    pub fn compare(&mut self, comparison: Comparison) {
        self.differences.extend(comparison.differences);
        self.agreed.extend(comparison.agreed);
    }

    /// The steps in the order in which they are carried out.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().map(|(_, step)| step)
    }

    /// The steps of one phase.
    pub fn of(&self, phase: Phase) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |(of, _)| *of == phase).map(|(_, step)| step)
    }

    /// The changes in the cloud, in order.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.steps().filter_map(Step::cloud)
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether nothing is left of a pool that is deleted.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.deletion == Some(DeletionPhase::Done) && self.steps.is_empty()
    }

    /// Whether the plan adds or removes our finalizer: nothing else is done then, and nothing reported.
    #[must_use]
    pub fn changes_finalizer(&self) -> bool {
        self.of(Phase::Claim).chain(self.of(Phase::Release)).next().is_some()
    }

    /// Whether one of the steps terminates instances.
    #[must_use]
    pub fn terminates_instances(&self) -> bool {
        self.writes().any(|write| matches!(write, Write::TerminateInstances { .. }))
    }

    /// Whether one of the steps changes the group's bounds.
    #[must_use]
    pub fn sets_bounds(&self) -> bool {
        self.writes().any(|write| match write {
            Write::UpdateGroup { change, .. } => change.min.is_some() || change.max.is_some(),
            _ => false,
        })
    }

    /// What another actor changed.
    pub fn drift(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.outside)
    }

    /// Whether a write makes a group ours that was not.
    #[must_use]
    pub fn adopts(&self, write: &Write) -> bool {
        self.blocker == Some(Blocker::Adopting) && matches!(write, Write::TagGroup { .. })
    }

    /// What would change if it were not only shown, as text; `None` if nothing does, or it is not known.
    #[must_use]
    pub fn pending_text(&self) -> Option<String> {
        let pending = self.pending.as_ref().filter(|pending| !pending.is_empty())?;
        let one = |change: &PendingChange| format!("{} {} -> {}", change.path, change.from, change.to);
        Some(pending.iter().map(one).collect::<Vec<_>>().join("; "))
    }

    /// Requeues the pool after `delay` at the latest.
    pub fn requeue_within(&mut self, delay: TimeDelta) {
        self.requeue_after = sooner(self.requeue_after, Some(delay));
    }
}
