//! Chooses instances to terminate: in which order, and whether the facts are recent enough for it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use capasg_cloud::HealthStatus;
use chrono::TimeDelta;

use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Needs, Observed, Outdated, PoolInstance, ScaleInOrder};

/// Instances are chosen by a view of the group that is not older than this. While a change is in progress, polls are
/// more frequent.
const MAX_VIEW_AGE: TimeDelta = TimeDelta::seconds(15);

/// The facts that are missing before instances may be chosen within a budget; none if they may be now. A stale cache of
/// Machines would not show the last deletions, and an old view of the group not what AWS terminates now.
#[must_use]
pub fn missing_for_order(input: &Input<'_>) -> Needs {
    let observed = input.observed;
    let is_recent = observed.group.as_of().is_some_and(|seen| input.now - seen < MAX_VIEW_AGE);
    Needs {
        live_machines: !observed.live_machines,
        fresh_group: !(input.fresh_group() || is_recent),
        ..Needs::default()
    }
}

/// In which order zones are chosen from, other criteria being equal: the smallest number first.
struct ZoneOrder<'a> {
    rank: BTreeMap<&'a str, i64>,
    /// How the number of a zone changes when one of its instances is chosen.
    step: i64,
}

/// Chooses instances to remove, in this order: annotated with `delete-machine`, without `do-not-disrupt`, never joined,
/// failing, outdated, in the zone with the most candidates, `scaleInOrder`, ID (D8).
#[must_use]
pub fn choose<'a>(
    candidates: Vec<(&'a String, &'a PoolInstance)>,
    count: usize,
    order: ScaleInOrder,
    outdated: &Outdated,
) -> BTreeSet<&'a String> {
    let mut rank = BTreeMap::new();
    for (_, instance) in &candidates {
        *rank.entry(zone(instance)).or_default() -= 1;
    }
    choose_by(candidates, count, order, outdated, ZoneOrder { rank, step: 1 })
}

/// Chooses instances to replace in the same order, except that the zone with the fewest live instances comes first: AWS
/// launches the replacement there. So the last ones, whose termination removes the surge, are in the zone that the surge
/// was launched in, and zones stay balanced.
#[must_use]
pub fn choose_replaced<'a>(
    observed: &'a Observed,
    candidates: Vec<(&'a String, &'a PoolInstance)>,
    count: usize,
    order: ScaleInOrder,
    outdated: &Outdated,
) -> BTreeSet<&'a String> {
    let mut rank = BTreeMap::new();
    for (_, instance) in instances::live(observed) {
        *rank.entry(zone(instance)).or_default() += 1;
    }
    choose_by(candidates, count, order, outdated, ZoneOrder { rank, step: 0 })
}

/// Within a zone the order never changes, so that only the first of each zone are compared: a pool of a thousand
/// instances is sorted once, not once for each victim.
fn choose_by<'a>(
    candidates: Vec<(&'a String, &'a PoolInstance)>,
    count: usize,
    order: ScaleInOrder,
    outdated: &Outdated,
    mut zone_order: ZoneOrder<'a>,
) -> BTreeSet<&'a String> {
    let mut zones: BTreeMap<&str, Vec<(&'a String, &'a PoolInstance)>> = BTreeMap::new();
    for candidate in candidates {
        zones.entry(zone(candidate.1)).or_default().push(candidate);
    }
    let no_zones = BTreeMap::new();
    for of_zone in zones.values_mut() {
        // The last one is chosen first.
        of_zone.sort_by_cached_key(|(id, instance)| Reverse(rank(id, instance, &no_zones, order, outdated)));
    }
    let mut chosen = BTreeSet::new();
    while chosen.len() < count {
        let heads = zones.iter().filter_map(|(name, of_zone)| of_zone.last().map(|head| (*name, head)));
        let next =
            heads.min_by_key(|(_, (id, instance))| rank(id, instance, &zone_order.rank, order, outdated));
        let Some(name) = next.map(|(name, _)| name) else { break };
        let head = zones.get_mut(name).and_then(Vec::pop);
        chosen.extend(head.map(|(id, _)| id));
        if let Some(rank) = zone_order.rank.get_mut(name) {
            *rank += zone_order.step;
        }
    }
    chosen
}

/// The smallest is chosen first.
fn rank<'a>(
    id: &'a str,
    instance: &PoolInstance,
    zones: &BTreeMap<&str, i64>,
    order: ScaleInOrder,
    outdated: &Outdated,
) -> impl Ord + use<'a> {
    let machine = instance.machine.as_ref();
    let annotated = machine.is_some_and(|m| m.delete_annotation.is_some());
    let joined = machine.is_some_and(|m| m.has_node);
    let failing = machine.is_some_and(|m| !m.ready || m.needs_remediation)
        || instance.listed.as_ref().is_some_and(|i| i.health == HealthStatus::Unhealthy);
    let of_zone = zones.get(zone(instance)).copied().unwrap_or(0);
    let age = machine.and_then(|m| m.created_at).map_or(i64::MAX, |t| t.timestamp());
    let policy = match order {
        ScaleInOrder::Oldest => age,
        ScaleInOrder::Newest => age.saturating_neg(),
    };
    (
        !annotated,
        instance.has_do_not_disrupt(),
        joined,
        !failing,
        !outdated.is_outdated(id),
        of_zone,
        policy,
        id,
    )
}

fn zone(instance: &PoolInstance) -> &str {
    instance.listed.as_ref().map_or("", |i| i.zone.as_str())
}
