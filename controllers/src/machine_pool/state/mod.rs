//! What decide works on: the wish (`Desired`), the facts (`Observed`), what is remembered, and the answer (`Plan`).

mod capacity_writes;
mod desired;
mod observed;
mod plan;
mod read_lag;

use std::collections::BTreeMap;

use capasg_api::pool::RolloutStatus;
use chrono::{DateTime, Utc};

pub use capacity_writes::CapacityWrites;
pub use desired::{Bounds, Desired, LaunchWish, MachinePoolRef, ReplicaOwner, ScaleInOrder, WantedSettings};
pub use observed::{AsgMachineRef, GroupView, MachineRef, Member, MemberFacts, Observed, TemplateView};
pub use plan::{DeletionPhase, Difference, Needs, Obstacle, Plan, RefreshEnd, RolloutPhase, Step};
pub use read_lag::reads_behind;

use crate::ObjectKey;

/// One case to decide: everything that decisions depend on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The wish.
    pub desired: &'a Desired,
    /// The facts.
    pub observed: &'a Observed,
    /// What this process remembers.
    pub memory: &'a Memory,
    /// The namespace of the pool and of its Machines.
    pub namespace: &'a str,
    /// The time.
    pub now: DateTime<Utc>,
}

impl Memory {
    /// The rollout waits anew for what it waits for: time in which nothing could happen does not count.
    pub fn wait_anew(&mut self) {
        if let Some(rollout) = &mut self.rollout {
            rollout.waiting_since = None;
        }
    }

    /// Our hook has this heartbeat time-out, in seconds. Another one counts for what is held already only from its next
    /// heartbeat on, which is due then.
    pub fn holds_for(&mut self, seconds: i32) {
        if self.hook_timeout.replace(seconds) != Some(seconds) {
            self.extended.clear();
        }
    }

    /// Notes whether AWS answers. Time in which it did not does not count.
    pub fn see_whether_blind(&mut self, blind: bool) {
        if std::mem::replace(&mut self.blind, blind) && !blind {
            self.wait_anew();
        }
    }

    /// Notes what wish and group agree on, as a settled view shows it.
    pub fn note_agreed(&mut self, observed: &Observed, plan: &Plan) {
        let Some(group) = observed.group.present().filter(|_| observed.group.is_settled()) else { return };
        let known = |path: &String| plan.agreed.contains_key(path);
        let differs = |path: &String| plan.differences.iter().any(|difference| difference.path == *path);
        self.agreed.retain(|path, _| known(path) || differs(path));
        for (path, wanted) in &plan.agreed {
            if self.agreed.get(path) != Some(wanted) {
                self.agreed.insert(path.clone(), wanted.clone());
            }
        }
        if !plan.sets_bounds() {
            self.bounds = Some(Bounds { min: group.capacity.min, max: group.capacity.max });
        }
    }
}

impl Case<'_> {
    /// When an instance was first seen ending or missing.
    #[must_use]
    pub fn first_seen(&self, id: &str) -> DateTime<Utc> {
        self.memory.first_seen.get(id).copied().unwrap_or(self.now)
    }

    /// The key of a Machine or ASGMachine of the pool.
    #[must_use]
    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.namespace, name)
    }
}

/// What this process remembers of a pool between reconciles; losing it costs time, never correctness.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of which holds or does not")]
pub struct Memory {
    /// What is to be rolled out (`rollout::identity`), and since when it is known.
    pub wish: Option<(String, DateTime<Utc>)>,
    /// What the pool's status said last of its rollout.
    pub rollout: Option<RolloutStatus>,
    /// Whether AWS does not answer, so that what is observed may be old.
    pub blind: bool,
    /// The mark of a stopped rollout that this process wrote and has not seen yet.
    pub stopped: Option<String>,
    /// Since when fewer instances live than are desired.
    pub lacking_since: Option<DateTime<Utc>>,
    /// When instances had last been lacking for long.
    pub lacked_at: Option<DateTime<Utc>>,
    /// Whether AWS refused the last change of what the group launches: a refresh may be under way.
    pub launch_refused: bool,
    /// Whether AWS refused to roll a refresh back.
    pub rollback_refused: bool,
    /// When AWS was last asked for an instance refresh: listings may be behind it.
    pub refresh_asked: Option<DateTime<Utc>>,
    /// When AWS was last asked to end one, or to roll it back.
    pub refresh_end_asked: Option<DateTime<Utc>>,
    /// Whether AWS refused the last batch of ends.
    pub ends_refused: bool,
    /// Hash of what a person can change about the pool, bootstrap data and replicas apart.
    pub wish_key: String,
    /// What it was when AWS was first seen to have suspended processes by itself, and the annotation `retry` then.
    pub suspended_under: Option<(String, Option<String>)>,
    /// Whether launches are known to fail: what lacks is not about to come.
    pub launches_fail: bool,
    /// Desired capacity as this process wrote it.
    pub capacity: CapacityWrites,
    /// What was wished of each attribute of the group when wish and group last agreed on it, by path.
    pub agreed: BTreeMap<String, String>,
    /// Whether the last report found everything as this generation of the spec wishes it: what differs for a new process
    /// was changed by somebody else.
    pub reported_whole: bool,
    /// The group's bounds that this process wrote last, or found to be right.
    pub bounds: Option<Bounds>,
    /// When this process first looked at the pool: reads may be behind what the process before it wrote until then.
    pub began: Option<DateTime<Utc>>,
    /// Whether this process reported that somebody else manages replicas.
    pub told_external: bool,
    /// What this process wrote last to the MachinePool's replicas, and when.
    pub replicas_written: Option<(i32, DateTime<Utc>)>,
    /// Since when the group is known to be missing.
    pub absent_since: Option<DateTime<Utc>>,
    /// Since when the group is known without an owner.
    pub unowned_since: Option<DateTime<Utc>>,
    /// When this process gave the group the pool's owner id.
    pub adopted_at: Option<DateTime<Utc>>,
    /// When an instance was first seen ending or missing.
    pub first_seen: BTreeMap<String, DateTime<Utc>>,
    /// When the end of an instance was asked for.
    pub end_requested: BTreeMap<String, DateTime<Utc>>,
    /// When AWS took our call to end an instance.
    pub ended: BTreeMap<String, DateTime<Utc>>,
    /// Where and when an instance was last shown by its group.
    pub shown: BTreeMap<String, (String, DateTime<Utc>)>,
    /// When our finalizer was removed from an instance's ASGMachine.
    pub released: BTreeMap<String, DateTime<Utc>>,
    /// When an instance's lifecycle action was last completed.
    pub completed: BTreeMap<String, DateTime<Utc>>,
    /// The heartbeat time-out of our hook as it was last read or written, in seconds.
    pub hook_timeout: Option<i32>,
    /// When an instance's lifecycle action was last extended by a heartbeat.
    pub extended: BTreeMap<String, DateTime<Utc>>,
}
