//! Decides about capacity (G1): up at once, down by exact victims that are drained before they end.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use capasg_cloud::{Capacity, Group, GroupChange, Write};
use chrono::TimeDelta;

use super::super::state::{Case, Desired, Member, Observed, Plan, ReplicaOwner, ScaleInOrder, reads_behind};
use super::{
    budget::{Budget, disrupts},
    external, members,
    refresh::Refresh,
    rollout::Outdated,
};
use crate::{
    kubernetes::{DeletionReason, KubeWrite},
    names::SCALE_IN_MARK,
};

/// The number of instances to aim at: the replicas of the owner, and the surge of a rollout (design section 4,
/// "Capacity").
#[must_use]
pub fn target(desired: &Desired, surge: i32) -> i32 {
    desired.replicas.saturating_add(surge)
}

/// Plans bounds and desired capacity, and chooses and releases victims. Tells whether capacity is as it should be, so
/// that outdated and unhealthy instances may be replaced.
pub fn decide(
    case: &Case<'_>,
    group: &Group,
    target: i32,
    outdated: &Outdated,
    refresh: &Refresh<'_>,
    plan: &mut Plan,
) -> bool {
    let Case { desired, observed, .. } = *case;
    let have = group.capacity;
    if !observed.group.is_settled() {
        grow_unsettled(case, have, plan);
        return false;
    }
    let live = members::live_count(observed);
    let mut excess = excess(target, have, live);
    if excess > usize::try_from(have.desired - target).unwrap_or(0)
        && !refresh.is_known_to_be_none(case, plan)
    {
        // A refresh launches instances before it ends others: those are its own to end.
        if refresh.active.is_none() {
            return false;
        }
        excess = usize::try_from(have.desired - target).unwrap_or(0);
    }
    match desired.owner {
        ReplicaOwner::External(bounds) => {
            external::bounds_and_replicas(case, bounds, have, plan);
            plan.in_transition |= is_starting(case, have);
            return victims(case, excess, outdated, plan);
        }
        // The report wakes the pool.
        ReplicaOwner::Announced => return false,
        ReplicaOwner::Returning => {
            plan.handed_back = external::hand_back(case, have, plan);
            if !plan.handed_back {
                return false;
            }
        }
        _ => {}
    }
    // Nothing ends by this: what was launched stays counted, launches that never happened are given up.
    let wanted = if target >= have.desired { target } else { have.desired.min(target.max(live)) };
    if let Some(wait) = behind_a_raise(case, have, wanted) {
        match wait {
            Behind::Still(wait) => plan.look_again_within(wait),
            Behind::TheView => plan.needs.fresh_group = true,
        }
        plan.in_transition = true;
        return false;
    }
    let change = bounds(observed, have, Aim { target, wanted, refreshed: refresh.active.is_some() });
    if (wanted < have.desired || change.max < have.max) && !observed.fresh_group {
        // What is in flight at the last poll may run by now, or somebody may have brought some back: lowering past it
        // would let the group pick.
        plan.needs.fresh_group = true;
        return false;
    }
    set(desired, have, change, plan);
    if wanted != have.desired {
        plan.in_transition = true;
        return false;
    }
    // An instance that is launched but not in service is waited for, too.
    plan.in_transition |= is_starting(case, have);
    victims(case, excess, outdated, plan)
}

/// What is behind the last raise of desired capacity.
enum Behind {
    /// Every read, for so long.
    Still(TimeDelta),
    /// This view; a read of now is not.
    TheView,
}

/// Whether a view may be behind our last raise, or behind what that launched: less than the raise would lower desired
/// capacity past what runs by now. The process before this one may have raised it as well.
fn behind_a_raise(case: &Case<'_>, have: Capacity, wanted: i32) -> Option<Behind> {
    let asked = case.memory.capacity.last_asked();
    let ours = asked.filter(|(asked, _)| have.desired <= *asked && wanted < *asked);
    let before = case.memory.began.filter(|_| wanted < have.desired);
    let at = ours.map(|(_, at)| at).max(before)?;
    if let Some(wait) = reads_behind(at, case.now) {
        return Some(Behind::Still(wait));
    }
    case.observed.group.as_of().and_then(|seen| reads_behind(at, seen)).map(|_| Behind::TheView)
}

/// Whether instances are on their way into service. Those that AWS fails to launch are not: they are looked for seldom.
fn is_starting(case: &Case<'_>, have: Capacity) -> bool {
    let in_service = members::in_service_count(case.observed);
    let missing = in_service < have.desired && in_service == members::live_count(case.observed);
    in_service != have.desired && !(missing && case.memory.launches_fail)
}

/// How many of the live instances are too many, those already leaving included. More may live than are desired, if
/// somebody lowered desired while all were protected.
fn excess(target: i32, have: Capacity, live: i32) -> usize {
    // While launches are under way (live below desired) nothing is chosen: the first step above settles that.
    if live < have.desired { 0 } else { usize::try_from(live - target).unwrap_or(0) }
}

/// An absolute write upwards needs no settled view, unless we ourselves wrote more since that view: lowering desired
/// below what runs would let the group pick.
fn grow_unsettled(case: &Case<'_>, have: Capacity, plan: &mut Plan) {
    plan.in_transition = true;
    let target = case.desired.replicas;
    if target > have.desired && !case.memory.capacity.may_be_at_least(target) {
        let aim = Aim { target, wanted: target, refreshed: true };
        set(case.desired, have, bounds(case.observed, have, aim), plan);
    }
}

/// What capacity is to be.
#[derive(Debug, Clone, Copy)]
struct Aim {
    /// In the end.
    target: i32,
    /// Now.
    wanted: i32,
    /// Whether an instance refresh is under way.
    refreshed: bool,
}

/// MinSize is 0 and MaxSize as small as the pool allows, so that nobody else's write can grow or hold the group.
fn bounds(observed: &Observed, have: Capacity, aim: Aim) -> Capacity {
    let Aim { target, wanted, .. } = aim;
    // What is in standby must be able to come back, which is refused beyond MaxSize.
    let standby = members::standby_count(observed);
    let needed = target.max(wanted).max(members::live_count(observed)) + standby;
    // While a refresh launches and ends by turns, bounds do not follow each.
    let max = if aim.refreshed { target.max(wanted).max(have.max) } else { needed };
    Capacity { min: 0, max, desired: wanted }
}

/// Plans one call for bounds and desired capacity. Bounds that leave less room never travel alone: AWS would move desired
/// capacity into them (aws-facts.md 0.8). Those that only leave more room do: a desired capacity that was read a moment
/// ago would take back what somebody else has just brought back from standby.
fn set(desired: &Desired, have: Capacity, to: Capacity, plan: &mut Plan) {
    if to == have {
        return;
    }
    let group = desired.group.clone();
    let write = if (to.min, to.max) == (have.min, have.max) {
        Write::SetDesiredCapacity { group, desired: to.desired }
    } else {
        let widens = to.min <= have.min && to.max >= have.max && to.desired == have.desired;
        let change = GroupChange {
            min: Some(to.min),
            max: Some(to.max),
            desired: (!widens).then_some(to.desired),
            ..GroupChange::default()
        };
        Write::UpdateGroup { group, change: Box::new(change) }
    };
    plan.cloud(write);
}

/// Chooses `excess` victims, marks them durably, deletes their Machines (D7, D8) and takes our mark off the others.
/// Tells whether nobody is to be chosen. Machines are deleted within the budget, in the order of choice; windows do not
/// hold back what a person asked for.
fn victims(case: &Case<'_>, excess: usize, outdated: &Outdated, plan: &mut Plan) -> bool {
    let observed = case.observed;
    let leaving = members::live(observed).filter(|(_, m)| m.is_leaving()).count();
    let count = excess.saturating_sub(leaving);
    let marked_for_nothing =
        || members::live(observed).any(|(_, m)| carries_our_mark(m) && !m.is_leaving()) && count == 0;
    if count == 0 && !marked_for_nothing() {
        return true;
    }
    // A stale cache would pick other victims on the second pass (design section 4, "Choosing"), and a stale poll too many:
    // whoever sizes the group may want more by now, and somebody may have taken instances out of it.
    if !observed.live_machines || (count > 0 && !observed.fresh_group) {
        plan.needs.live_machines = true;
        plan.needs.fresh_group |= count > 0;
        return false;
    }
    let candidates = members::live(observed).filter(|(_, m)| !m.is_leaving() && !m.is_paused()).collect();
    let chosen = choose(candidates, count, case.desired.scale_in_order, outdated);
    let begun: BTreeSet<&String> = {
        let of = |ids: &BTreeSet<&'_ String>, joined: bool| -> Vec<(&String, &Member)> {
            let some = members::live(observed).filter(|(id, m)| ids.contains(id) && disrupts(m) == joined);
            some.collect()
        };
        let room = Budget::of(case).room();
        if room >= chosen.len() {
            chosen.clone()
        } else {
            let mut begun = choose(of(&chosen, true), room, case.desired.scale_in_order, outdated);
            begun.extend(of(&chosen, false).into_iter().map(|(id, _)| id));
            begun
        }
    };
    let mut deletions = Vec::new();
    for (id, member) in members::live(observed).filter(|(_, m)| !m.is_leaving()) {
        // D9: a Machine that core has not made yet is waited for.
        let Some(machine) = &member.machine else { continue };
        let key = case.key(&machine.name);
        let uid = machine.uid.clone();
        if chosen.contains(id) {
            if machine.delete_mark.is_none() {
                plan.kubernetes(KubeWrite::MarkMachine {
                    machine: key.clone(),
                    uid: uid.clone(),
                    marked: true,
                });
            }
            if begun.contains(id) {
                deletions.push(KubeWrite::DeleteMachine { machine: key, uid, why: DeletionReason::ScaleIn });
            }
        } else if carries_our_mark(member) {
            plan.kubernetes(KubeWrite::MarkMachine { machine: key, uid, marked: false });
        }
    }
    for deletion in deletions {
        plan.kubernetes(deletion);
    }
    count == 0
}

fn carries_our_mark(member: &Member) -> bool {
    member.machine.as_ref().and_then(|m| m.delete_mark.as_deref()) == Some(SCALE_IN_MARK)
}

/// Chooses among candidates in the order in which instances go: annotated, not shielded by `do-not-disrupt`, never
/// joined, failing, outdated, zone with most, policy, id (D8).
///
/// Within a zone the order never changes, so that only the first of each zone are compared: a pool of a thousand is sorted
/// once, not once for each that goes.
pub(super) fn choose<'a>(
    candidates: Vec<(&'a String, &'a Member)>,
    count: usize,
    order: ScaleInOrder,
    outdated: &Outdated,
) -> BTreeSet<&'a String> {
    let mut zones: BTreeMap<&str, Vec<(&'a String, &'a Member)>> = BTreeMap::new();
    for candidate in candidates {
        zones.entry(zone(candidate.1)).or_default().push(candidate);
    }
    let alike = BTreeMap::new();
    for of_zone in zones.values_mut() {
        // The last one goes first.
        of_zone.sort_by_cached_key(|(id, member)| Reverse(rank(id, member, &alike, order, outdated)));
    }
    let mut per_zone: BTreeMap<&str, usize> = zones.iter().map(|(name, all)| (*name, all.len())).collect();
    let mut chosen = BTreeSet::new();
    while chosen.len() < count {
        let heads = zones.iter().filter_map(|(name, of_zone)| of_zone.last().map(|head| (*name, head)));
        let next = heads.min_by_key(|(_, (id, member))| rank(id, member, &per_zone, order, outdated));
        let Some(name) = next.map(|(name, _)| name) else { break };
        let head = zones.get_mut(name).and_then(Vec::pop);
        chosen.extend(head.map(|(id, _)| id));
        if let Some(left) = per_zone.get_mut(name) {
            *left -= 1;
        }
    }
    chosen
}

/// Smaller goes first.
fn rank<'a>(
    id: &'a str,
    member: &Member,
    per_zone: &BTreeMap<&str, usize>,
    order: ScaleInOrder,
    outdated: &Outdated,
) -> impl Ord + use<'a> {
    let machine = member.machine.as_ref();
    let annotated = machine.is_some_and(|m| m.delete_mark.is_some());
    let joined = machine.is_some_and(|m| m.has_node);
    let failing = machine.is_some_and(|m| !m.ready || m.needs_remediation)
        || member.instance.as_ref().is_some_and(|i| i.health == capasg_cloud::HealthStatus::Unhealthy);
    let crowd = per_zone.get(zone(member)).copied().unwrap_or(0);
    let age = machine.and_then(|m| m.created_at).map_or(i64::MAX, |t| t.timestamp());
    let policy = match order {
        ScaleInOrder::Oldest => age,
        ScaleInOrder::Newest => age.saturating_neg(),
    };
    (
        !annotated,
        member.is_shielded(),
        joined,
        !failing,
        !outdated.is_outdated(id),
        usize::MAX - crowd,
        policy,
        id,
    )
}

fn zone(member: &Member) -> &str {
    member.instance.as_ref().map_or("", |i| i.zone.as_str())
}
