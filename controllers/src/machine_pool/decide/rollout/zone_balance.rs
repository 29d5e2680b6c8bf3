//! Chooses the instance whose replacement restores the balance of the zones, with `spec.zoneRebalancePolicy: Replace`. AWS
//! launches the replacement in the zone with the fewest instances. The process `AZRebalance` of AWS does the same without
//! a drain, and is suspended by default.

use capasg_api::pool::RolloutMode;
use chrono::TimeDelta;

use crate::machine_pool::decide::availability::is_available;
use crate::machine_pool::decide::termination_order::choose;
use crate::machine_pool::decide::timing::HOLD;
use crate::machine_pool::model::instances;
use crate::machine_pool::model::{Input, Outdated, OutdatedReason, Part, PoolInstance};

/// The balance must have been lost for this long: after the outage of a zone, scale-outs restore it as well.
const LASTS: TimeDelta = TimeDelta::minutes(5);
/// When the next instance is considered after a replacement.
const NEXT: TimeDelta = TimeDelta::seconds(1);

/// The instance that is being replaced or is to be replaced, and when to requeue. One at a time, and only while nothing
/// else changes: all instances are available, none is outdated, and no launch fails.
#[must_use]
pub fn decide(input: &Input<'_>, outdated: &Outdated) -> (Option<String>, Part) {
    let Input { desired, observed, memory, now, .. } = *input;
    if !desired.balances_zones || desired.previews || input.is_rollout_stopped() {
        return (None, Part::default());
    }
    let live: Vec<(&String, &PoolInstance)> = instances::live(observed).collect();
    let missing = instances::count(live.iter()) < desired.replicas;
    let may_begin = desired.rollout.mode != RolloutMode::Paused && desired.disruption.opening(now).is_open();
    if let Some(replaced) = memory.zone_balance.replaced() {
        let instance = observed.instances.get(replaced);
        let has_begun = instance.is_none_or(PoolInstance::is_deleting);
        // Without the surge that it waits for, it would stop as a rollout that exceeds its deadline.
        let may_continue = may_begin && !memory.launches.are_failing();
        let continues = (instance.is_some() || missing) && (has_begun || may_continue);
        // Whether the next one may be replaced depends on what memory then records of this one.
        return if continues {
            (Some(replaced.clone()), Part::default())
        } else {
            (None, Part::requeue(NEXT))
        };
    }
    let Some(due) = memory.zone_balance.due_at(LASTS) else { return (None, Part::default()) };
    if due > now {
        return (None, Part::requeue(due - now));
    }
    let mut refreshes = observed.refreshes.iter().flat_map(|view| view.refreshes.iter());
    let is_at_rest = !missing
        && outdated.count() == 0
        && !memory.launches.are_failing()
        && refreshes.all(|refresh| refresh.status.is_finished())
        && live.iter().all(|(_, instance)| is_available(input, instance));
    if !may_begin || !is_at_rest {
        return (None, Part::requeue(HOLD));
    }
    (of_fullest_zone(input, live, outdated), Part::default())
}

/// The first instance of the zone with the most, in the order of a scale-in.
fn of_fullest_zone(
    input: &Input<'_>,
    mut candidates: Vec<(&String, &PoolInstance)>,
    outdated: &Outdated,
) -> Option<String> {
    let group = input.observed.group.present()?;
    let counts = instances::zone_counts(input.observed, group);
    let (fullest, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    candidates.retain(|(_, instance)| {
        let is_there = instance.listed.as_ref().is_some_and(|listed| listed.zone == fullest);
        is_there && !instance.is_paused() && !instance.has_do_not_disrupt()
    });
    choose(candidates, 1, input.desired.scale_in_order, outdated).into_iter().next().cloned()
}

/// The outdated instances, with the one that is replaced to restore the balance.
#[must_use]
pub fn with_replaced(outdated: Outdated, input: &Input<'_>, replaced: Option<&String>) -> Outdated {
    let is_live = |id: &&String| input.observed.instances.get(*id).is_some_and(PoolInstance::is_live);
    match replaced.filter(is_live) {
        Some(id) => outdated.with_reason(id, OutdatedReason::ZoneImbalance),
        None => outdated,
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, kubernetes, now};
    use crate::machine_pool::model::memory::PoolMemory;

    type Change = fn(&mut Stage);

    /// Four instances, three of them in zone a and none in zone c, observed like that since `since`.
    fn out_of_balance(since: DateTime<Utc>) -> Stage {
        let mut stage = Stage::new(4);
        stage.desired.balances_zones = true;
        stage.desired.rollout.max_surge = 0;
        stage.desired.rollout.max_unavailable = 1;
        stage.group().zones = ["a", "b", "c"].map(str::to_owned).into();
        stage.instance("i-3").listed.as_mut().unwrap().zone = "a".into();
        stage.desired_for(3600).observe(since);
        stage
    }

    fn minutes(minutes: i64) -> DateTime<Utc> {
        now() - TimeDelta::minutes(minutes)
    }

    #[test]
    fn an_instance_of_the_fullest_zone_is_replaced_after_five_minutes() {
        let plan = out_of_balance(minutes(4)).plan();
        assert!(plan.outdated.count() == 0 && kubernetes(&plan).is_empty(), "{plan:?}");
        assert_eq!(plan.requeue_after, Some(TimeDelta::minutes(1)));

        let mut stage = out_of_balance(minutes(5));
        let plan = stage.plan();
        assert_eq!(plan.zone_replacement.as_deref(), Some("i-1"), "the oldest");
        assert_eq!(plan.outdated.reason("i-1"), Some(OutdatedReason::ZoneImbalance));
        assert_eq!(kubernetes(&plan), ["delete p-i-1"]);

        stage.desired.balances_zones = false;
        assert_eq!(stage.plan().outdated.count(), 0);
    }

    #[test]
    fn no_instance_is_replaced_while_something_else_changes() {
        let changes: [(&str, Change); 5] = [
            ("an instance fails", |stage| stage.instance("i-2").machine.as_mut().unwrap().ready = false),
            ("one is terminating", |stage| {
                stage.draining("i-2");
            }),
            ("one is missing", |stage| stage.desired.replicas = 5),
            ("a rollout is due", |stage| {
                stage.new_image();
            }),
            ("the user protects them", |stage| {
                for id in ["i-1", "i-3", "i-4"] {
                    stage.instance(id).asg_machine.as_mut().unwrap().do_not_disrupt = true;
                }
            }),
        ];
        for (what, change) in changes {
            let mut stage = out_of_balance(minutes(10));
            change(&mut stage);
            assert_eq!(stage.plan().zone_replacement, None, "{what}");
        }
    }

    /// AWS has no capacity in the empty zone, and launched the replacement in the full one.
    #[test]
    fn a_replacement_whose_surge_is_not_launched_is_given_up() {
        let mut stage = out_of_balance(minutes(80));
        stage.memory.zone_balance.planned(Some(&"i-1".to_owned()), &stage.observed, minutes(5));
        assert_eq!(decide(&stage.input(), &Outdated::default()).0.as_deref(), Some("i-1"));
        stage.memory.launches.fail();
        assert_eq!(decide(&stage.input(), &Outdated::default()).0, None);
        stage.draining("i-1");
        assert_eq!(decide(&stage.input(), &Outdated::default()).0.as_deref(), Some("i-1"), "it has begun");
    }

    #[test]
    fn a_replacement_without_effect_is_repeated_an_hour_later() {
        let mut stage = out_of_balance(minutes(80));
        let plan = |stage: &Stage, memory: &PoolMemory, at: DateTime<Utc>| {
            let input = stage.input();
            decide(&Input { memory, now: at, ..input }, &Outdated::default())
        };
        let mut memory = stage.memory.clone();
        memory.zone_balance.planned(Some(&"i-1".to_owned()), &stage.observed, minutes(75));
        assert_eq!(plan(&stage, &memory, minutes(74)).0.as_deref(), Some("i-1"), "until it has left");
        let mut replacement = stage.observed.instances.remove("i-1").unwrap();
        assert_eq!(plan(&stage, &memory, minutes(73)).0.as_deref(), Some("i-1"), "and is replaced");
        replacement.asg_machine.as_mut().unwrap().instance_id = "i-5".to_owned();
        stage.observed.instances.insert("i-5".to_owned(), replacement);
        assert_eq!(plan(&stage, &memory, minutes(70)).0, None);
        memory.zone_balance.planned(None, &stage.observed, minutes(70));
        let (replaced, part) = plan(&stage, &memory, minutes(69));
        assert_eq!((replaced, part.requeue_after), (None, Some(TimeDelta::minutes(59))));
        assert!(plan(&stage, &memory, minutes(10)).0.is_some());
    }
}
