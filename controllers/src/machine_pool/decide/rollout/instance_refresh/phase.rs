//! The phase of a rollout by instance refresh, for conditions and `status.rollout`.

use capasg_api::pool::{OnRefreshFailure, Opening, RolloutType};
use capasg_cloud::{InstanceRefresh, LifecycleState, RefreshStatus};

use crate::machine_pool::decide::rollout::instance_refresh::refresh::Refresh;
use crate::machine_pool::decide::rollout::instance_refresh::state::{State, StopReason};
use crate::machine_pool::decide::rollout::stopped;
use crate::machine_pool::model::{Input, Outdated, RolloutPhase};

/// The phase of the rollout; `None` if it is not by instance refresh.
#[must_use]
pub fn phase(input: &Input<'_>, refresh: &Refresh<'_>, outdated: &Outdated) -> Option<RolloutPhase> {
    let draining = draining(input, outdated);
    let rolls_back = input.desired.refresh.on_failure == OnRefreshFailure::RollBack;
    Some(match &refresh.state {
        State::Idle => return None,
        State::Active | State::RollBack => under_way(input, refresh.active?, draining, None),
        State::ToStop(StopReason::Obsolete) => {
            let cancelled_for = "being cancelled because it is for an earlier spec; another will be started";
            under_way(input, refresh.active?, draining, Some(cancelled_for))
        }
        State::ToStop(StopReason::Budget) => {
            let cancelled_for = "being cancelled because it replaces more instances at once than spec.disruption \
                                 allows; another will be started";
            under_way(input, refresh.active?, draining, Some(cancelled_for))
        }
        State::Start | State::Requested => RolloutPhase::Refreshing {
            status: RefreshStatus::Pending.as_str().to_owned(),
            percentage: None,
            message: None,
            draining,
            cancelled_for: None,
            no_rollback: input.desired.rotates && rolls_back,
        },
        State::Held => RolloutPhase::Held,
        State::Unread => RolloutPhase::Unread,
        State::OutOfBudget => RolloutPhase::OutOfBudget,
        State::Settling(_) => RolloutPhase::Settling,
        State::Rejected => RolloutPhase::Rejected,
        State::WindowsUnsupported => RolloutPhase::WindowsUnsupported { draining },
        State::Paused | State::ToStop(StopReason::Paused) => RolloutPhase::Paused { draining },
        State::Closed(opening) | State::ToStop(StopReason::Closed(opening)) => {
            let next = match opening {
                Opening::Closed { next } => *next,
                _ => None,
            };
            RolloutPhase::Closed { draining, next }
        }
        State::Stopped(failure) => stopped::phase(input, outdated, draining, failure.as_ref()),
        State::Failed(failure) => stopped::phase(input, outdated, draining, Some(failure)),
    })
}

fn under_way(
    input: &Input<'_>,
    refresh: &InstanceRefresh,
    draining: Vec<String>,
    cancelled_for: Option<&'static str>,
) -> RolloutPhase {
    let desired = input.desired;
    RolloutPhase::Refreshing {
        status: refresh.status.as_str().to_owned(),
        percentage: refresh.percentage,
        message: refresh.stable_reason(),
        draining,
        cancelled_for,
        no_rollback: desired.rollout.type_ == RolloutType::InstanceRefresh
            && desired.refresh.on_failure == OnRefreshFailure::RollBack
            && refresh.desired.is_none(),
    }
}

/// Machines whose Nodes are drained for the rollout.
fn draining(input: &Input<'_>, outdated: &Outdated) -> Vec<String> {
    let deleting = input.observed.instances.iter().filter(|(id, m)| {
        let terminates = m.lifecycle().is_some_and(LifecycleState::is_terminating);
        m.is_deleting() && (terminates || outdated.is_outdated(id))
    });
    deleting.filter_map(|(_, m)| Some(m.machine.as_ref()?.name.clone())).collect()
}
