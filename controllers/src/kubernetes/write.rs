//! The writes that the controllers make in Kubernetes, one variant per purpose; each is safe to repeat.

use capasg_api::{ASGMachine, ASGMachinePool, ASGMachinePoolStatus, ASGMachineStatus, capi::MachineDeletion};
use chrono::{DateTime, Utc};

use crate::ObjectKey;

/// One write to the API server.
#[derive(Debug, Clone)]
pub enum KubeWrite {
    /// Adds our finalizer and the owner id to a pool, in one patch, before the first create (C6, C8).
    ClaimPool {
        /// The pool.
        pool: ObjectKey,
        /// The resourceVersion that was read: a concurrent change makes it a conflict.
        resource_version: String,
        /// The finalizers to have.
        finalizers: Vec<String>,
        /// The random owner id.
        owner_id: String,
    },
    /// Removes our finalizer from a pool.
    ReleasePool {
        /// The pool.
        pool: ObjectKey,
        /// The resourceVersion that was read.
        resource_version: String,
        /// The finalizers that remain.
        finalizers: Vec<String>,
    },
    /// `spec.providerID` and `spec.providerIDList` of a pool (merge patch; an empty list is written, M5).
    PoolProviderIds {
        /// The pool.
        pool: ObjectKey,
        /// The group's ARN, if it changes.
        provider_id: Option<String>,
        /// Sorted, unique provider ids, if they change.
        list: Option<Vec<String>>,
    },
    /// Holds `clusterctl move` back by an annotation on the pool while an end is in flight, or lets it go on (F5).
    BlockMove {
        /// The pool.
        pool: ObjectKey,
        /// Precondition.
        uid: String,
        /// Whether the annotation is set or removed.
        blocked: bool,
    },
    /// Stops a rollout that does not get on, by a durable mark on the pool, or takes the mark off.
    RolloutStopped {
        /// The pool.
        pool: ObjectKey,
        /// What is not rolled out any further; `None` takes the mark off.
        revision: Option<String>,
        /// Why, for people.
        why: String,
        /// Whether AWS took back what it had replaced.
        rolled_back: bool,
    },
    /// `spec.replicas` of a MachinePool: what somebody else made of the group (G2).
    MachinePoolReplicas {
        /// The MachinePool.
        machine_pool: ObjectKey,
        /// Precondition.
        uid: String,
        /// The resourceVersion that was read: a concurrent change makes it a conflict.
        resource_version: String,
        /// The group's desired capacity.
        replicas: i32,
    },
    /// The whole status of a pool.
    PoolStatus {
        /// The pool.
        pool: ObjectKey,
        /// The resourceVersion that was read, where the status is what it was but for a few conditions: a write that
        /// the cache does not show yet must not be taken back (B5).
        made_from: Option<String>,
        /// The status to have.
        status: Box<ASGMachinePoolStatus>,
    },
    /// Creates the ASGMachine of an instance. One that exists already is fine.
    CreateAsgMachine(Box<ASGMachine>),
    /// The status of an ASGMachine.
    AsgMachineStatus {
        /// The ASGMachine.
        machine: ObjectKey,
        /// As for a pool.
        made_from: Option<String>,
        /// The status to have.
        status: Box<ASGMachineStatus>,
    },
    /// Deletes an ASGMachine that has no Machine.
    DeleteAsgMachine {
        /// The ASGMachine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
    },
    /// The durable mark before an end is asked for (design section 4, "Ending").
    MarkEndRequested {
        /// The ASGMachine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// The instance that it stands for.
        instance: String,
        /// Now.
        at: DateTime<Utc>,
    },
    /// Removes our finalizer from an ASGMachine: its instance is gone.
    ReleaseAsgMachine {
        /// The ASGMachine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// The instance that it stands for.
        instance: String,
    },
    /// Annotates a Machine as the next to go (`cluster.x-k8s.io/delete-machine`), or takes our mark off again.
    MarkMachine {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// Whether the mark is set or removed.
        marked: bool,
    },
    /// Tells core not to drain a Machine whose instance is gone (`machine.cluster.x-k8s.io/exclude-node-draining`).
    ExcludeDrain {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
    },
    /// The limits on how a Machine goes: `nodeDrainTimeoutSeconds`, `nodeVolumeDetachTimeoutSeconds` and
    /// `nodeDeletionTimeoutSeconds`, nothing else of it (D14).
    MachineTimeouts {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// The limits to have, all three.
        deletion: MachineDeletion,
    },
    /// Deletes a Machine: core drains its Node and then deletes the ASGMachine (D7).
    DeleteMachine {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// Why it goes, for people.
        why: DeletionReason,
    },
}

/// Why a Machine is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionReason {
    /// Fewer instances are wanted.
    ScaleIn,
    /// Its instance is outdated.
    Outdated,
    /// A `MachineHealthCheck` found it unhealthy.
    Unhealthy,
    /// Its instance ends or is gone.
    Ended,
    /// The pool goes.
    PoolDeleted,
}

impl KubeWrite {
    /// What the write is about, for errors and logs.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::ClaimPool { pool, .. } => format!("claiming ASGMachinePool {pool}"),
            Self::ReleasePool { pool, .. } => format!("releasing ASGMachinePool {pool}"),
            Self::PoolProviderIds { pool, .. } => format!("writing provider ids of ASGMachinePool {pool}"),
            Self::BlockMove { pool, blocked: true, .. } => {
                format!("holding back a move of ASGMachinePool {pool}")
            }
            Self::BlockMove { pool, .. } => format!("letting go of a move of ASGMachinePool {pool}"),
            Self::RolloutStopped { pool, revision: Some(_), .. } => {
                format!("stopping the rollout of ASGMachinePool {pool}")
            }
            Self::RolloutStopped { pool, .. } => {
                format!("letting the rollout of ASGMachinePool {pool} go on")
            }
            Self::MachinePoolReplicas { machine_pool, .. } => {
                format!("writing replicas of MachinePool {machine_pool}")
            }
            Self::PoolStatus { pool, .. } => format!("writing status of ASGMachinePool {pool}"),
            Self::CreateAsgMachine(machine) => {
                format!("creating ASGMachine {}", ObjectKey::of(machine.as_ref()))
            }
            Self::AsgMachineStatus { machine, .. } => format!("writing status of ASGMachine {machine}"),
            Self::DeleteAsgMachine { machine, .. } => format!("deleting ASGMachine {machine}"),
            Self::MarkEndRequested { machine, .. } => format!("marking the end of ASGMachine {machine}"),
            Self::ReleaseAsgMachine { machine, .. } => format!("releasing ASGMachine {machine}"),
            Self::MarkMachine { machine, .. } => format!("marking Machine {machine}"),
            Self::ExcludeDrain { machine, .. } => format!("excluding Machine {machine} from draining"),
            Self::MachineTimeouts { machine, .. } => format!("writing the timeouts of Machine {machine}"),
            Self::DeleteMachine { machine, .. } => format!("deleting Machine {machine}"),
        }
    }
}

/// An event about a pool.
#[derive(Debug, Clone)]
pub struct KubeEvent {
    /// The pool that it is about.
    pub about: std::sync::Arc<ASGMachinePool>,
    /// Normal or Warning.
    pub kind: EventKind,
    /// A bounded, CamelCase reason (api.md section 6).
    pub reason: &'static str,
    /// What happened, with AWS's words where there are any; never bootstrap data.
    pub message: String,
}

/// Whether an event is ordinary or wants attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Ordinary.
    Normal,
    /// Wants attention.
    Warning,
}
