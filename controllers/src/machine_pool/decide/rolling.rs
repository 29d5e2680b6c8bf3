//! The rolling update: outdated instances are replaced by deleting their Machines, a few at a time, so that core drains
//! their Nodes first. It has no memory but the time for which the wish has been the same: what is rolled out, and how
//! far it is, follows from the launch-template versions of the instances.

use capasg_api::pool::{Opening, RolloutMode};
use capasg_cloud::{Group, HealthStatus, LifecycleState};
use chrono::{DateTime, TimeDelta, Utc};

use super::super::state::{
    Case, Desired, LaunchWish, Member, Memory, Observed, Plan, ReplicaOwner, RolloutPhase,
};
use super::{
    budget::{Budget, disrupts},
    capacity, deadline,
    launch_template::{Pin, pinned_stamp},
    members,
    rollout::{self, Outdated},
};
use crate::kubernetes::{DeletionReason, KubeWrite};

/// A wish is rolled out once it has been the same for this long: `ClusterClass` writes pool, bootstrap config and
/// `MachinePool` one after another, and that is one rollout (design section 4).
pub const STABLE: TimeDelta = TimeDelta::seconds(10);
/// For this long the surge of a rollout under way waits for the template version of its next wish.
pub const HOLD: TimeDelta = TimeDelta::seconds(60);

/// A launch that has been missing for this long fails for a reason: where replicas may be unavailable, the rollout goes
/// on without a surge that AWS does not give.
const LACKS: TimeDelta = TimeDelta::minutes(5);

/// How far a rollout may go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The spec pauses rollouts: what drains goes on, of the surge what has joined is kept.
    Paused,
    /// New instances did not become available in time: what drains goes on, the surge is given back.
    Stopped,
    /// No window is open: as when paused, until the next one opens.
    Closed(Option<(DateTime<Utc>, &'static str)>),
    /// The wish is too young; it may start after this long.
    Settling(TimeDelta),
    /// The group does not launch what is wished yet: what runs is kept, surge included.
    Held,
    /// Held for long, or what is wished is not known: of the surge only what is up to date is kept.
    Stalled,
    /// The wish has had no version for long: AWS refuses it. The surge is given back.
    Refused,
    /// AWS replaces outdated instances, or is to: nothing is added or ended for a rollout by us.
    Refreshing,
    /// The group launches what is wished.
    Open,
}

/// Tells how far a rollout may go.
#[must_use]
pub fn progress(case: &Case<'_>, group: &Group, pin: &Pin) -> Progress {
    let Case { desired, observed, now, .. } = *case;
    if desired.rollout.mode == RolloutMode::Paused {
        return Progress::Paused;
    }
    if deadline::is_stopped(case) {
        return Progress::Stopped;
    }
    if let Opening::Closed { next } = desired.disruption.opening(now) {
        return Progress::Closed(next);
    }
    if matches!(desired.launch, LaunchWish::Unknown) {
        return Progress::Stalled;
    }
    let Some(wish) = rollout::wish(desired, observed) else { return Progress::Held };
    let age = rollout::wish_age(case);
    let has_version = pinned_stamp(observed).is_some_and(|pinned| !pinned.outdated_under(&wish));
    if age < STABLE {
        Progress::Settling(STABLE - age)
    } else if has_version && launches_the_wish(case, group, pin) {
        Progress::Open
    } else if age < HOLD {
        Progress::Held
    } else if has_version {
        Progress::Stalled
    } else {
        Progress::Refused
    }
}

/// Whether what the group launches now is what is wished, types and bootstrap data included: anything else would have
/// to be replaced again.
fn launches_the_wish(case: &Case<'_>, group: &Group, pin: &Pin) -> bool {
    let Pin::Version(version) = pin else { return false };
    group.settings.launch == case.desired.settings.with_template(version.clone()).launch
}

/// The instances beyond the replicas that the rollout has at this moment: as many as are still to be replaced, at most
/// `maxSurge` (H7). An instance counts until it is drained, so that the last ones leave without being replaced and the
/// surge is given back exactly.
#[must_use]
pub fn surge(case: &Case<'_>, group: &Group, outdated: &Outdated, progress: Progress) -> i32 {
    let desired = case.desired;
    // Desired capacity that somebody else writes is never ours to raise (design section 4, "External owner").
    let may_grow = desired.owner == ReplicaOwner::MachinePool && desired.replicas > 0;
    if !may_grow {
        return 0;
    }
    let left = members::count(to_replace(case, outdated).filter(|(_, m)| !m.is_drained()));
    let most = desired.rollout.max_surge.min(left);
    let had = most.min((group.capacity.desired - desired.replicas).max(0));
    match progress {
        Progress::Open if lacks_capacity(case) => had.min(beyond_replicas(case)),
        Progress::Open => most,
        // Neither grown nor given back: a change in the middle of a rollout, or a new process, must not waste it.
        Progress::Settling(_) | Progress::Held => had,
        // This may last, and replicas that are taken back must go.
        Progress::Stalled => {
            let new = members::live(case.observed).filter(|(id, _)| !outdated.is_outdated(id));
            had.min(members::count(new))
        }
        // Giving back what has joined would disrupt when nothing may be disrupted.
        Progress::Paused | Progress::Closed(_) => had.min(joined_beyond_replicas(case)),
        Progress::Stopped | Progress::Refused | Progress::Refreshing => 0,
    }
}

/// Instances beyond the replicas that have joined and stay.
fn joined_beyond_replicas(case: &Case<'_>) -> i32 {
    let joined = members::live(case.observed).filter(|(_, m)| disrupts(m) && !m.is_leaving());
    (members::count(joined) - case.desired.replicas).max(0)
}

/// Whether the rollout goes on without more surge: it may take replicas away, and launches have been missing for long,
/// now or not long ago. Otherwise it would ask and give up by turns.
fn lacks_capacity(case: &Case<'_>) -> bool {
    let recently = |at: DateTime<Utc>| case.now - at < case.desired.rollout.progress_deadline;
    case.desired.rollout.max_unavailable > 0 && case.memory.lacked_at.is_some_and(recently)
}

/// Instances that live beyond the replicas.
fn beyond_replicas(case: &Case<'_>) -> i32 {
    (members::live_count(case.observed) - case.desired.replicas).max(0)
}

/// Notes since when launches are missing.
pub fn note_lack(observed: &Observed, memory: &mut Memory, now: DateTime<Utc>) {
    let Some(group) = observed.group.present().filter(|_| observed.group.is_settled()) else { return };
    if members::live_count(observed) >= group.capacity.desired {
        memory.lacking_since = None;
    } else if now - *memory.lacking_since.get_or_insert(now) >= LACKS {
        memory.lacked_at = Some(now);
    }
}

/// The outdated instances that are to be replaced by us: counted ones, and none that somebody paused.
fn to_replace<'a>(
    case: &Case<'a>,
    outdated: &'a Outdated,
) -> impl Iterator<Item = (&'a String, &'a Member)> + use<'a> {
    let desired = case.desired;
    members::live(case.observed)
        .filter(|(id, m)| outdated.reason(id).is_some_and(|why| why.rolls(desired)) && !m.is_paused())
}

/// How many of the replicas may be unavailable. Where somebody else manages them there is no surge, so that it is one at
/// least.
fn may_be_missing(desired: &Desired) -> i32 {
    match desired.owner {
        ReplicaOwner::MachinePool => desired.rollout.max_unavailable,
        _ => desired.rollout.max_unavailable.max(1),
    }
}

/// Whether an instance does its work: in service, healthy, with a Node that has been ready for `minReadySeconds`, and
/// nobody takes it away.
#[must_use]
pub fn is_available(case: &Case<'_>, member: &Member) -> bool {
    let serves = member
        .instance
        .as_ref()
        .is_some_and(|i| i.lifecycle == LifecycleState::InService && i.health == HealthStatus::Healthy);
    let ready = member.machine.as_ref().is_some_and(|machine| {
        machine.has_node
            && machine.ready
            && machine.ready_since.is_none_or(|since| case.now - since >= case.desired.min_ready)
    });
    serves && ready && !member.is_leaving()
}

/// Deletes the Machines of outdated instances, as far as the budget goes.
///
/// As a Deployment does: what stays is never fewer than `replicas - maxUnavailable` beside the new instances that do
/// not work yet, so that new ones which fail stop the rollout; outdated ones that do not work anyway go first, and of
/// those that work never more than keep that many available. Those with a Node go within the budget for all
/// disruptions, and those that somebody shields with `do-not-disrupt` only when they are the last.
pub fn decide(case: &Case<'_>, outdated: &Outdated, progress: Progress, plan: &mut Plan) {
    let Case { desired, observed, .. } = *case;
    let rolls = matches!(desired.owner, ReplicaOwner::MachinePool | ReplicaOwner::External(_));
    let staying: Vec<(&String, &Member)> = members::live(observed).filter(|(_, m)| !m.is_leaving()).collect();
    if outdated.count() > 0 {
        // Whether anything is rolled or not: how many are updated is told.
        look_at_the_ready(case, &staying, plan);
    }
    if !rolls || to_replace(case, outdated).all(|(_, m)| m.is_leaving()) {
        return;
    }
    match progress {
        Progress::Open => {}
        Progress::Settling(wait) => return plan.look_again_within(wait),
        Progress::Held | Progress::Stalled => return plan.look_again_within(HOLD),
        Progress::Closed(next) => {
            if let Some((at, _)) = next {
                plan.look_again_within(at - case.now);
            }
            return;
        }
        Progress::Paused | Progress::Stopped | Progress::Refused | Progress::Refreshing => return,
    }
    plan.in_transition = true;
    let budget = Budget::of(case);
    if let Opening::Open { until, .. } = budget.opening {
        plan.look_again_within(until - case.now);
    }
    let least = usize::try_from(desired.replicas - may_be_missing(desired)).unwrap_or(0);
    let available = staying.iter().filter(|(_, m)| is_available(case, m)).count();
    let new_failing =
        staying.iter().filter(|(id, m)| !outdated.is_outdated(id) && !is_available(case, m)).count();
    let room = staying.len().saturating_sub(least + new_failing);
    if room == 0 {
        return;
    }
    let old: Vec<(&String, &Member)> = to_replace(case, outdated).filter(|(_, m)| !m.is_leaving()).collect();
    let only_shielded = old.iter().all(|(_, m)| m.is_shielded());
    // D9: a Machine that core has not made yet is waited for.
    let candidates =
        old.into_iter().filter(|(_, m)| m.machine.is_some() && (only_shielded || !m.is_shielded()));
    let (working, idle): (Vec<_>, Vec<_>) = candidates.partition(|(_, m)| is_available(case, m));
    let (idle, unjoined): (Vec<_>, Vec<_>) = idle.into_iter().partition(|(_, m)| disrupts(m));
    let allowed = budget.room_of_rollouts();
    let unjoined_room = room.min(unjoined.len());
    let idle_room = (room - unjoined_room).min(idle.len()).min(allowed);
    let working_room = (room - unjoined_room - idle_room)
        .min(available.saturating_sub(least))
        .min(working.len())
        .min(allowed - idle_room);
    if unjoined_room + idle_room + working_room == 0 {
        return;
    }
    if !members::may_be_chosen(case, plan) {
        return;
    }
    let order = desired.scale_in_order;
    let chosen = [
        capacity::choose(unjoined, unjoined_room, order, outdated),
        capacity::choose(idle, idle_room, order, outdated),
        capacity::choose(working, working_room, order, outdated),
    ];
    for id in chosen.iter().flatten() {
        if let Some(machine) = observed.members.get(*id).and_then(|m| m.machine.as_ref()) {
            plan.kubernetes(KubeWrite::DeleteMachine {
                machine: case.key(&machine.name),
                uid: machine.uid.clone(),
                why: DeletionReason::Outdated,
            });
        }
    }
}

/// Nothing else tells when a Node has been ready for long enough.
fn look_at_the_ready(case: &Case<'_>, staying: &[(&String, &Member)], plan: &mut Plan) {
    let waits = staying.iter().filter_map(|(_, m)| {
        let machine = m.machine.as_ref().filter(|machine| machine.ready)?;
        Some(machine.ready_since? + case.desired.min_ready - case.now)
    });
    if let Some(wait) = waits.filter(|wait| *wait > TimeDelta::zero()).min() {
        plan.look_again_within(wait);
    }
}

/// Where the rollout stands, for conditions. `None` if nothing is to be replaced.
#[must_use]
pub fn phase(case: &Case<'_>, outdated: &Outdated, progress: Progress) -> Option<RolloutPhase> {
    let old: Vec<&Member> = to_replace(case, outdated).map(|(_, m)| m).collect();
    if old.is_empty() {
        let waits = members::live(case.observed).any(|(id, m)| outdated.is_outdated(id) && !m.is_paused());
        return waits.then_some(RolloutPhase::OnDelete);
    }
    let draining: Vec<String> = old
        .iter()
        .filter(|m| m.is_leaving())
        .filter_map(|m| Some(m.machine.as_ref()?.name.clone()))
        .collect();
    Some(match progress {
        Progress::Paused => RolloutPhase::Paused { draining },
        Progress::Stopped => RolloutPhase::Stopped { draining, refresh: None },
        Progress::Closed(next) => RolloutPhase::Closed { draining, next },
        Progress::Settling(_) => RolloutPhase::Settling,
        Progress::Held | Progress::Stalled | Progress::Refreshing => RolloutPhase::Held,
        Progress::Refused => RolloutPhase::Refused,
        Progress::Open => {
            let new = members::live(case.observed)
                .filter(|(id, m)| !outdated.is_outdated(id) && !m.is_leaving() && !is_available(case, m));
            let starting = new.map(|(id, _)| id.clone()).collect();
            let awaits_new = deadline::awaits_new(case, outdated);
            let out_of_budget = Budget::of(case).room_of_rollouts() == 0;
            RolloutPhase::Rolling { draining, starting, awaits_new, out_of_budget }
        }
    })
}
