//! What metrics receive: the state of each pool when it is reported, and what happens to pools.

use capasg_api::conditions::ConditionState;
use chrono::{DateTime, TimeDelta, Utc};

use crate::ObjectKey;

/// Receives the state of pools and what happens to them, for metrics.
pub trait PoolObserver: Send + Sync + 'static {
    /// The gauges of a pool, which was just reported. They replace the previous ones.
    fn reported(&self, pool: &ObjectKey, gauges: PoolGauges);
    /// Something happened to a pool.
    fn happened(&self, pool: &ObjectKey, event: PoolEvent);
    /// The pool does not exist any more.
    fn forgotten(&self, pool: &ObjectKey);
}

/// Receives nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl PoolObserver for NoObserver {
    fn reported(&self, _: &ObjectKey, _: PoolGauges) {}
    fn happened(&self, _: &ObjectKey, _: PoolEvent) {}
    fn forgotten(&self, _: &ObjectKey) {}
}

/// The state of a pool in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolGauges {
    /// The name of its Cluster; empty while it is not known.
    pub cluster: String,
    /// Its AWS region.
    pub region: String,
    /// The name of its Auto Scaling group; empty while it does not exist.
    pub group: String,
    /// `status.phase`.
    pub phase: &'static str,
    /// The replicas.
    pub replicas: Replicas,
    /// Its conditions.
    pub conditions: Vec<ConditionState>,
    /// Its rollout; `None` if no instance is outdated.
    pub rollout: Option<RolloutGauges>,
    /// Its drains in progress.
    pub drains: DrainGauges,
    /// Since when at least the bootstrap data with a token that new instances receive have existed; `None` if the data
    /// contain no token that rotates, or are not known.
    pub token_since: Option<DateTime<Utc>>,
}

/// The numbers of replicas in the status of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replicas {
    /// Requested replicas.
    pub desired: i32,
    /// Instances.
    pub current: i32,
    /// Ready Machines.
    pub ready: i32,
    /// Instances that match the spec.
    pub up_to_date: i32,
    /// Instances that are outdated.
    pub outdated: i32,
}

/// A rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutGauges {
    /// When it started.
    pub started_at: Option<DateTime<Utc>>,
    /// What it waits for, and since when.
    pub waiting: Option<(&'static str, DateTime<Utc>)>,
}

/// The drains of a pool that are in progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainGauges {
    /// Their number.
    pub count: usize,
    /// When the oldest began.
    pub since: Option<DateTime<Utc>>,
}

/// Something that happened to a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolEvent {
    /// AWS failed to launch an instance, for this reason of condition `ScalingHealthy`.
    LaunchFailed(&'static str),
    /// A drain ended: the time from the deletion of the Machine to the deletion of its ASGMachine.
    Drained(TimeDelta),
    /// The node of a new instance became ready for the first time: the time from the launch of the instance.
    NodeReady(TimeDelta),
    /// EC2 reclaimed a Spot instance.
    Interrupted(InterruptionOutcome),
}

/// What became of a Spot instance that EC2 reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InterruptionOutcome {
    /// A notice was received, and its node was drained before.
    Drained,
    /// A notice was received, and the instance terminated before the drain was complete.
    NotDrained,
    /// No notice was received.
    NoNotice,
}

impl InterruptionOutcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Drained, Self::NotDrained, Self::NoNotice];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Drained => "Drained",
            Self::NotDrained => "NotDrained",
            Self::NoNotice => "NoNotice",
        }
    }
}
