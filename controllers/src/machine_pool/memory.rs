//! What this process remembers of a pool between reconciles. Losing it costs time, never correctness: everything
//! durable is an annotation, a tag or the cloud's own state.

use std::collections::BTreeMap;

use capasg_api::{
    pool::{RolloutStatus, RolloutWait},
    time::to_second,
};
use capasg_cloud::{CloudError, Write};
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    launches::LaunchWatch,
    observe::{BootstrapDigest, EndCause, NamedImage, Scene},
    retry::KnownWish,
    state::Memory,
};
use crate::backoff::{Failures, PERMANENT};

/// The memory of one pool.
#[derive(Debug, Default)]
pub struct PoolMemory {
    /// What decide remembers.
    pub(super) decide: Memory,
    /// Whether what the pool's status told was taken over from the process before.
    pub(super) knows_status: bool,
    /// The UID of the pool that this process reported as provisioned: a cache that stalls does not show it.
    pub(super) provisioned: Option<String>,
    /// Region and group that the pool looks at.
    pub(super) watching: Option<(String, String)>,
    /// Whether launches succeed.
    pub(super) launches: LaunchWatch,
    /// The bootstrap data as last read.
    pub(super) bootstrap: Option<BootstrapDigest>,
    /// What a person wishes, hashed once for each edit.
    pub(super) wish: KnownWish,
    /// What AWS refuses, by kind of step.
    pub(super) refused: Refused,
    /// What AWS has just done.
    pub(super) answered: Answered,
    /// Why AWS ends instances that we did not ask it to end.
    pub(super) ends: BTreeMap<String, EndCause>,
    /// Whether a rollout was under way when it was last told; the pool's status says so, too, but may lag.
    pub(super) rolling_out: Option<bool>,
    /// Why AWS does not tell of instance types, as an event said.
    pub(super) types_refused: Option<String>,
    /// The generation for which the last report of another process found the group in order; 0 for none.
    pub(super) found_whole: Option<i64>,
    /// The paths that somebody else changed and what an event said of them, and when.
    pub(super) drift_told: Vec<((String, String), DateTime<Utc>)>,
    /// The image that the spec's parameter named when it was last read.
    pub(super) named_image: Option<NamedImage>,
    /// Whether an event told that the group was adopted: the pool's record of it may lag.
    pub(super) adoption_told: bool,
    /// The obstacle that an event was published for.
    pub(super) announced: Option<String>,
}

/// However long a rollout has waited for new instances when a process takes it over, it waits at least this much longer
/// before it is stopped: nobody made Machines of what was launched in the meantime.
const GRACE: TimeDelta = TimeDelta::minutes(5);

impl PoolMemory {
    /// Goes on with what the process before told of the rollout.
    pub(super) fn take_over_rollout(&mut self, scene: &Scene, now: DateTime<Utc>) {
        if std::mem::replace(&mut self.knows_status, true) {
            return;
        }
        self.decide.rollout = scene.pool.status.as_ref().and_then(|status| status.rollout.clone());
        let deadline = scene.pool.spec.rollout(1).progress_deadline;
        let latest = to_second(now - (deadline - GRACE).max(TimeDelta::zero()));
        // Only this wait has a deadline; since when a rollout waits for something else is told as it was.
        let waiting = |rollout: &&mut RolloutStatus| rollout.waiting_for == Some(RolloutWait::NewInstances);
        let rollout = self.decide.rollout.as_mut().filter(waiting);
        if let Some(since) = rollout.and_then(|rollout| rollout.waiting_since.as_mut()) {
            *since = (*since).max(latest);
        }
    }
}

/// What AWS refuses: tried again after a growing delay, or at once when a person changes something.
#[derive(Debug, Default)]
pub struct Refused(BTreeMap<&'static str, Refusal>);

/// One refusal.
#[derive(Debug)]
pub struct Refusal {
    /// AWS's answer.
    pub error: CloudError,
    failures: Failures,
    retry_key: String,
}

impl Refused {
    /// Whether a step must not be tried now.
    #[must_use]
    pub fn holds(&self, write: &Write, retry_key: &str, now: DateTime<Utc>) -> bool {
        // Ends have a pace of their own: the mark on the ASGMachine.
        let paced = matches!(write, Write::TerminateInstances { .. });
        !paced
            && self
                .0
                .get(kind(write))
                .is_some_and(|refusal| refusal.retry_key == retry_key && refusal.failures.wait(now).is_some())
    }

    /// Records a refusal; tells whether it says something new, so that an event is due.
    pub fn add(&mut self, write: &Write, error: CloudError, retry_key: &str, now: DateTime<Utc>) -> bool {
        let before = self.0.get(kind(write));
        let is_news = before.is_none_or(|b| b.error.message != error.message);
        let same_try = before.filter(|b| b.retry_key == retry_key).map(|b| &b.failures);
        let failures = Failures::after(same_try, PERMANENT, now);
        self.0.insert(kind(write), Refusal { error, failures, retry_key: retry_key.to_owned() });
        is_news
    }

    /// A step of this kind went through.
    pub fn clear(&mut self, write: &Write) {
        self.0.remove(kind(write));
    }

    /// Drops refusals of steps that are not planned any more.
    pub fn keep_planned<'a>(&mut self, planned: impl Iterator<Item = &'a Write>) {
        let kinds: Vec<&'static str> = planned.map(kind).collect();
        self.0.retain(|known, _| kinds.contains(known));
    }

    /// The refusal of one of these kinds of step.
    #[must_use]
    pub fn of(&self, kinds: &[&str]) -> Option<&CloudError> {
        self.0.iter().find(|(known, _)| kinds.contains(*known)).map(|(_, refusal)| &refusal.error)
    }

    /// The refusal of any other kind of step than these.
    #[must_use]
    pub fn beside(&self, kinds: &[&[&str]]) -> Option<&CloudError> {
        let known = |kind: &str| kinds.iter().any(|some| some.contains(&kind));
        self.0.iter().find(|(kind, _)| !known(kind)).map(|(_, refusal)| &refusal.error)
    }

    /// When the next try is due.
    #[must_use]
    pub fn next_try(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        // One that is due but was not planned waits for a view to settle.
        self.0.values().map(|r| r.failures.wait(now).unwrap_or(TimeDelta::seconds(1))).min()
    }
}

/// After its answer a write is not repeated for this long: a read may show what was before, however late it began.
const SETTLES: TimeDelta = TimeDelta::seconds(5);

/// The changes of a group that AWS has just made, the last of each kind.
#[derive(Debug, Default)]
pub struct Answered(BTreeMap<&'static str, (Write, DateTime<Utc>)>);

impl Answered {
    /// AWS answered well. Ends and hook actions have a pace of their own, and templates are not read with a lag.
    pub fn note(&mut self, write: &Write, now: DateTime<Utc>) {
        match write {
            Write::CreateGroup(_) => self.0.clear(),
            Write::TerminateInstances { .. }
            | Write::CompleteLifecycleAction { .. }
            | Write::RecordLifecycleActionHeartbeat { .. } => {}
            write if write.group().is_some() => {
                self.0.insert(kind(write), (write.clone(), now));
            }
            _ => {}
        }
    }

    /// How long the same write must wait.
    #[must_use]
    pub fn wait(&self, write: &Write, now: DateTime<Utc>) -> Option<TimeDelta> {
        let (_, at) = self.0.get(kind(write)).filter(|(last, _)| last == write)?;
        Some(*at + SETTLES - now).filter(|wait| *wait > TimeDelta::zero())
    }
}

/// Changes of settings and of capacity are the same call but different wishes: one refused must not hold the other.
#[must_use]
pub fn kind(write: &Write) -> &'static str {
    match write {
        Write::UpdateGroup { change, .. }
            if change.desired.is_some() || change.min.is_some() || change.max.is_some() =>
        {
            "capacity"
        }
        Write::SetDesiredCapacity { .. } => "capacity",
        other => other.api(),
    }
}
