//! When AWS may terminate instances in an instance refresh, and how many at once. Pauses, windows and the budget apply
//! to AWS as well: they determine the preferences that are sent at the start, and an instance refresh that exceeds them
//! later is cancelled.

use capasg_api::pool::{OnRefreshFailure, RolloutMode};
use capasg_cloud::{InstanceRefresh, RefreshPreferences, RefreshStatus};

use crate::machine_pool::decide::disruption_budget::Budget;
use crate::machine_pool::decide::rollout::instance_refresh::outcome;
use crate::machine_pool::decide::rollout::instance_refresh::state::StopReason;
use crate::machine_pool::model::Input;

/// The default of `MinHealthyPercentage` of `StartInstanceRefresh`.
const DEFAULT_MIN_HEALTHY: i32 = 90;

/// Why an instance refresh is cancelled now: rollouts are paused, or no window is open. AWS completes the replacements
/// that it has started. One in its bake time has replaced everything, and one that is rolled back, or cancelled by
/// another actor, is not touched.
pub(super) fn must_stop(input: &Input<'_>, refresh: &InstanceRefresh) -> Option<StopReason> {
    let is_stopped = refresh.status == RefreshStatus::Cancelling && outcome::is_by_us(input, refresh);
    if !replaces(refresh) && !is_stopped {
        return None;
    }
    if input.desired.rollout.mode == RolloutMode::Paused {
        return Some(StopReason::Paused);
    }
    let opening = input.desired.disruption.opening(input.now);
    (!opening.is_open()).then_some(StopReason::Closed(opening))
}

/// Whether an instance refresh may terminate more at once than the budget allows now: it was started for fewer
/// replicas, or for another budget. Numbers of instances are compared, not percentages, which change with each replica.
pub(super) fn is_too_large(input: &Input<'_>, refresh: &InstanceRefresh) -> bool {
    let kept = refresh.min_healthy_percentage.unwrap_or(DEFAULT_MIN_HEALTHY);
    let most = Budget::of(input).most_of_rollouts();
    replaces(refresh) && most.is_some_and(|most| at_once(input.desired.replicas, kept) > most.max(1))
}

fn replaces(refresh: &InstanceRefresh) -> bool {
    matches!(refresh.status, RefreshStatus::Pending | RefreshStatus::InProgress)
}

/// How many instances AWS terminates at once if it keeps this many percent in service: at least one.
fn at_once(replicas: i32, kept: i32) -> usize {
    let replicas = i64::from(replicas.max(1));
    let kept = (replicas * i64::from(kept) + 99) / 100;
    usize::try_from((replicas - kept).max(1)).unwrap_or(1)
}

/// How many percent AWS must keep in service so that it terminates at most this many at once.
fn percentage_kept(replicas: i32, most: usize) -> i32 {
    let replicas = i64::from(replicas.max(1));
    let kept = (replicas - i64::try_from(most).unwrap_or(replicas)).max(0);
    i32::try_from((kept * 100 + replicas - 1) / replicas).unwrap_or(100)
}

/// The preferences of the spec, restricted to the pool's budget.
pub(super) fn preferences(input: &Input<'_>, has_rollback: bool) -> RefreshPreferences {
    let wanted = &input.desired.refresh;
    let most = Budget::of(input).most_of_rollouts();
    let least = most.map_or(0, |most| percentage_kept(input.desired.replicas, most));
    RefreshPreferences {
        min_healthy_percentage: wanted.min_healthy_percentage.max(least),
        max_healthy_percentage: wanted.max_healthy_percentage,
        instance_warmup: wanted.instance_warmup_seconds,
        checkpoint_percentages: wanted.checkpoint_percentages.clone(),
        checkpoint_delay: wanted.checkpoint_delay_seconds,
        bake_time: wanted.bake_time_seconds,
        alarms: wanted.alarms.clone(),
        skip_matching: true,
        auto_rollback: has_rollback && wanted.on_failure == OnRefreshFailure::RollBack,
        // All instances of a pool are protected: AWS would wait an hour and fail (`ScaleInProtectedInstances`).
        protected_instances: "Refresh".to_owned(),
        standby_instances: wanted.standby_instances.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_refresh_within_the_budget_is_never_too_large_for_it() {
        for replicas in 1..300 {
            for most in 1..=replicas {
                let most = usize::try_from(most).unwrap();
                let kept = percentage_kept(replicas, most);
                assert!((0..=100).contains(&kept));
                assert!(at_once(replicas, kept) <= most, "{replicas} {most} {kept}");
            }
        }
        assert_eq!(at_once(20, 75), 5);
        assert_eq!(at_once(10, 90), 1);
        assert_eq!(at_once(3, 100), 1, "AWS replaces one at least");
    }
}
