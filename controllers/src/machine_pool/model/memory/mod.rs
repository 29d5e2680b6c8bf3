//! What this process remembers of a pool between reconciles. Losing it costs time, never correctness: all
//! durable state is in annotations, in tags or in AWS.
//!
//! Each part has its own type, which all steps read; [`record`] alone changes them.
//!
//! Remembered elsewhere: the backoff of reconciles that fail (`runtime.rs`), which pools a group belongs to
//! (`context.rs`), and what was read from AWS (the inventory).

pub mod capacity_view;
pub mod capacity_writes;
mod drift_baseline;
pub mod failed_calls;
mod failed_writes;
mod instance_types;
pub mod launch_change;
pub mod launch_watch;
mod lifecycle_actions;
mod milestones;
pub mod node_startups;
mod ownership;
mod published_events;
mod recent_writes;
pub mod record;
mod refresh_requests;
mod replica_handover;
mod rollout_clock;
pub mod rollout_progress;
mod shortfall;
mod sightings;
mod sources;
mod surplus;
mod suspension;
mod terminations;
mod token_age;
pub mod unknown_versions;
mod zone_balance;

use chrono::{DateTime, Utc};

use capacity_writes::CapacityWrites;
use drift_baseline::DriftBaseline;
use failed_calls::FailedCalls;
use failed_writes::FailedWrites;
use instance_types::InstanceTypeReads;
use launch_change::LaunchChange;
use launch_watch::LaunchWatch;
use lifecycle_actions::LifecycleActions;
use milestones::Milestones;
use node_startups::NodeStartups;
use ownership::Ownership;
use published_events::PublishedEvents;
use recent_writes::RecentWrites;
use refresh_requests::RefreshRequests;
use replica_handover::ReplicaHandover;
use rollout_clock::RolloutClock;
use rollout_progress::RolloutProgress;
use shortfall::Shortfall;
use sightings::Sightings;
use sources::Sources;
use surplus::Surplus;
use suspension::Suspension;
use terminations::Terminations;
use token_age::TokenAge;
use unknown_versions::UnknownVersions;
use zone_balance::ZoneBalance;

pub use published_events::Drift;
pub use sources::{DesiredSource, Registration};

/// The memory of one pool.
#[derive(Debug, Clone, Default)]
pub struct PoolMemory {
    /// When this process first observed the pool: reads may be behind what the previous leader wrote until then.
    began: Option<DateTime<Utc>>,
    /// What the desired state was last made from.
    pub(in crate::machine_pool) sources: Sources,
    /// Who owns the group.
    pub(in crate::machine_pool) ownership: Ownership,
    /// When the group last listed each instance.
    pub(in crate::machine_pool) sightings: Sightings,
    /// The terminations that were requested.
    pub(in crate::machine_pool) terminations: Terminations,
    /// The lifecycle actions that our hook holds.
    pub(in crate::machine_pool) lifecycle_actions: LifecycleActions,
    /// Desired capacity as this process wrote it.
    pub(in crate::machine_pool) capacity: CapacityWrites,
    /// The hand-over of replicas.
    pub(in crate::machine_pool) replicas: ReplicaHandover,
    /// Since when instances are missing.
    pub(in crate::machine_pool) shortfall: Shortfall,
    /// Since when more instances are live than are desired.
    pub(in crate::machine_pool) surplus: Surplus,
    /// Whether launches succeed.
    pub(in crate::machine_pool) launches: LaunchWatch,
    /// Whether instances terminate before their Nodes are ready.
    pub(in crate::machine_pool) startups: NodeStartups,
    /// Since when the instance types cannot be read.
    pub(in crate::machine_pool) instance_types: InstanceTypeReads,
    /// Processes that AWS suspended.
    pub(in crate::machine_pool) suspension: Suspension,
    /// The rollout.
    pub(in crate::machine_pool) rollout: RolloutClock,
    /// How far the rollout has come.
    pub(in crate::machine_pool) rollout_progress: RolloutProgress,
    /// The launch template versions in use that the last read of the launch template did not return.
    pub(in crate::machine_pool) unknown_versions: UnknownVersions,
    /// The balance of the zones.
    pub(in crate::machine_pool) zone_balance: ZoneBalance,
    /// Requests for instance refreshes.
    pub(in crate::machine_pool) refreshes: RefreshRequests,
    /// The attribute values at the time when the desired state and the group were last equal.
    pub(in crate::machine_pool) drift: DriftBaseline,
    /// The calls to AWS that fail.
    pub(in crate::machine_pool) failed_calls: FailedCalls,
    /// The writes to the API server that fail.
    pub(in crate::machine_pool) failed_writes: FailedWrites,
    /// What the group launches by our last change, until a view shows it.
    pub(in crate::machine_pool) launch_change: LaunchChange,
    /// The changes that AWS has just made.
    pub(in crate::machine_pool) recent_writes: RecentWrites,
    /// The events that were published.
    pub(in crate::machine_pool) published: PublishedEvents,
    /// What happened to instances.
    pub(in crate::machine_pool) milestones: Milestones,
    /// Since when the bootstrap data with the current token have existed.
    pub(in crate::machine_pool) token_age: TokenAge,
}
