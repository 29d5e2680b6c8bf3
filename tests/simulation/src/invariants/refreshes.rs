//! What AWS replaces for us: refreshes start in turn and within the budget, none is repeated for the same wish, none goes
//! on that is not wanted any more, and nothing is replaced beside one.

use capasg_api::pool::RolloutType;
use capasg_cloud::{Clock, StartRefresh, Write};
use capasg_controllers::{ObjectKey, kubernetes::KubeWrite};
use capasg_fake_aws::{Change, RefreshGlance};
use chrono::{DateTime, TimeDelta, Utc};

use super::seen::capacity::LANDED;
use super::state::{Inner, Invariants};
use crate::{Pool, cloud::MANAGER};

/// A listing is believed for this long before an instance is replaced beside what it shows.
pub(super) const BELIEVED: TimeDelta = TimeDelta::seconds(15);
/// Refreshes that succeed and leave something outdated are two within this time at most.
const IN_VAIN: TimeDelta = TimeDelta::hours(1);
/// A refresh that is not wanted any more is cancelled within this time, if nothing goes wrong.
const CANCELLED: TimeDelta = TimeDelta::minutes(2);
/// And by so many reconciles: listing, telling, calling, and once more.
const RECONCILES: usize = 6;

/// How many instances AWS takes away at once if it keeps so many percent: one at least.
fn at_once(replicas: i64, kept: i64) -> i64 {
    (replicas - (replicas * kept + 99) / 100).max(1)
}

impl Invariants {
    /// A call for a refresh that had its effect: which one it was, and what it was for when it was sent. It may land late.
    pub(super) fn note_refresh(&self, inner: &mut Inner, change: &Change) {
        if change.action != "StartInstanceRefresh" || change.by.as_deref() != Some(MANAGER) {
            return;
        }
        let Some(group) = &change.group else { return };
        let sent = inner.refreshes.sent.remove(group).filter(|(then, _)| self.clock.now() - *then <= LANDED);
        let wish = sent.map(|(_, wish)| wish).or_else(|| self.desired_state(inner));
        if let (Some(started), Some(wish)) = (self.refreshes(group).pop(), wish) {
            inner.refreshes.ours.insert(started.id, wish);
        }
    }

    pub(super) fn refreshes(&self, group: &str) -> Vec<RefreshGlance> {
        self.simulator.refreshes(&self.at(group), group)
    }

    /// A reconcile begins: what is rolled out may have changed. A preview rolls nothing out, and a pause changes nothing of
    /// what is rolled out until it ends (F1).
    pub(super) fn note_rollout(&self, inner: &mut Inner, pool: &ObjectKey, now: DateTime<Utc>) {
        if inner.paused.is_reconciled_paused() {
            return;
        }
        if inner.begun.previews() {
            inner.refreshes.since.remove(pool);
            return;
        }
        let Some(wish) = self.desired_state(inner) else { return };
        let since = &mut inner.refreshes.since;
        if since.get(pool).is_none_or(|(known, _)| *known != wish) {
            since.insert(pool.clone(), (wish, now));
        }
    }

    /// Keeps when a rollout is over.
    pub(super) fn note_refreshes(&self, inner: &mut Inner, write: &KubeWrite) {
        if let KubeWrite::PatchPoolStatus { pool, status, .. } = write
            && status.rollout.is_none()
            && (inner.refreshes.ours.is_empty() || !self.has_another_image(inner, pool))
        {
            inner.refreshes.since.remove(pool);
        }
    }

    /// Keeps which refreshes we ask AWS to end, also where the call is lost: we believe that it was heard.
    pub(super) fn note_end(&self, inner: &mut Inner, write: &Write) {
        if let Write::CancelInstanceRefresh { group } | Write::RollbackInstanceRefresh { group } = write {
            inner.refreshes.ended.extend(self.refreshes(group).pop().map(|last| last.id));
        }
    }

    /// A person lets a rollout go on.
    pub(super) fn refreshes_go_on(inner: &mut Inner, pool: &ObjectKey) {
        inner.refreshes.since.remove(pool);
    }

    /// What a start of ours has to keep to.
    pub(super) fn judge_start(&self, inner: &mut Inner, now: DateTime<Utc>, write: &Write) {
        let Write::StartInstanceRefresh(start) = write else { return };
        let Some(pool) = Self::pool_of_group(inner, &start.group) else { return };
        Self::refreshes_start_in_turn(inner, now, &pool);
        Self::refreshes_start_within_the_budget(inner, now, start);
        self.refreshes_are_not_repeated(inner, now, &pool);
        // One that landed at once was noted before.
        let is_landed =
            |one: &RefreshGlance| one.asked >= inner.begun.at && inner.refreshes.ours.contains_key(&one.id);
        if !self.refreshes(&start.group).iter().any(is_landed)
            && let Some(wish) = self.desired_state(inner)
        {
            inner.refreshes.sent.insert(start.group.clone(), (now, wish));
        }
    }

    /// A refresh is started only where the spec wants AWS to replace instances, and while rollouts may begin something:
    /// not paused, not only shown, not stopped, a window open.
    fn refreshes_start_in_turn(inner: &mut Inner, now: DateTime<Utc>, pool: &Pool) {
        const RULE: &str = "refreshes_start_in_turn";
        if let Some(hold) = inner.begun.hold(now) {
            inner.breaks(now, RULE, format!("a refresh was started: {hold:?}"));
        }
        let type_ = inner.begun.both().map(|(object, owner)| object.spec.rollout(owner.replicas()).type_);
        if type_ != Some(RolloutType::InstanceRefresh) {
            inner.breaks(now, RULE, format!("a refresh was started: {type_:?}"));
        }
        if inner.stopped.is_stopped(&pool.key) {
            inner.breaks(now, RULE, "a refresh was started: the rollout is stopped".to_owned());
        }
    }

    /// What AWS may take away at once is no more than `maxDisrupted` lets a rollout; one is the least that AWS takes.
    ///
    /// Exempt: a group that somebody else sizes.
    fn refreshes_start_within_the_budget(inner: &mut Inner, now: DateTime<Utc>, start: &StartRefresh) {
        let (Some(most), Some(replicas)) = (inner.begun.most(true, now), inner.begun.replicas()) else {
            return;
        };
        let kept = i64::from(start.preferences.min_healthy_percentage);
        let taken = at_once(replicas, kept);
        if taken > most.max(1) {
            let what = format!("{taken} of {replicas} may be taken at once, {most} may be disrupted");
            inner.breaks(now, "refreshes_start_within_the_budget", what);
        }
    }

    /// A refresh of ours that did not succeed is not repeated for the same wish, unless we ended it; and no more than two
    /// within an hour succeed for the same wish.
    ///
    /// Exempt: what is rolled out has changed since it failed or its cancellation was requested, changes were only
    /// previewed in between, nothing was left in between, or a person let it go on.
    fn refreshes_are_not_repeated(&self, inner: &mut Inner, now: DateTime<Utc>, pool: &Pool) {
        const RULE: &str = "refreshes_are_not_repeated";
        let Some((wish, since)) = inner.refreshes.since.get(&pool.key).cloned() else { return };
        let seen = &inner.refreshes;
        let earlier: Vec<RefreshGlance> = self
            .refreshes(&pool.group)
            .into_iter()
            .filter(|one| one.asked < inner.begun.at && one.ended.is_some())
            .filter(|one| one.cancelled.or(one.ended).is_some_and(|failed| failed >= since))
            .filter(|one| seen.ours.get(&one.id) == Some(&wish) && !seen.ended.contains(&one.id))
            .collect();
        if let Some(failed) = earlier.last().filter(|one| one.status != "Successful") {
            let what = format!("{} was {}, and is repeated", failed.id, failed.status);
            return inner.breaks(now, RULE, what);
        }
        // One that was requested before belongs to a rollout that was over since.
        let counts =
            |one: &&RefreshGlance| one.asked >= since && one.ended.is_some_and(|ended| now - ended < IN_VAIN);
        let lately = earlier.iter().filter(counts).count();
        if lately >= 2 {
            inner.breaks(now, RULE, format!("{lately} refreshes succeeded within an hour for the same wish"));
        }
    }

    /// A reconcile is over: `went_well` if it did all it wanted.
    ///
    /// A refresh that takes instances away although rollouts are paused, no window is open, or the budget is smaller by
    /// now, is cancelled within two minutes and some reconciles that go well.
    ///
    /// Exempt: one of somebody else's, while no ASGMachine tells that it ends its instance.
    pub(crate) fn unwanted_refreshes_are_cancelled(&self, key: &ObjectKey, went_well: bool) {
        if !went_well {
            return;
        }
        let mut inner = self.inner();
        let now = self.clock.now();
        let Some(pool) = inner.pools.iter().find(|pool| pool.key == *key).cloned() else { return };
        let why = self.unwanted(&inner, &pool, now);
        // What AWS rejects or fails is called again in its time.
        let fails = inner.failures.over(&["CancelInstanceRefresh"]).is_some_and(|over| now < over);
        let Some((id, why)) = why.filter(|_| !fails) else {
            inner.refreshes.unwanted.remove(key);
            return;
        };
        let entry = inner.refreshes.unwanted.entry(key.clone()).or_insert_with(|| (id.clone(), now, 0));
        if entry.0 != id {
            *entry = (id.clone(), now, 0);
        }
        entry.2 += 1;
        let (since, reconciles) = (entry.1, entry.2);
        if now - since > CANCELLED && reconciles > RECONCILES {
            let what = format!("{id} goes on for {} s: {why}", (now - since).num_seconds());
            inner.breaks(now, "unwanted_refreshes_are_cancelled", what);
        }
    }

    /// The refresh that is not wanted any more, as far as the reconcile could know, and why.
    fn unwanted(&self, inner: &Inner, pool: &Pool, now: DateTime<Utc>) -> Option<(String, String)> {
        let (object, owner) = inner.begun.both()?;
        let is_engine = object.spec.rollout(owner.replicas()).type_ == RolloutType::InstanceRefresh;
        // Without an identity it makes no call.
        let is_idle = inner.paused.is_reconciled_paused() || !self.is_reconciled(pool);
        if !is_engine || is_idle || inner.begun.previews() {
            return None;
        }
        let active = self.refreshes(&pool.group).pop().filter(RefreshGlance::replaces)?;
        if !inner.refreshes.ours.contains_key(&active.id) && !inner.begun.refreshed {
            return None;
        }
        if let Some(hold) = inner.begun.hold(now) {
            return Some((active.id, format!("{hold:?}")));
        }
        let (most, replicas) = inner.begun.most(true, now).zip(inner.begun.replicas())?;
        let taken = at_once(replicas.max(1), active.kept);
        (taken > most.max(1))
            .then(|| (active.id, format!("{taken} may be taken at once, {most} may be disrupted")))
    }

    /// While AWS replaces instances, whoever asked it to, we replace none.
    ///
    /// Exempt: a pool that replaces instances itself, until an ASGMachine tells that a refresh ends its instance.
    pub(super) fn nothing_is_replaced_beside_a_refresh(
        &self,
        inner: &mut Inner,
        now: DateTime<Utc>,
        machine: &ObjectKey,
    ) {
        let Some(pool) = Self::pool_of_machine(inner, machine) else { return };
        let Some((object, owner)) = inner.begun.both() else { return };
        let is_engine = object.spec.rollout(owner.replicas()).type_ == RolloutType::InstanceRefresh;
        if !is_engine && !inner.begun.refreshed {
            return;
        }
        let lag = TimeDelta::milliseconds(self.read_lag_millis.cast_signed());
        let known = inner.begun.at - BELIEVED - lag;
        let active = self.refreshes(&pool.group).pop().filter(|one| one.ended.is_none());
        if let Some(active) = active.filter(|one| one.asked < known) {
            let what = format!("{} was deleted as outdated beside {}", machine.name, active.id);
            inner.breaks(now, "nothing_is_replaced_beside_a_refresh", what);
        }
    }

    /// Tells how refreshes go, if the run is recorded.
    pub(super) fn trace_refreshes(&self, inner: &mut Inner) {
        if !inner.trace.is_recorded() {
            return;
        }
        for pool in inner.pools.clone() {
            for one in self.refreshes(&pool.group) {
                if inner.refreshes.told.insert(one.id.clone(), one.status) != Some(one.status) {
                    inner
                        .trace
                        .add(self.clock.now(), "aws", || format!("refresh {}: {}", one.id, one.status));
                }
            }
        }
    }
}
