//! The writes that the controllers make in Kubernetes, one variant per purpose; each is safe to repeat.

use capasg_api::{ASGMachine, ASGMachinePool, ASGMachinePoolStatus, ASGMachineStatus, capi::MachineDeletion};
use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::ObjectKey;

/// One write to the API server.
#[derive(Debug, Clone)]
pub enum KubeWrite {
    /// Our finalizer and the annotation `owner-id` of a pool, in one patch, before the first create (C6, C8). A pool that
    /// had neither gets the annotation `nothing-created` as well.
    AddPoolFinalizer {
        /// The pool.
        pool: ObjectKey,
        /// The resourceVersion that was read: a concurrent change makes it a conflict.
        resource_version: String,
        /// The desired finalizers.
        finalizers: Vec<String>,
        /// The random owner id.
        owner_id: String,
        /// Whether nothing of it can exist in AWS.
        nothing_created: bool,
    },
    /// Removes the annotation `nothing-created` of a pool, before the first call that creates or changes a resource.
    RemoveNothingCreated {
        /// The pool.
        pool: ObjectKey,
        /// Precondition.
        uid: String,
    },
    /// Removes our finalizer from a pool: nothing of it is left in AWS.
    RemovePoolFinalizer {
        /// The pool.
        pool: ObjectKey,
        /// The resourceVersion that was read.
        resource_version: String,
        /// The finalizers that remain.
        finalizers: Vec<String>,
    },
    /// `spec.providerID` and `spec.providerIDList` of a pool (merge patch; an empty list is written, M5).
    PatchPoolProviderIds {
        /// The pool.
        pool: ObjectKey,
        /// The resourceVersion that was read, if the list must not replace a newer one.
        resource_version: Option<String>,
        /// The group's ARN, if it changes.
        provider_id: Option<String>,
        /// Sorted, unique provider ids, if they change.
        list: Option<Vec<String>>,
    },
    /// The annotation `clusterctl.cluster.x-k8s.io/block-move` of a pool while a call to terminate instances is in
    /// flight (F5).
    AnnotateBlockMove {
        /// The pool.
        pool: ObjectKey,
        /// Precondition.
        uid: String,
        /// Whether the annotation is set or removed.
        blocked: bool,
    },
    /// The annotation `rollout-stopped` of a pool, which stops a rollout that makes no progress.
    AnnotateRolloutStopped {
        /// The pool.
        pool: ObjectKey,
        /// Precondition: a cache of the past does not show what another process recorded.
        resource_version: Option<String>,
        /// The revision that is not rolled out any further; `None` removes the annotation.
        revision: Option<String>,
        /// Why, for users.
        reason: String,
        /// Whether AWS rolled the instance refresh back.
        rolled_back: bool,
    },
    /// `spec.replicas` of a MachinePool whose group another actor scales (G2).
    PatchMachinePoolReplicas {
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
    PatchPoolStatus {
        /// The pool.
        pool: ObjectKey,
        /// The resourceVersion that was read, if the status is the one that was read except for a few conditions, or
        /// if it does not report the pool as provisioned: a newer write must not be reverted (B5).
        resource_version: Option<String>,
        /// The desired status.
        status: Box<ASGMachinePoolStatus>,
    },
    /// Creates the ASGMachine of an instance. One that exists already is no error.
    CreateAsgMachine(Box<ASGMachine>),
    /// The status of an ASGMachine.
    PatchAsgMachineStatus {
        /// The ASGMachine.
        machine: ObjectKey,
        /// As for a pool.
        resource_version: Option<String>,
        /// The desired status.
        status: Box<ASGMachineStatus>,
    },
    /// Deletes an ASGMachine that has no Machine.
    DeleteAsgMachine {
        /// The ASGMachine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
    },
    /// The annotation `end-requested-at` of an ASGMachine, before its instance is terminated.
    AnnotateTerminationRequested {
        /// The ASGMachine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// Its instance.
        instance: String,
        /// Now.
        at: DateTime<Utc>,
    },
    /// The annotation `desired-state` of an ASGMachine that was created without it.
    AnnotateDesiredState {
        /// The ASGMachine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// The value.
        record: String,
    },
    /// The reference to its pool and our finalizer of an ASGMachine that lost either: tools that restore backups remove both.
    /// Or its label for the MachinePool, if another one refers to the pool now.
    RestoreAsgMachine {
        /// The ASGMachine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// The reference to its pool.
        owner: OwnerReference,
        /// The label `cluster.x-k8s.io/pool-name`; `None` leaves it as it is.
        pool_name: Option<String>,
    },
    /// Removes our finalizer from an ASGMachine: its instance has terminated, or is no longer managed.
    RemoveAsgMachineFinalizer {
        /// The ASGMachine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// Its instance.
        instance: String,
        /// Whether its instance has terminated, for users.
        terminated: bool,
    },
    /// The annotation `cluster.x-k8s.io/delete-machine` of a Machine that is the next to be deleted.
    AnnotateDeleteMachine {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// Whether the annotation is set or removed.
        annotated: bool,
    },
    /// The annotation `machine.cluster.x-k8s.io/exclude-node-draining` of a Machine whose instance has terminated: core
    /// does not drain it.
    AnnotateExcludeNodeDraining {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
    },
    /// `spec.deletion` of a Machine: `nodeDrainTimeoutSeconds`, `nodeVolumeDetachTimeoutSeconds` and
    /// `nodeDeletionTimeoutSeconds` (D14).
    PatchMachineTimeouts {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// The desired timeouts, all three.
        deletion: MachineDeletion,
    },
    /// `metadata.ownerReferences` of a Machine that another MachinePool owned before (D3).
    PatchMachineOwners {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// The resourceVersion that was read: a merge patch replaces lists, and references of others must not be lost.
        resource_version: String,
        /// The desired owner references, all of them.
        owners: Vec<OwnerReference>,
    },
    /// Deletes a Machine: core drains its Node and then deletes the ASGMachine (D7).
    DeleteMachine {
        /// The Machine.
        machine: ObjectKey,
        /// Precondition.
        uid: String,
        /// Why it is deleted, for users.
        reason: DeletionReason,
    },
}

/// Why a Machine is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionReason {
    /// Fewer replicas are desired.
    ScaleIn,
    /// Its instance is outdated.
    Outdated,
    /// A `MachineHealthCheck` found it unhealthy.
    Unhealthy,
    /// Its instance is terminating or terminated.
    Terminated,
    /// The pool is deleted.
    PoolDeleted,
}

impl KubeWrite {
    /// What the write is about, for errors and logs.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::AddPoolFinalizer { pool, .. } => format!("adding the finalizer to ASGMachinePool {pool}"),
            Self::RemoveNothingCreated { pool, .. } => {
                format!("recording on ASGMachinePool {pool} that resources are created")
            }
            Self::RemovePoolFinalizer { pool, .. } => {
                format!("removing the finalizer from ASGMachinePool {pool}")
            }
            Self::PatchPoolProviderIds { pool, .. } => {
                format!("writing provider IDs of ASGMachinePool {pool}")
            }
            Self::AnnotateBlockMove { pool, blocked: true, .. } => {
                format!("blocking a move of ASGMachinePool {pool}")
            }
            Self::AnnotateBlockMove { pool, .. } => format!("unblocking a move of ASGMachinePool {pool}"),
            Self::AnnotateRolloutStopped { pool, revision: Some(_), .. } => {
                format!("stopping the rollout of ASGMachinePool {pool}")
            }
            Self::AnnotateRolloutStopped { pool, .. } => {
                format!("resuming the rollout of ASGMachinePool {pool}")
            }
            Self::PatchMachinePoolReplicas { machine_pool, .. } => {
                format!("writing replicas of MachinePool {machine_pool}")
            }
            Self::PatchPoolStatus { pool, .. } => format!("writing status of ASGMachinePool {pool}"),
            Self::CreateAsgMachine(machine) => {
                format!("creating ASGMachine {}", ObjectKey::of(machine.as_ref()))
            }
            Self::PatchAsgMachineStatus { machine, .. } => format!("writing status of ASGMachine {machine}"),
            Self::DeleteAsgMachine { machine, .. } => format!("deleting ASGMachine {machine}"),
            Self::AnnotateTerminationRequested { machine, .. } => {
                format!("recording the termination request on ASGMachine {machine}")
            }
            Self::AnnotateDesiredState { machine, .. } => {
                format!("recording the desired state on ASGMachine {machine}")
            }
            Self::RestoreAsgMachine { machine, .. } => {
                format!("restoring owner reference, label and finalizer of ASGMachine {machine}")
            }
            Self::RemoveAsgMachineFinalizer { machine, .. } => {
                format!("removing the finalizer from ASGMachine {machine}")
            }
            Self::AnnotateDeleteMachine { machine, .. } => {
                format!("annotating Machine {machine} for deletion")
            }
            Self::AnnotateExcludeNodeDraining { machine, .. } => {
                format!("excluding Machine {machine} from draining")
            }
            Self::PatchMachineTimeouts { machine, .. } => {
                format!("writing the timeouts of Machine {machine}")
            }
            Self::PatchMachineOwners { machine, .. } => {
                format!("replacing the controller owner reference of Machine {machine}")
            }
            Self::DeleteMachine { machine, .. } => format!("deleting Machine {machine}"),
        }
    }
}

/// An event about a pool.
#[derive(Debug, Clone)]
pub struct KubeEvent {
    /// The pool that it is about.
    pub regarding: std::sync::Arc<ASGMachinePool>,
    /// Normal or Warning.
    pub event_type: EventType,
    /// A bounded, CamelCase reason.
    pub reason: &'static str,
    /// What happened, with AWS's message if there is one; never bootstrap data.
    pub message: String,
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// `Normal`.
    Normal,
    /// `Warning`: it needs attention.
    Warning,
}
