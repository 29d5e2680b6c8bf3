//! The choice of instances, for any pool: the documented order, and zones that stay balanced.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use proptest::prelude::*;

use crate::machine_pool::decide::termination_order::choose;
use crate::machine_pool::decide::testing::{now, pool_instance};
use crate::machine_pool::model::Outdated;
use crate::machine_pool::model::{PoolInstance, ScaleInOrder};

type Pool = BTreeMap<String, PoolInstance>;

/// Zone, whether it is annotated, whether it joined, whether it is ready, and its age in minutes.
type Facts = (usize, bool, bool, bool, i64);

fn pool(facts: &[Facts]) -> Pool {
    let facts = facts.iter().enumerate();
    facts
        .map(|(index, (zone, annotated, joined, ready, age))| {
            let id = format!("i-{index:04}");
            let mut instance = pool_instance(&id, &format!("z-{zone}"), *age);
            let machine = instance.machine.as_mut().unwrap();
            machine.delete_annotation = annotated.then(String::new);
            (machine.has_node, machine.ready) = (*joined, *ready);
            (id, instance)
        })
        .collect()
}

fn chosen(pool: &Pool, count: usize, order: ScaleInOrder) -> BTreeSet<String> {
    choose(pool.iter().collect(), count, order, &Outdated::default()).into_iter().cloned().collect()
}

/// The documented order (D8), one at a time over all that remain.
fn one_by_one(pool: &Pool, count: usize, order: ScaleInOrder) -> BTreeSet<String> {
    let mut left: Vec<(&String, &PoolInstance)> = pool.iter().collect();
    let zone = |instance: &PoolInstance| instance.listed.as_ref().unwrap().zone.clone();
    let mut chosen = BTreeSet::new();
    while chosen.len() < count && !left.is_empty() {
        let crowd =
            |instance: &PoolInstance| left.iter().filter(|(_, other)| zone(other) == zone(instance)).count();
        let key = |(id, instance): &(&String, &PoolInstance)| {
            let machine = instance.machine.as_ref().unwrap();
            let made = machine.created_at.unwrap() - now();
            let age = if order == ScaleInOrder::Oldest { made } else { -made };
            let fine = machine.ready;
            (
                machine.delete_annotation.is_none(),
                machine.has_node,
                fine,
                std::cmp::Reverse(crowd(instance)),
                age,
                (*id).clone(),
            )
        };
        let at = (0..left.len()).min_by_key(|index| key(&left[*index])).unwrap();
        chosen.insert(left.remove(at).0.clone());
    }
    chosen
}

fn per_zone<'a>(instances: impl Iterator<Item = &'a PoolInstance>) -> BTreeMap<String, usize> {
    let mut zones = BTreeMap::new();
    for instance in instances {
        *zones.entry(instance.listed.as_ref().unwrap().zone.clone()).or_default() += 1;
    }
    zones
}

fn order() -> impl Strategy<Value = ScaleInOrder> {
    prop_oneof![Just(ScaleInOrder::Oldest), Just(ScaleInOrder::Newest)]
}

proptest! {
    #[test]
    fn p45_d8_the_order_is_that_of_choosing_one_after_the_other(
        facts in prop::collection::vec((0..4_usize, any::<bool>(), any::<bool>(), any::<bool>(), 0..20_i64), 0..30),
        count in 0..32_usize,
        order in order(),
    ) {
        let pool = pool(&facts);
        prop_assert_eq!(chosen(&pool, count, order), one_by_one(&pool, count, order));
    }

    /// One that is chosen first is also among more that are chosen: the autoscaler's steps of one come to the same.
    #[test]
    fn p45_p16_choosing_more_keeps_those_that_were_chosen(
        facts in prop::collection::vec((0..4_usize, any::<bool>(), any::<bool>(), any::<bool>(), 0..20_i64), 0..30),
        order in order(),
    ) {
        let pool = pool(&facts);
        let mut before = BTreeSet::new();
        for count in 0..=pool.len() {
            let now = chosen(&pool, count, order);
            prop_assert_eq!(now.len(), count);
            prop_assert!(before.is_subset(&now));
            before = now;
        }
    }

    /// Zones that have most give, down to one level: none is lower by it than necessary, none higher.
    #[test]
    fn p16_w11_zones_differ_by_no_more_than_necessary(
        sizes in prop::collection::vec(0..40_usize, 1..6),
        part in 0..=100_usize,
        order in order(),
    ) {
        let facts: Vec<Facts> = sizes
            .iter()
            .enumerate()
            .flat_map(|(zone, size)| (0..i64::try_from(*size).unwrap()).map(move |age| (zone, false, true, true, age)))
            .collect();
        let pool = pool(&facts);
        let count = pool.len() * part / 100;
        let chosen = chosen(&pool, count, order);
        prop_assert_eq!(chosen.len(), count);
        let before = per_zone(pool.values());
        let after = per_zone(pool.iter().filter(|(id, _)| !chosen.contains(*id)).map(|(_, instance)| instance));
        // The lowest level to which that many can bring all zones.
        let above = |level: usize| before.values().map(|size| size.saturating_sub(level)).sum::<usize>();
        let level = (0..=40).find(|level| above(*level) <= count).unwrap();
        for (zone, size) in before {
            let left = after.get(&zone).copied().unwrap_or(0);
            let fair = size.min(level);
            prop_assert!(left == fair || (left + 1 == fair && size >= level), "{zone}: {size} -> {left}, level {level}");
        }
    }
}

/// Of a thousand instances in three zones 300 are chosen: a hundred of each zone, the oldest first.
#[test]
fn p16_w11_a_thousand_give_three_hundred_evenly() {
    let facts: Vec<Facts> =
        (0..1_000_i64).map(|n| (usize::try_from(n % 3).unwrap(), false, true, true, 1_000 - n)).collect();
    let pool = pool(&facts);
    let chosen = chosen(&pool, 300, ScaleInOrder::Oldest);
    let zones = per_zone(pool.iter().filter(|(id, _)| chosen.contains(*id)).map(|(_, instance)| instance));
    assert!(zones.values().all(|count| (99..=101).contains(count)), "{zones:?}");
    let youngest = chosen.iter().filter_map(|id| pool[id].machine.as_ref()?.created_at).max().unwrap();
    assert!(now() - youngest >= TimeDelta::minutes(698), "the oldest of each zone");
}
