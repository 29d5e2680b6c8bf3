//! Decides about ASGMachines: one for each live instance, released when the instance is gone.

use capasg_api::names::provider_id;
use capasg_cloud::LifecycleState;
use chrono::{DateTime, TimeDelta, Utc};

use super::super::state::{AsgMachineRef, Case, GroupView, Member, Memory, Observed, Obstacle, Plan};
use super::{endings::retire, notices};
use crate::kubernetes::{DeletionReason, KubeWrite};

/// A list that is older than this shows what happened before.
pub const LIST_LAG: TimeDelta = TimeDelta::seconds(10);
/// An instance that no list showed for this long has left its group; whether it runs is asked this often.
pub const MISSING_FOR: TimeDelta = TimeDelta::seconds(60);

/// An answer that tells nothing is asked for again after this: EC2 may not know yet what was just launched.
const TELLS_NOTHING_FOR: TimeDelta = TimeDelta::seconds(5);

/// What a new ASGMachine is made of; the names and labels are filled in by act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMachine {
    /// The instance's id.
    pub instance: String,
    /// `aws:///<zone>/<id>` (B2).
    pub provider_id: String,
}

/// The instances that want an ASGMachine (D2): live or in standby, and not one whose ASGMachine was just released,
/// as told by a view older than the release.
#[must_use]
pub fn missing(observed: &Observed, memory: &Memory) -> Vec<NewMachine> {
    let Some(as_of) = observed.group.as_of() else { return Vec::new() };
    observed
        .members
        .iter()
        .filter(|(id, member)| {
            let wanted =
                member.lifecycle().is_some_and(|state| state.is_live() || *state == LifecycleState::Standby);
            let released = memory.released.get(*id).is_some_and(|at| *at >= as_of);
            wanted && member.asg_machine.is_none() && !released
        })
        .filter_map(|(id, member)| {
            let zone = &member.instance.as_ref()?.zone;
            Some(NewMachine { instance: id.clone(), provider_id: provider_id(zone, id) })
        })
        .collect()
}

/// Retires the Machines of instances that left the group without us (D11), and releases the ASGMachines whose
/// instance is gone (D10). One that somebody detached while it was drained runs on: it is held until it is gone or back,
/// unless the whole pool is `to_go`, which waits for no machine that its group does not have.
pub fn departed(case: &Case<'_>, to_go: bool, plan: &mut Plan) {
    let observed = case.observed;
    if !observed.group.is_settled() {
        return;
    }
    if out_of_sight(observed, case.memory).next().is_some() {
        // A view of long after tells.
        plan.in_transition = true;
        plan.look_again_within(LIST_LAG);
    }
    let mut detached = Vec::new();
    for (id, member) in observed.members.iter().filter(|(_, m)| !m.is_paused()) {
        let listed = member.lifecycle().is_some_and(|state| *state != LifecycleState::Terminated);
        if listed {
            release_if(case, member, member.is_gone_since(case.first_seen(id)) == Some(true), plan);
            continue;
        }
        if member.is_drained() {
            let runs = member.is_gone_since(case.first_seen(id)) == Some(false);
            if runs && member.instance.is_none() && !to_go {
                ask_again(case, id, member, MISSING_FOR, plan);
                detached.push(id.clone());
                continue;
            }
            let gone = has_left(case, to_go, id, member);
            if !gone {
                ask_again(case, id, member, TELLS_NOTHING_FOR, plan);
            }
            release_if(case, member, gone, plan);
            continue;
        }
        // The list may lag, so the machine itself is asked before its Machine is given up.
        match member.is_gone_since(case.first_seen(id)) {
            None => ask_again(case, id, member, TELLS_NOTHING_FOR, plan),
            Some(true) => retire(case, member, true, DeletionReason::Ended, plan),
            Some(false) => {
                ask_again(case, id, member, MISSING_FOR, plan);
                detached.push(id.clone());
            }
        }
    }
    if !detached.is_empty() && matches!(observed.group, GroupView::Present { .. }) {
        plan.obstacle.get_or_insert(Obstacle::Detached { instances: detached });
    }
    let mut strays = observed.stray_machines.iter().filter(|m| m.deleting_since.is_none()).peekable();
    if strays.peek().is_some() && !observed.live_machines {
        // The cache may show a new Machine before its ASGMachine.
        plan.needs.live_machines = true;
        return;
    }
    for machine in strays {
        plan.kubernetes(KubeWrite::DeleteMachine {
            machine: case.key(&machine.name),
            uid: machine.uid.clone(),
            why: DeletionReason::Ended,
        });
    }
}

/// Hands the `MachinePool`'s limits on how a Machine goes down to its Machines, also to those that go already: core does
/// not (D14). A limit that the `MachinePool` no longer has is taken away, except the one that core defaults.
pub fn timeouts(case: &Case<'_>, plan: &mut Plan) {
    let Some(wanted) = case.desired.timeouts else { return };
    for member in case.observed.members.values().filter(|m| !m.is_paused()) {
        let Some(machine) = &member.machine else { continue };
        let mut deletion = notices::timeouts(member, wanted);
        deletion.node_deletion_timeout_seconds =
            wanted.node_deletion_timeout_seconds.or(machine.timeouts.node_deletion_timeout_seconds);
        if deletion != machine.timeouts {
            plan.kubernetes(KubeWrite::MachineTimeouts {
                machine: case.key(&machine.name),
                uid: machine.uid.clone(),
                deletion,
            });
        }
    }
}

/// Asks for what EC2 says of a machine that its group does not show: at once, and again when the answer is `this_old`,
/// since nothing else tells when it ends.
pub fn ask_again(case: &Case<'_>, id: &str, member: &Member, this_old: TimeDelta, plan: &mut Plan) {
    let answered = member.facts.as_ref().map(|facts| facts.as_of).filter(|at| *at >= case.first_seen(id));
    if answered.is_none_or(|at| case.now - at >= this_old) {
        plan.needs.facts.insert(id.to_owned());
    }
    plan.look_again_within(this_old);
}

/// Whether a drained instance that its group does not list (any more) is gone: EC2 says so, or a view says so that is
/// well younger than AWS's answer to our end. The mark on its ASGMachine does not say it: an end that was marked may
/// never have been asked for, and somebody may have detached the instance since. A pool that is `to_go` waits no longer
/// than any list lags.
fn has_left(case: &Case<'_>, to_go: bool, id: &str, member: &Member) -> bool {
    let ended = case.memory.ended.get(id).copied();
    let is_behind = |(ended, seen): (DateTime<Utc>, DateTime<Utc>)| seen - ended >= LIST_LAG;
    ended.zip(case.observed.group.as_of()).is_some_and(is_behind)
        || member.is_gone_since(case.first_seen(id)) == Some(true)
        || (to_go && case.now - case.first_seen(id) >= MISSING_FOR)
}

/// Takes our finalizer off an ASGMachine that is being deleted and whose instance is gone.
pub fn release_if(case: &Case<'_>, member: &Member, gone: bool, plan: &mut Plan) {
    let Some(machine) = member.asg_machine.as_ref().filter(|m| gone && m.held && m.deleting_since.is_some())
    else {
        return;
    };
    plan.kubernetes(release(case, machine));
}

/// Takes our finalizer off an ASGMachine.
#[must_use]
pub fn release(case: &Case<'_>, machine: &AsgMachineRef) -> KubeWrite {
    KubeWrite::ReleaseAsgMachine {
        machine: case.key(&machine.name),
        uid: machine.uid.clone(),
        instance: machine.instance.clone(),
    }
}

/// Notes where and when instances were last shown, and forgets those that a view of long after does not show: one that is
/// looked at for long shows no more than it did.
pub fn note_shown(observed: &Observed, memory: &mut Memory, now: DateTime<Utc>) {
    for (id, member) in &observed.members {
        let Some(instance) = &member.instance else { continue };
        if !instance.lifecycle.is_terminating() || memory.shown.contains_key(id) {
            memory.shown.insert(id.clone(), (instance.zone.clone(), now));
        }
    }
    let seen = observed.group.as_of().unwrap_or(now);
    memory.shown.retain(|_, (_, at)| seen - *at < LIST_LAG);
}

/// Instances that were shown a moment ago, and are neither shown nor known to be gone.
fn out_of_sight<'a>(
    observed: &'a Observed,
    memory: &'a Memory,
) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    let hidden = memory.shown.iter().filter(|(id, _)| {
        !memory.released.contains_key(*id)
            && observed.members.get(*id).is_none_or(|m| m.instance.is_none() && m.asg_machine.is_none())
    });
    hidden.map(|(id, (zone, _))| (id.as_str(), zone.as_str()))
}

/// The entries of instances whose Machine shows, and whose ASGMachine no cache shows and we did not release: a watch may
/// have stalled, and somebody may have detached the instance.
fn stalled<'a>(
    observed: &'a Observed,
    before: &'a [String],
    memory: &'a Memory,
) -> impl Iterator<Item = String> + use<'a> {
    let is_held = |id: &str| observed.stray(id).is_some() && !memory.released.contains_key(id);
    before.iter().filter(move |listed| listed.rsplit('/').next().is_some_and(is_held)).cloned()
}

/// `spec.providerIDList`: every instance until it is drained and gone, sorted and unique (B1, B3).
///
/// One that ends and has no ASGMachine stays if it was in the list `before`, or if we have just seen it live: the list that a
/// cache shows may be older than the one we wrote then. One that neither group nor ASGMachines show
/// any more stays for a while unless its ASGMachine was released: a view may go back behind the one before, and a cache
/// may not show yet what was just created.
#[must_use]
pub fn provider_id_list(observed: &Observed, before: &[String], memory: &Memory) -> Vec<String> {
    let mut list: Vec<String> = observed
        .members
        .iter()
        .filter_map(|(id, member)| {
            let from_machine = member.asg_machine.as_ref().map(|m| m.provider_id.clone());
            from_machine.or_else(|| {
                let instance = member.instance.as_ref()?;
                let listed = provider_id(&instance.zone, id);
                let known = before.contains(&listed) || memory.shown.contains_key(id);
                let stays = known && !memory.released.contains_key(id);
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
