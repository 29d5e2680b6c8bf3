//! What one decider returns: steps of one phase, and the facts that it requires.

use capasg_cloud::Write;
use chrono::TimeDelta;

use crate::machine_pool::model::plan::blocker::Blocker;
use crate::machine_pool::model::plan::needs::Needs;
use crate::machine_pool::model::plan::step::Step;

/// A part of a plan. Its steps belong to one phase, which the caller names ([`Plan::add`]).
///
/// [`Plan::add`]: crate::machine_pool::model::Plan::add
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Facts without which there is no decision.
    pub needs: Needs,
    /// When to requeue the pool although nothing wakes it.
    pub requeue_after: Option<TimeDelta>,
    /// Whether the group is changing, so that it joins the faster poll.
    pub in_transition: bool,
    /// What prevents the group from being created or changed.
    pub blocker: Option<Blocker>,
}

impl Part {
    /// A part with one step.
    #[must_use]
    pub fn of(step: impl Into<Step>) -> Self {
        Self { steps: vec![step.into()], ..Self::default() }
    }

    /// A part with these steps.
    #[must_use]
    pub fn of_all<S: Into<Step>>(steps: impl IntoIterator<Item = S>) -> Self {
        Self { steps: steps.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// A part that only requeues.
    #[must_use]
    pub fn requeue(delay: TimeDelta) -> Self {
        Self { requeue_after: Some(delay), ..Self::default() }
    }

    /// A part without steps, which requires these facts.
    #[must_use]
    pub fn needing(needs: Needs) -> Self {
        Self { needs, ..Self::default() }
    }

    /// A part without steps, which requires a read of the group alone.
    #[must_use]
    pub fn needing_group() -> Self {
        Self::needing(Needs { fresh_group: true, ..Needs::default() })
    }

    /// Adds a step.
    pub fn push(&mut self, step: impl Into<Step>) {
        self.steps.push(step.into());
    }

    /// Requeues the pool after `delay` at the latest.
    pub fn requeue_within(&mut self, delay: TimeDelta) {
        self.requeue_after = sooner(self.requeue_after, Some(delay));
    }

    /// Adds another part of the same phase. Of two blockers the first counts.
    pub fn merge(&mut self, other: Self) {
        let Self { steps, needs, requeue_after, in_transition, blocker } = other;
        self.steps.extend(steps);
        self.needs.merge(needs);
        self.requeue_after = sooner(self.requeue_after, requeue_after);
        self.in_transition |= in_transition;
        self.blocker = self.blocker.take().or(blocker);
    }

    /// Whether one of the steps terminates instances.
    #[must_use]
    pub fn terminates_instances(&self) -> bool {
        self.writes().any(|write| matches!(write, Write::TerminateInstances { .. }))
    }

    /// The bounds that one of the steps sets: `MinSize` and `MaxSize`.
    #[must_use]
    pub fn bounds(&self) -> Option<(i32, i32)> {
        self.writes().find_map(|write| match write {
            Write::UpdateGroup { change, .. } => change.min.zip(change.max),
            _ => None,
        })
    }

    /// The writes to AWS.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.steps.iter().filter_map(Step::cloud)
    }
}

/// The sooner of two delays.
pub(super) fn sooner(one: Option<TimeDelta>, other: Option<TimeDelta>) -> Option<TimeDelta> {
    one.into_iter().chain(other).min()
}
