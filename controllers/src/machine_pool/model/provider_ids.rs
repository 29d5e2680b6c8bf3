//! `spec.providerIDList`: which instances the pool lists, also while a view or a cache does not show them.

use capasg_api::names::provider_id;

use crate::machine_pool::model::{Observed, PoolMemory};

/// Instances that the group listed a moment ago, and that are neither listed nor known to be terminated. They are given by id and zone.
pub fn out_of_sight<'a>(
    observed: &'a Observed,
    memory: &'a PoolMemory,
) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    memory.sightings.listed().filter(|(id, _)| {
        !memory.sightings.is_released(id)
            && observed.members.get(*id).is_none_or(|m| m.instance.is_none() && m.asg_machine.is_none())
    })
}

/// The entries of instances whose Machine shows, and whose ASGMachine no cache shows and we did not release: a watch may
/// have stalled, and somebody may have detached the instance.
fn stalled<'a>(
    observed: &'a Observed,
    before: &'a [String],
    memory: &'a PoolMemory,
) -> impl Iterator<Item = String> + use<'a> {
    let is_held = |id: &str| observed.stray(id).is_some() && !memory.sightings.is_released(id);
    before.iter().filter(move |listed| listed.rsplit('/').next().is_some_and(is_held)).cloned()
}

/// `spec.providerIDList`: every instance until it is drained and gone, sorted and unique (B1, B3).
///
/// One that ends and has no ASGMachine stays if it was in the list `before`, or if we have just seen it live: the list that a
/// cache shows may be older than the one we wrote then. One that neither group nor ASGMachines show
/// any more stays for a while unless its ASGMachine was released: a view may go back behind the one before, and a cache
/// may not show yet what was just created.
#[must_use]
pub fn provider_id_list(observed: &Observed, before: &[String], memory: &PoolMemory) -> Vec<String> {
    let mut list: Vec<String> = observed
        .members
        .iter()
        .filter_map(|(id, member)| {
            let from_machine = member.asg_machine.as_ref().map(|m| m.provider_id.clone());
            from_machine.or_else(|| {
                let instance = member.instance.as_ref()?;
                let listed = provider_id(&instance.zone, id);
                let known = before.contains(&listed) || memory.sightings.was_listed(id);
                let stays = known && !memory.sightings.is_released(id);
                (stays || !instance.lifecycle.is_terminating()).then_some(listed)
            })
        })
        .chain(out_of_sight(observed, memory).map(|(id, zone)| provider_id(zone, id)))
        .chain(stalled(observed, before, memory))
        .collect();
    list.sort_unstable();
    list.dedup();
    list
}
