//! What the spec says of disruptions holds for all that we begin: `maxDisrupted`, windows, pauses of rollouts, previews,
//! and who is shielded.

use std::collections::BTreeSet;

use capasg_api::{
    capi::Machine,
    names::{annotations, machine_name},
    pool::RolloutType,
    time::from_kubernetes,
};
use capasg_controllers::{
    ObjectKey,
    kubernetes::{DeletionReason, KubeWrite},
    names::SCALE_IN_VALUE,
};
use capasg_fake_aws::InstanceDump;
use chrono::{DateTime, Utc};
use kube::ResourceExt;

use super::refreshes::BELIEVED;
use super::seen::begun::Hold;
use super::seen::capacity::ANSWERED;
use super::seen::limits::{UNSEEN, within_limits};
use super::state::{Inner, Invariants};
use crate::Pool;

/// Whether another actor launched an instance and attached it. EC2 tags what a group launches with its launch template, and an
/// instance that is attached again is as its ASGMachine records.
pub(crate) fn is_attached(one: &InstanceDump) -> bool {
    one.template.is_none() && !one.tags.contains_key("aws:ec2launchtemplate:id")
}

/// A Machine of a pool, with what became of its instance.
struct Node {
    name: String,
    /// Counted by its group.
    counted: bool,
    /// That, or lost so shortly ago that nobody may know.
    stays: bool,
    runs: bool,
    machine: std::sync::Arc<Machine>,
}

impl Node {
    fn has_joined(&self) -> bool {
        self.machine.has_node()
    }

    /// Its end had begun before the reconcile did, or was begun by us.
    fn leaves(&self, inner: &Inner) -> bool {
        let since = self.machine.metadata.deletion_timestamp.as_ref().map(from_kubernetes);
        let known = since.is_some_and(|since| since.timestamp() < inner.begun.at.timestamp());
        known || inner.budget.has_deleted(&self.name)
    }
}

impl Invariants {
    fn nodes(&self, inner: &Inner, pool: &Pool, now: DateTime<Utc>) -> Vec<Node> {
        let counted: BTreeSet<String> =
            self.simulator.counted(&self.at(&pool.group), &pool.group).into_iter().collect();
        let own = format!("{}-", pool.key.name);
        let node = |(name, _, machine): (String, bool, std::sync::Arc<Machine>)| {
            let id = name.strip_prefix(&own).unwrap_or_default();
            let counted = counted.contains(id);
            let since = now - UNSEEN;
            let stays = counted || inner.budget.lost_since(id, since) || inner.budget.taken_since(id, since);
            let runs = self.simulator.runs(&self.at_instance(id), id);
            Node { name, counted, stays, runs, machine }
        };
        self.machines_of(pool).into_iter().map(node).collect()
    }

    /// Taking a working node away, for whatever reason of ours, leaves no more than `maxDisrupted` disrupted: nodes that
    /// drain while their instances run, whoever asked for it, or replicas that have no node, if those are more.
    ///
    /// Exempt: who had not joined when the reconcile began, or whose instance runs no longer; whose drain is excluded; what
    /// AWS ends or is gone; what people began after the reconcile did. Instances that began to end within the last minute
    /// and a half, or that somebody took out of the group, count as staying.
    pub(super) fn disruptions_keep_to_the_most(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
        why: DeletionReason,
    ) {
        let Some(most) = inner.begun.most(why == DeletionReason::Outdated, now) else { return };
        let Some(pool) = Self::pool_of_machine(inner, machine) else { return };
        if !inner.begun.joined.contains(&machine.name) {
            return;
        }
        let nodes = self.nodes(inner, &pool, now);
        if nodes.iter().any(|node| node.name == machine.name && !node.runs) {
            return;
        }
        let leaves = |node: &&Node| node.name == machine.name || node.leaves(inner);
        let drains =
            |node: &&Node| !node.machine.annotations().contains_key(annotations::EXCLUDE_NODE_DRAINING);
        let had_joined = |node: &&Node| inner.begun.joined.contains(&node.name);
        let draining = nodes.iter().filter(had_joined).filter(|node| node.runs);
        let leaving = draining.filter(leaves).filter(drains).count();
        let joined = nodes.iter().filter(|node| node.has_joined() && node.stays && !leaves(node)).count();
        let [leaving, joined] = [leaving, joined].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let missing = inner.begun.replicas().map_or(0, |replicas| replicas - joined);
        if leaving.max(missing) > most {
            let what = format!(
                "{} was deleted ({why:?}): {leaving} drain, {missing} are missing, {most} may be",
                machine.name
            );
            inner.breaks(now, "disruptions_keep_to_the_most", what);
        }
    }

    /// A rollout begins nothing while it is paused, while changes are only shown, or while no window is open; with
    /// `OnDelete` it replaces only what was asked for.
    pub(super) fn held_rollouts_begin_nothing(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
    ) {
        const RULE: &str = "held_rollouts_begin_nothing";
        if let Some(hold) = inner.begun.hold(now) {
            return inner.breaks(now, RULE, format!("{} was deleted as outdated: {hold:?}", machine.name));
        }
        let type_ = inner.begun.both().map(|(object, owner)| object.spec.rollout(owner.replicas()).type_);
        // Whose machine goes anyway is replaced at once.
        if type_ != Some(RolloutType::OnDelete) || inner.is_announced(&machine.name) {
            return;
        }
        let found = self.api.state().asg_machines.get(machine);
        let asked = found.is_none_or(|own| own.annotations().contains_key(annotations::REPLACE));
        if !asked {
            inner.breaks(now, RULE, format!("{} was deleted as outdated: OnDelete", machine.name));
        }
    }

    /// A held rollout keeps what has joined of its surge: giving it back would disrupt when nothing may be.
    ///
    /// Exempt: a rollout that is stopped, which gives its surge back; a Machine that a user marked to go, or we did
    /// before the rollout was held, or whose node had not joined when the reconcile began; what is beyond the surge, or
    /// beyond what is outdated; a pool that is to have no replicas; a group that somebody else sizes, or whose size
    /// somebody changed within the last minutes: what came back from standby is nobody's surge; an instance refresh,
    /// until every listing shows that it has ended.
    pub(super) fn a_held_surge_is_kept(&self, inner: &mut Inner, now: DateTime<Utc>, machine: &ObjectKey) {
        let (Some(hold), Some(replicas)) = (inner.begun.hold(now), inner.begun.replicas()) else { return };
        if inner.begun.is_stopped() {
            return;
        }
        let Some(pool) = Self::pool_of_machine(inner, machine).filter(|_| replicas > 0) else { return };
        if inner.exempt.last_write_of_others(&pool.group).is_some_and(|then| now - then <= ANSWERED) {
            return;
        }
        let nodes = self.nodes(inner, &pool, now);
        let had_joined = |node: &&Node| inner.begun.joined.contains(&node.name);
        let Some(victim) = nodes.iter().filter(had_joined).find(|node| node.name == machine.name) else {
            return;
        };
        let mark = victim.machine.annotations().get(annotations::DELETE_MACHINE);
        let was_marked =
            inner.begun.marked.contains(&machine.name) && !inner.budget.marked_held.contains(&machine.name);
        if mark.is_some_and(|mark| mark != SCALE_IN_VALUE) || was_marked {
            return;
        }
        let stays = |node: &&Node| node.name == machine.name || node.stays && !node.leaves(inner);
        let joined = nodes.iter().filter(had_joined).filter(stays).count();
        let beyond = i64::try_from(joined).unwrap_or(i64::MAX) - replicas;
        let surge = self.surge(inner, &pool, hold, replicas, now);
        if (1..=surge).contains(&beyond) {
            let what = format!(
                "{} was deleted (ScaleIn): {joined} have joined, {replicas} replicas and a surge of {surge} ({hold:?})",
                machine.name
            );
            inner.breaks(now, "a_held_surge_is_kept", what);
        }
    }

    /// Keeps which Machines we mark to go while rollouts are held.
    pub(super) fn note_marks(inner: &mut Inner, now: DateTime<Utc>, write: &KubeWrite) {
        if let KubeWrite::AnnotateDeleteMachine { machine, annotated, .. } = write {
            if *annotated && inner.begun.hold(now).is_some() {
                inner.budget.marked_held.insert(machine.name.clone());
            } else {
                inner.budget.marked_held.remove(&machine.name);
            }
        }
    }

    /// The surge that a held rollout has at least.
    fn surge(&self, inner: &Inner, pool: &Pool, hold: Hold, replicas: i64, now: DateTime<Utc>) -> i64 {
        let Some((object, owner)) = inner.begun.both() else { return 0 };
        let Some(dump) = self.dump() else { return 0 };
        let Some(group) = dump.groups.iter().find(|group| group.name == pool.group) else { return 0 };
        // A percentage refers to the replicas within the bounds of the spec.
        let rollout = object.spec.rollout(within_limits(object, owner));
        // What a refresh launched beyond the replicas, whoever asked for it, is AWS's own to end, as long as a listing may
        // show it.
        let mut refreshes = self.simulator.refreshes(&self.at(&pool.group), &pool.group).into_iter();
        let is_shown = refreshes.any(|one| one.ended.is_none_or(|ended| now - ended <= BELIEVED));
        if rollout.type_ != RolloutType::RollingUpdate || is_shown {
            return 0;
        }
        let drained = |id: &str| {
            let key = ObjectKey::new(&pool.key.namespace, machine_name(&pool.key.name, id));
            let own = self.api.state().asg_machines.get(&key);
            own.is_none_or(|own| own.metadata.deletion_timestamp.is_some())
        };
        // In a preview, outdated is what differs from what the group has; as far as that is told. A new token differs in
        // user data only. What versions of other actors launch is not compared (docs/users/drift.md, "Preview changes").
        let image = object.spec.machine.image.id.as_ref().filter(|_| hold != Hold::Preview);
        let contents = &inner.preview.contents;
        let has = self
            .simulator
            .pinned(&self.at(&pool.group), &pool.group)
            .and_then(|pinned| contents.get(&pinned));
        let has = has.filter(|_| self.simulator.is_pinned_by_number(&self.at(&pool.group), &pool.group));
        let is_old = |one: &InstanceDump| match (hold, &one.template) {
            (Hold::Preview, Some(version)) => {
                has.zip(contents.get(version)).is_some_and(|(has, launched)| has != launched)
            }
            _ => image.is_some_and(|image| *image != one.image),
        };
        let serves = |one: &&InstanceDump| {
            one.group.as_deref() == Some(pool.group.as_str())
                && one.lifecycle_state.as_deref() == Some("InService")
        };
        let (old, new): (Vec<_>, Vec<_>) = dump.instances.iter().filter(serves).partition(|one| is_old(one));
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let outdated = count(old.into_iter().filter(|one| !drained(&one.id)).count());
        let told = object.status.as_ref().and_then(|status| status.rollout.as_ref());
        let told = told.map_or(0, |rollout| i64::from(rollout.outdated));
        let outdated = if hold == Hold::Preview { outdated.min(told) } else { outdated };
        // What is beyond replicas that were just lowered is no surge, unless something was launched for the rollout.
        outdated.min(i64::from(rollout.max_surge)).min(group.desired - replicas).min(count(new.len()))
    }

    /// Who is shielded by `do-not-disrupt` goes only when no other is left to choose.
    ///
    /// Exempt: a Machine that was marked to go before; with `OnDelete`, where people choose; others that go by then, or that
    /// somebody else put back into the group within the last minute and a half; what another actor attached, which the next
    /// requested change replaces (docs/users/terminations.md); whose node had not joined, while a rollout could replace no
    /// other, by the nodes that were ready or by `maxDisrupted`, and nothing drained or was launched (docs/users/rollouts.md).
    pub(super) fn the_shielded_go_last(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
        why: DeletionReason,
    ) {
        if !inner.begun.shielded.contains(&machine.name) {
            return;
        }
        let Some(pool) = Self::pool_of_machine(inner, machine) else { return };
        let Some((object, owner)) = inner.begun.both() else { return };
        let rollout = object.spec.rollout(owner.replicas());
        let own = format!("{}-i-", pool.key.name);
        let ready = inner.begun.ready.iter().filter(|name| name.starts_with(&own)).count();
        let replicas = inner.begun.replicas().or(inner.begun.desired).unwrap_or_default();
        let missing = replicas - i64::try_from(ready).unwrap_or(i64::MAX);
        let no_other = missing >= i64::from(rollout.max_unavailable)
            || inner.begun.most(true, now).is_some_and(|most| missing >= most);
        let drains = |node: &Node| node.name != machine.name && node.runs && node.leaves(inner);
        let counted = self.simulator.counted(&self.at(&pool.group), &pool.group).len();
        let is_launching =
            inner.begun.desired.is_some_and(|desired| i64::try_from(counted).unwrap_or(i64::MAX) < desired);
        let is_quiet = !is_launching && !self.nodes(inner, &pool, now).iter().any(drains);
        let is_blocking = !inner.begun.joined.contains(&machine.name) && no_other && is_quiet;
        if why == DeletionReason::Outdated && (rollout.type_ == RolloutType::OnDelete || is_blocking) {
            return;
        }
        let image = object.spec.machine.image.id.clone();
        let paused = |machine: &Machine| machine.annotations().contains_key(annotations::PAUSED);
        let by_hand = |name: &str| self.asg_machine_goes(&pool, name);
        let own = format!("{}-", pool.key.name);
        let is_back = |name: &str| {
            name.strip_prefix(&own).is_some_and(|id| inner.budget.returned_since(id, now - UNSEEN))
        };
        let others: Vec<Node> = self
            .nodes(inner, &pool, now)
            .into_iter()
            .filter(|node| {
                node.has_joined()
                    && node.counted
                    && node.runs
                    && !node.leaves(inner)
                    && !(node.machine.is_deleting() || paused(&node.machine))
            })
            .filter(|node| !inner.begun.shielded.contains(&node.name) && node.name != machine.name)
            .filter(|node| !by_hand(&node.name) && !is_back(&node.name))
            .collect();
        let other = match why {
            // Whom the same decision marks goes as well.
            DeletionReason::ScaleIn => {
                let marked =
                    |node: &&Node| node.machine.annotations().contains_key(annotations::DELETE_MACHINE);
                others.iter().find(|node| !marked(node)).map(|node| node.name.clone())
            }
            DeletionReason::Outdated => {
                let old = self.dump().into_iter().flat_map(|dump| dump.instances);
                let mut old = old
                    .filter(|one| !is_attached(one))
                    .filter(|one| image.as_ref().is_some_and(|image| *image != one.image))
                    .map(|one| one.id);
                old.find_map(|id| {
                    others.iter().find(|node| node.name.ends_with(&id)).map(|node| node.name.clone())
                })
            }
            _ => None,
        };
        if let Some(other) = other {
            let what = format!("{} is shielded and was deleted ({why:?}) before {other}", machine.name);
            inner.breaks(now, "the_shielded_go_last", what);
        }
    }
}
