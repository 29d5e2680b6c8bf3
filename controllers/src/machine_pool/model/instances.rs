//! Counts of a pool's instances that several decisions share.

use capasg_cloud::{Group, Instance, LifecycleState};

use crate::machine_pool::model::{Member, Observed};

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

/// Instances of a group that are counted in desired capacity, ours or not.
#[must_use]
pub fn live_listed(group: &Group) -> usize {
    group.instances.iter().filter(|instance| instance.lifecycle.is_live()).count()
}
