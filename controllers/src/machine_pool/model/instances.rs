//! Counts of a pool's instances that several decisions share.

use std::collections::BTreeMap;

use capasg_cloud::{Group, Instance, LifecycleState};

use crate::machine_pool::model::{Observed, PoolInstance};

/// Instances that count towards desired capacity.
pub fn live(observed: &Observed) -> impl Iterator<Item = (&String, &PoolInstance)> {
    observed.instances.iter().filter(|(_, m)| m.is_live())
}

/// The number of instances that count towards desired capacity.
#[must_use]
pub fn live_count(observed: &Observed) -> i32 {
    count(live(observed))
}

/// The number of instances in standby, which do not count towards desired capacity.
#[must_use]
pub fn standby_count(observed: &Observed) -> i32 {
    count(observed.instances.values().filter(|m| m.lifecycle() == Some(&LifecycleState::Standby)))
}

/// Instances in service.
pub fn in_service(observed: &Observed) -> impl Iterator<Item = (&String, &Instance)> {
    observed.instances.iter().filter_map(|(id, m)| {
        let instance = m.listed.as_ref()?;
        (instance.lifecycle == LifecycleState::InService).then_some((id, instance))
    })
}

/// The number of instances in service.
#[must_use]
pub fn in_service_count(observed: &Observed) -> i32 {
    count(in_service(observed))
}

/// A count as AWS's API represents it. No group reaches the limit of the type.
#[must_use]
pub fn count(items: impl Iterator) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}

/// The number of live instances in each zone of the group, zones without any included.
#[must_use]
pub fn zone_counts<'a>(observed: &'a Observed, group: &'a Group) -> BTreeMap<&'a str, usize> {
    let mut counts: BTreeMap<&str, usize> = group.zones.iter().map(|zone| (zone.as_str(), 0)).collect();
    for listed in live(observed).filter_map(|(_, instance)| instance.listed.as_ref()) {
        *counts.entry(listed.zone.as_str()).or_default() += 1;
    }
    counts
}

/// The number of a group's instances that count towards desired capacity, whether or not the pool owns the group.
#[must_use]
pub fn live_listed(group: &Group) -> usize {
    group.instances.iter().filter(|instance| instance.lifecycle.is_live()).count()
}
