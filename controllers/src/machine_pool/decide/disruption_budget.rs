//! The budget: how many instances may be disrupted now for reasons of ours, all of them together. Whoever takes a working
//! instance away stays within it: rollouts, remediation, scale-in. What is dead already never does.

use capasg_api::pool::Opening;
use capasg_cloud::LifecycleState;

use crate::machine_pool::decide::availability::disrupts;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, PoolInstance};

/// The budget at a moment.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Whether a window for rollouts is open.
    pub opening: Opening,
    most: Option<usize>,
    disrupted: usize,
    leaving: usize,
}

impl Budget {
    /// The budget of a pool as it is now.
    #[must_use]
    pub fn of(input: &Input<'_>) -> Self {
        let disruption = &input.desired.disruption;
        Self {
            opening: disruption.opening(input.now),
            most: disruption.max_disrupted.map(non_negative),
            disrupted: disrupted(input),
            leaving: leaving(input),
        }
    }

    /// How many more may be disrupted by what does not wait for windows: scale-in, which a user requests, and
    /// remediation, which takes away what works badly.
    #[must_use]
    pub fn room(&self) -> usize {
        self.most.map_or(usize::MAX, |most| most.saturating_sub(self.disrupted))
    }

    /// How many may be disrupted at once by a rollout, whoever else disrupts any; `None` is no limit.
    #[must_use]
    pub fn most_of_rollouts(&self) -> Option<usize> {
        match self.opening {
            Opening::Open { max_disrupted: Some(most), .. } => {
                Some(self.most.map_or(non_negative(most), |all| all.min(non_negative(most))))
            }
            _ => self.most,
        }
    }

    /// How many more may be disrupted by an instance refresh when it starts. Replicas that are missing or whose nodes have
    /// not joined do not keep it from starting: by waiting they get no better, and it may be what replaces them.
    #[must_use]
    pub fn room_of_refreshes(&self) -> usize {
        if !self.opening.is_open() {
            return 0;
        }
        self.most_of_rollouts().map_or(usize::MAX, |most| most.saturating_sub(self.leaving))
    }

    /// How many more may be disrupted by a rollout, whoever carries it out: none while no window is open.
    #[must_use]
    pub fn room_of_rollouts(&self) -> usize {
        match self.opening {
            Opening::Closed { .. } => 0,
            Opening::Always | Opening::Open { max_disrupted: None, .. } => self.room(),
            Opening::Open { max_disrupted: Some(most), .. } => {
                self.room().min(non_negative(most).saturating_sub(self.disrupted))
            }
        }
    }
}

/// How many are disrupted, by whomever: nodes that drain and whose instances are not terminated, or replicas that are
/// missing or have not joined, whichever are more. Instances beyond the replicas, as those of a surge, make up for both.
fn disrupted(input: &Input<'_>) -> usize {
    let joined = instances::live(input.observed)
        .filter(|(_, m)| !m.is_deleting() && m.machine.as_ref().is_some_and(|machine| machine.has_node))
        .count();
    leaving(input).max(non_negative(input.desired.replicas).saturating_sub(joined))
}

/// Nodes that drain and whose instances are not terminated.
fn leaving(input: &Input<'_>) -> usize {
    let all = input.observed.instances.values();
    all.filter(|m| (m.is_deleting() && disrupts(m) || is_terminated_by_aws(m)) && !needs_no_drain(m)).count()
}

/// AWS takes it, now or within minutes: its drain begins by this very decision, if it did not yet.
fn is_terminated_by_aws(instance: &PoolInstance) -> bool {
    let terminates = instance.lifecycle().is_some_and(LifecycleState::is_terminating);
    (terminates || instance.is_interrupted())
        && instance.machine.as_ref().is_some_and(|machine| machine.has_node)
}

/// Nothing of it is drained.
fn needs_no_drain(instance: &PoolInstance) -> bool {
    instance.is_terminated() || instance.machine.as_ref().is_some_and(|machine| machine.drain_excluded)
}

fn non_negative(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}
