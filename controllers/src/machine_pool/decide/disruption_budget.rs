//! The budget: how many instances this controller may disrupt now, for all reasons together. Rollouts, remediation and
//! scale-in stay within it. A terminated instance is not limited by it.

use capasg_api::pool::Opening;
use capasg_cloud::LifecycleState;

use crate::machine_pool::decide::availability::disrupts;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, PoolInstance};

/// The budget at one point in time.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Whether a window for rollouts is open.
    pub opening: Opening,
    most: Option<usize>,
    disrupted: usize,
    draining: usize,
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
            draining: draining(input),
        }
    }

    /// How many more may be disrupted by what does not wait for a window: scale-in, which a user requests, and
    /// remediation, which replaces unhealthy instances.
    #[must_use]
    pub fn room(&self) -> usize {
        self.most.map_or(usize::MAX, |most| most.saturating_sub(self.disrupted))
    }

    /// How many may be disrupted at once by a rollout; `None` is no limit.
    #[must_use]
    pub fn most_of_rollouts(&self) -> Option<usize> {
        match self.opening {
            Opening::Open { max_disrupted: Some(most), .. } => {
                Some(self.most.map_or(non_negative(most), |all| all.min(non_negative(most))))
            }
            _ => self.most,
        }
    }

    /// How many more may be disrupted by an instance refresh when it starts. Replicas that are missing or whose Nodes
    /// have not joined do not prevent it: waiting does not help them, and the instance refresh may replace them.
    #[must_use]
    pub fn room_of_refreshes(&self) -> usize {
        if !self.opening.is_open() {
            return 0;
        }
        self.most_of_rollouts().map_or(usize::MAX, |most| most.saturating_sub(self.draining))
    }

    /// How many more may be disrupted by a rolling update: none while no window is open.
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

/// How many replicas are disrupted, for any reason: the Nodes that drain and whose instances are not terminated, or the
/// replicas that are missing or have not joined, whichever are more. Instances beyond the replicas, such as a surge,
/// compensate both.
fn disrupted(input: &Input<'_>) -> usize {
    let joined = instances::live(input.observed)
        .filter(|(_, m)| !m.is_deleting() && m.machine.as_ref().is_some_and(|machine| machine.has_node))
        .count();
    draining(input).max(non_negative(input.desired.replicas).saturating_sub(joined))
}

/// The Nodes that drain and whose instances are not terminated.
fn draining(input: &Input<'_>) -> usize {
    let all = input.observed.instances.values();
    all.filter(|m| (m.is_deleting() && disrupts(m) || is_terminated_by_aws(m)) && !needs_no_drain(m)).count()
}

/// Whether AWS terminates it: its drain starts by this decision, if it has not started yet.
fn is_terminated_by_aws(instance: &PoolInstance) -> bool {
    instance.lifecycle().is_some_and(LifecycleState::is_terminating)
        && instance.machine.as_ref().is_some_and(|machine| machine.has_node)
}

/// Whether its Node is not drained: the instance is terminated, or its Machine is excluded from draining.
fn needs_no_drain(instance: &PoolInstance) -> bool {
    instance.is_terminated() || instance.machine.as_ref().is_some_and(|machine| machine.drain_excluded)
}

fn non_negative(count: i32) -> usize {
    usize::try_from(count).unwrap_or(0)
}
