//! `spec.providerIDList`: the instances that the pool lists, also while a view or a cache does not show them.

use capasg_api::names::provider_id;

use crate::machine_pool::model::{Observed, PoolMemory};

/// ID and zone of instances that the group listed recently, and that are neither listed nor known to be terminated.
pub fn recently_listed<'a>(
    observed: &'a Observed,
    memory: &'a PoolMemory,
) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    memory.sightings.listed().filter(|(id, _)| {
        !memory.sightings.is_released(id)
            && observed.instances.get(*id).is_none_or(|m| m.listed.is_none() && m.asg_machine.is_none())
    })
}

/// The entries of instances whose Machine is observed, but whose ASGMachine is not, although it was not released: a
/// watch may lag, and another actor may have detached the instance.
fn stalled<'a>(
    observed: &'a Observed,
    before: &'a [String],
    memory: &'a PoolMemory,
) -> impl Iterator<Item = String> + use<'a> {
    let stays = |id: &str| observed.unmatched_machine(id).is_some() && !memory.sightings.is_released(id);
    before.iter().filter(move |listed| listed.rsplit('/').next().is_some_and(stays)).cloned()
}

/// The list, unless it would lose an instance whose ASGMachine was not released, by a cache that may not show its
/// ASGMachine: this process may have just created it. `None` until ASGMachines are listed.
#[must_use]
pub fn certain_list(observed: &Observed, before: &[String], memory: &PoolMemory) -> Option<Vec<String>> {
    let list = provider_id_list(observed, before, memory);
    let is_released =
        |entry: &str| entry.rsplit('/').next().is_some_and(|id| memory.sightings.is_released(id));
    let is_lost = |entry: &String| list.binary_search(entry).is_err() && !is_released(entry);
    let is_certain = observed.live_machines || !before.iter().any(is_lost);
    is_certain.then_some(list)
}

/// `spec.providerIDList`: every instance until it is drained and terminated, sorted and unique (B1, B3).
///
/// A terminating instance without an ASGMachine stays if it was in the list `before`, or if the group listed it
/// recently: the list in a cache may be older than the one that was written then. An instance that neither the group
/// nor an ASGMachine shows stays for a while unless its ASGMachine was released: a view may be older than the one
/// before, and a cache may not show an object yet that was just created.
#[must_use]
pub fn provider_id_list(observed: &Observed, before: &[String], memory: &PoolMemory) -> Vec<String> {
    let mut list: Vec<String> = observed
        .instances
        .iter()
        .filter_map(|(id, instance)| {
            let from_machine = instance.asg_machine.as_ref().map(|m| m.provider_id.clone());
            from_machine.or_else(|| {
                let in_group = instance.listed.as_ref()?;
                let entry = provider_id(&in_group.zone, id);
                let known = before.contains(&entry) || memory.sightings.was_listed(id);
                let stays = known && !memory.sightings.is_released(id);
                (stays || !in_group.lifecycle.is_terminating()).then_some(entry)
            })
        })
        .chain(recently_listed(observed, memory).map(|(id, zone)| provider_id(zone, id)))
        .chain(stalled(observed, before, memory))
        .collect();
    list.sort_unstable();
    list.dedup();
    list
}
