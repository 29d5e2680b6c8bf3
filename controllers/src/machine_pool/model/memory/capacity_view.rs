//! The capacity of a group as the watch of its launches needs it: what is in service of what is desired, and what a user can
//! change about launches.

use capasg_cloud::RefreshStatus;

use crate::machine_pool::model::template_versions::pinned_stamp;
use crate::machine_pool::model::{Observed, PoolObjects, instances};

/// What a user can change about launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchInputs {
    /// What AWS launches and where, as the group has it. Bootstrap data is not included because its tokens rotate.
    pub launch: String,
    /// `spec.retryToken`.
    pub retry: Option<String>,
}

/// How far an instance refresh is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshProgress {
    /// `InstanceRefreshId`.
    pub id: String,
    /// Whether it is rolled back, which launches as well.
    pub is_rollback: bool,
    /// `PercentageComplete`.
    pub percentage: Option<i32>,
}

impl RefreshProgress {
    /// Whether it is further than an earlier view. `InstancesToUpdate` tells nothing: it goes up and down while each instance
    /// that is launched terminates, and so does the percentage. A rollback counts down ("gradually goes back down to zero
    /// during a rollback", `PercentageComplete` in the API reference).
    #[must_use]
    pub fn exceeds(&self, earlier: Option<&Self>) -> bool {
        earlier.is_none_or(|earlier| {
            let is_same = earlier.id == self.id && earlier.is_rollback == self.is_rollback;
            !is_same
                || match (earlier.percentage, self.percentage) {
                    (Some(before), Some(now)) if self.is_rollback => now < before,
                    (Some(before), Some(now)) => now > before,
                    (before, now) => before.is_none() && now.is_some(),
                }
        })
    }
}

/// The group's capacity, as it is observed now.
#[derive(Debug, Clone)]
pub struct CapacityView {
    /// Desired capacity.
    pub desired: i32,
    /// Instances that count towards it.
    pub live: i32,
    /// Instances in service.
    pub in_service: i32,
    /// Whether AWS tries to launch: the process `Launch` is not suspended.
    pub is_trying: bool,
    /// How far an instance refresh is that replaces instances. It may launch before it terminates: then no instance is
    /// missing although launches fail.
    pub refresh: Option<RefreshProgress>,
    /// What a user can change.
    pub inputs: LaunchInputs,
}

impl CapacityView {
    /// The capacity of a group that is to have instances; `None` for any other.
    #[must_use]
    pub fn of(objects: &PoolObjects, observed: &Observed) -> Option<Self> {
        let group =
            observed.group.present().filter(|group| !objects.is_deleting() && !group.is_deleting())?;
        let stamp = pinned_stamp(observed).map(|stamp| stamp.rollout);
        let launch = format!("{:?} {:?} {stamp:?}", group.settings.launch.mixed, group.settings.subnets);
        let retry = objects.pool.spec.retry_token.clone();
        Some(Self {
            desired: group.capacity.desired,
            live: instances::live_count(observed),
            in_service: instances::in_service_count(observed),
            is_trying: !group.suspended_processes.contains_key("Launch"),
            refresh: refresh_progress(observed),
            inputs: LaunchInputs { launch, retry },
        })
    }
}

/// How far the instance refresh is that replaces instances now.
fn refresh_progress(observed: &Observed) -> Option<RefreshProgress> {
    let refreshes = &observed.refreshes.as_ref()?.refreshes;
    let replaces = [RefreshStatus::InProgress, RefreshStatus::RollbackInProgress];
    let one = refreshes.iter().find(|one| replaces.contains(&one.status))?;
    let is_rollback = one.status == RefreshStatus::RollbackInProgress;
    Some(RefreshProgress { id: one.id.clone(), is_rollback, percentage: one.percentage })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capasg_cloud::{InstanceRefresh, RefreshesView};

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, refresh};

    fn progress(status: &str, percentage: i32) -> Option<RefreshProgress> {
        let mut stage = Stage::new(1);
        let refresh = InstanceRefresh { percentage: Some(percentage), ..refresh(status) };
        let refreshes = Arc::new(vec![refresh]);
        stage.observed.refreshes = Some(RefreshesView { refreshes, as_of: stage.clock });
        refresh_progress(&stage.observed)
    }

    #[test]
    fn a_rollback_replaces_instances_as_well_and_begins_anew() {
        let most = progress("InProgress", 60);
        assert!(progress("InProgress", 70).unwrap().exceeds(most.as_ref()));
        assert!(!progress("InProgress", 50).unwrap().exceeds(most.as_ref()));
        let rollback = progress("RollbackInProgress", 60);
        assert!(rollback.as_ref().unwrap().exceeds(most.as_ref()));
        for (percentage, exceeds) in [(60, false), (70, false), (40, true)] {
            let later = progress("RollbackInProgress", percentage).unwrap();
            assert_eq!(later.exceeds(rollback.as_ref()), exceeds, "it counts down");
        }
        assert_eq!(progress("Baking", 100), None, "nothing is launched any more");
    }
}
