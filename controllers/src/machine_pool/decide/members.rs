//! Ways to look at the members of a pool that several decisions share.

use capasg_cloud::{Instance, LifecycleState};
use chrono::TimeDelta;

use super::super::state::{Case, Member, Observed, Plan};

/// Whom to disrupt is chosen by a view of the group that is not older than this. Where something moves, polls are more
/// frequent.
const CHOSEN_BY: TimeDelta = TimeDelta::seconds(15);

/// Members counted in desired capacity.
pub fn live(observed: &Observed) -> impl Iterator<Item = (&String, &Member)> {
    observed.members.iter().filter(|(_, m)| m.is_live())
}

/// Members counted in desired capacity, in instances.
#[must_use]
pub fn live_count(observed: &Observed) -> i32 {
    count(live(observed))
}

/// Members in standby: listed, not counted.
#[must_use]
pub fn standby_count(observed: &Observed) -> i32 {
    count(observed.members.values().filter(|m| m.lifecycle() == Some(&LifecycleState::Standby)))
}

/// Instances in service.
pub fn in_service(observed: &Observed) -> impl Iterator<Item = (&String, &Instance)> {
    observed.members.iter().filter_map(|(id, m)| {
        let instance = m.instance.as_ref()?;
        (instance.lifecycle == LifecycleState::InService).then_some((id, instance))
    })
}

/// Instances in service.
#[must_use]
pub fn in_service_count(observed: &Observed) -> i32 {
    count(in_service(observed))
}

/// A count as AWS counts; a group never comes near the limit of the type.
#[must_use]
pub fn count(items: impl Iterator) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}

/// Whether it may be chosen now whom to disrupt, within a budget. A stale cache of Machines would not show what the last
/// pass deleted, and an old view of the group not what AWS ends by now: asks for what is missing.
pub fn may_be_chosen(case: &Case<'_>, plan: &mut Plan) -> bool {
    let observed = case.observed;
    let is_recent = observed.group.as_of().is_some_and(|seen| case.now - seen < CHOSEN_BY);
    plan.needs.live_machines |= !observed.live_machines;
    let is_seen = observed.fresh_group || is_recent;
    plan.needs.fresh_group |= !is_seen;
    observed.live_machines && is_seen
}
