//! A plan: the steps of a reconcile in order, and what report needs.

use std::collections::BTreeMap;

use capasg_api::pool::{PendingChange, RolloutStatus};
use capasg_cloud::Write;
use chrono::TimeDelta;

use crate::machine_pool::model::memory::rollout_progress::RolloutFacts;
use crate::machine_pool::model::outdated::Outdated;
use crate::machine_pool::model::plan::blocker::Blocker;
use crate::machine_pool::model::plan::deletion_phase::DeletionPhase;
use crate::machine_pool::model::plan::difference::{Comparison, Difference};
use crate::machine_pool::model::plan::needs::Needs;
use crate::machine_pool::model::plan::part::{Part, sooner};
use crate::machine_pool::model::plan::phase::Phase;
use crate::machine_pool::model::plan::rollout_phase::RolloutPhase;
use crate::machine_pool::model::plan::step::Step;

/// The steps of a reconcile.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub struct Plan {
    /// In the order of [`Phase::ORDER`].
    steps: Vec<(Phase, Step)>,
    /// Facts that decide requires.
    pub needs: Needs,
    /// When to requeue the pool although nothing wakes it.
    pub requeue_after: Option<TimeDelta>,
    /// Whether the group is changing, so that it joins the faster poll.
    pub in_transition: bool,
    /// What prevents the group from being created or changed.
    pub blocker: Option<Blocker>,
    /// Whether it brings the previous content of the launch template to the group, since AWS rejects that of the spec.
    pub launches_previous: bool,
    /// The target number of instances, once the pool owns a group.
    pub target: Option<i32>,
    /// The outdated instances; none while a pool is deleted.
    pub outdated: Outdated,
    /// The instance that is replaced to restore the balance of the zones.
    pub zone_replacement: Option<String>,
    /// The phase of the rollout; `None` if there is nothing to replace.
    pub rollout: Option<RolloutPhase>,
    /// What `status.rollout` reports.
    pub rollout_status: Option<RolloutStatus>,
    /// What memory records of the rollout's progress.
    pub rollout_facts: Option<RolloutFacts>,
    /// Whether the hand-over back to the MachinePool is complete: its replicas equal the desired capacity, read for
    /// this decision.
    pub handed_back: bool,
    /// Whether this plan includes a decision about the rollout. If not, `status.rollout` stays unchanged.
    pub follows_rollout: bool,
    /// The phase of a deletion.
    pub deletion: Option<DeletionPhase>,
    /// The changes that a preview shows; `None` while they are unknown.
    pub pending: Option<Vec<PendingChange>>,
    /// Attributes that are not as desired.
    pub differences: Vec<Difference>,
    /// Attributes that are as desired: value by path.
    pub agreed: BTreeMap<String, String>,
    /// Differences from the spec that changePolicy `Preview` does not correct.
    pub previewed: Vec<Difference>,
}

impl Plan {
    /// A plan with these outdated instances.
    #[must_use]
    pub fn with_outdated(outdated: Outdated) -> Self {
        Self { outdated, ..Self::default() }
    }

    /// A plan for a pool whose deletion is in this phase.
    #[must_use]
    pub fn of_deletion(phase: DeletionPhase) -> Self {
        Self { deletion: Some(phase), ..Self::default() }
    }

    /// Adds a part, whose steps belong to `phase`.
    pub fn add(&mut self, phase: Phase, part: Part) {
        let Part { steps, needs, requeue_after, in_transition, blocker } = part;
        self.steps.extend(steps.into_iter().map(|step| (phase, step)));
        // The sort is stable: within a phase steps keep their order.
        self.steps.sort_by_key(|(phase, _)| phase.position());
        self.needs.merge(needs);
        self.requeue_after = sooner(self.requeue_after, requeue_after);
        self.in_transition |= in_transition;
        self.blocker = self.blocker.take().or(blocker);
    }

    /// Adds the result of comparing the group with its desired state.
    pub fn compare(&mut self, comparison: Comparison) {
        self.differences.extend(comparison.differences);
        self.agreed.extend(comparison.agreed);
    }

    /// Adds the result of comparing the group with the spec, while a preview holds the differences.
    pub fn preview(&mut self, comparison: Comparison) {
        for difference in &comparison.differences {
            // The desired state of a preview has the values that AWS has.
            self.agreed.remove(&difference.path);
        }
        self.agreed.extend(comparison.agreed);
        self.previewed = comparison.differences;
    }

    /// The steps in the order in which they are carried out.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().map(|(_, step)| step)
    }

    /// The steps of one phase.
    pub fn of(&self, phase: Phase) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |(of, _)| *of == phase).map(|(_, step)| step)
    }

    /// The writes to AWS, in order.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.steps().filter_map(Step::cloud)
    }

    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether the deletion is complete, except for our finalizer.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.deletion == Some(DeletionPhase::Done) && self.steps.is_empty()
    }

    /// Whether the plan adds or removes our finalizer: then nothing else is done or reported.
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
        self.differences.iter().filter(|difference| difference.is_drift)
    }

    /// Whether this write adopts the group.
    #[must_use]
    pub fn adopts(&self, write: &Write) -> bool {
        self.blocker == Some(Blocker::Adopting) && matches!(write, Write::TagGroup { .. })
    }

    /// The changes that a preview shows, as text; `None` if there are none, or they are unknown.
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
