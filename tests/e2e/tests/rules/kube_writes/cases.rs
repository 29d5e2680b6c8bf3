//! Each write of the controllers, by an example.

use capasg_api::{ASGMachine, ASGMachineSpec, capi::MachineDeletion, names::finalizers};
use capasg_controllers::{
    ObjectKey,
    kubernetes::{DeletionReason, KubeWrite},
};
use capasg_simulation::Objects;
use chrono::DateTime;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;

use super::THEIRS;

const ID: &str = "aws:///eu-west-1a/i-0a1b2c3d4e5f60718";
const INSTANCE: &str = "i-0a1b2c3d4e5f60718";

/// A write for the objects of a name as they were read.
pub(super) type Case = (&'static str, fn(&ObjectKey, &Objects) -> KubeWrite);

fn pool(objects: &Objects) -> (String, String) {
    identity(objects.pool.as_ref())
}

/// The uid and the resourceVersion of an object.
fn identity<T: Resource>(object: Option<&T>) -> (String, String) {
    let meta = object.map(|object| object.meta().clone()).unwrap_or_default();
    (meta.uid.unwrap_or_default(), meta.resource_version.unwrap_or_default())
}

pub(super) const POOLS: [Case; 11] = [
    ("finalizer-added", |key, objects| KubeWrite::AddPoolFinalizer {
        pool: key.clone(),
        resource_version: pool(objects).1,
        finalizers: vec![THEIRS.to_owned(), finalizers::POOL.to_owned()],
        owner_id: "0123456789abcdef".to_owned(),
        nothing_created: true,
    }),
    ("finalizer-added-again", |key, objects| KubeWrite::AddPoolFinalizer {
        pool: key.clone(),
        resource_version: pool(objects).1,
        finalizers: vec![THEIRS.to_owned(), finalizers::POOL.to_owned()],
        owner_id: "0123456789abcdef".to_owned(),
        nothing_created: false,
    }),
    ("creation-recorded", |key, objects| KubeWrite::RemoveNothingCreated {
        pool: key.clone(),
        uid: pool(objects).0,
    }),
    ("finalizer-removed", |key, objects| KubeWrite::RemovePoolFinalizer {
        pool: key.clone(),
        resource_version: pool(objects).1,
        finalizers: vec![THEIRS.to_owned()],
    }),
    ("provider-ids", |key, objects| KubeWrite::PatchPoolProviderIds {
        pool: key.clone(),
        resource_version: Some(pool(objects).1),
        provider_id: None,
        list: Some(vec![ID.to_owned()]),
    }),
    ("no-provider-ids", |key, _| KubeWrite::PatchPoolProviderIds {
        pool: key.clone(),
        resource_version: None,
        provider_id: None,
        list: Some(Vec::new()),
    }),
    ("move-blocked", |key, objects| KubeWrite::AnnotateBlockMove {
        pool: key.clone(),
        uid: pool(objects).0,
        blocked: true,
    }),
    ("move-not-blocked", |key, objects| KubeWrite::AnnotateBlockMove {
        pool: key.clone(),
        uid: pool(objects).0,
        blocked: false,
    }),
    ("rollout-stopped", |key, objects| KubeWrite::AnnotateRolloutStopped {
        pool: key.clone(),
        resource_version: Some(pool(objects).1),
        revision: Some("0123456789abcdef".to_owned()),
        reason: "it made no progress".to_owned(),
        rolled_back: false,
    }),
    ("rollout-resumed", |key, _| KubeWrite::AnnotateRolloutStopped {
        pool: key.clone(),
        resource_version: None,
        revision: None,
        reason: "it goes on".to_owned(),
        rolled_back: false,
    }),
    ("status", |key, objects| {
        let mut status = objects.pool.as_ref().and_then(|pool| pool.status.clone()).unwrap_or_default();
        // One is changed, one is removed, one is added.
        status.replicas = 7;
        status.node_info = None;
        status.desired_replicas = 7;
        KubeWrite::PatchPoolStatus {
            pool: key.clone(),
            resource_version: Some(pool(objects).1),
            status: Box::new(status),
        }
    }),
];

pub(super) const MACHINES: [Case; 13] = [
    ("replicas", |key, objects| {
        let (uid, resource_version) = identity(objects.machine_pool.as_ref());
        KubeWrite::PatchMachinePoolReplicas { machine_pool: key.clone(), uid, resource_version, replicas: 0 }
    }),
    ("created", |key, _| {
        let spec = ASGMachineSpec { provider_id: ID.to_owned(), instance_id: INSTANCE.to_owned() };
        let mut created = ASGMachine::new(&format!("{}-created", key.name), spec);
        created.metadata.namespace = Some(key.namespace.clone());
        created.metadata.finalizers = Some(vec![finalizers::MACHINE.to_owned()]);
        KubeWrite::CreateAsgMachine(Box::new(created))
    }),
    ("machine-status", |key, objects| {
        let mut status = objects.asg_machine.as_ref().and_then(|one| one.status.clone()).unwrap_or_default();
        status.failure_domain = None;
        status.instance_type = Some("m7i.large".to_owned());
        KubeWrite::PatchAsgMachineStatus {
            machine: key.clone(),
            resource_version: Some(identity(objects.asg_machine.as_ref()).1),
            status: Box::new(status),
        }
    }),
    ("asg-machine-deleted", |key, objects| KubeWrite::DeleteAsgMachine {
        machine: key.clone(),
        uid: identity(objects.asg_machine.as_ref()).0,
    }),
    ("termination-requested", |key, objects| KubeWrite::AnnotateTerminationRequested {
        machine: key.clone(),
        uid: identity(objects.asg_machine.as_ref()).0,
        instance: INSTANCE.to_owned(),
        at: DateTime::UNIX_EPOCH,
    }),
    ("desired-state", |key, objects| KubeWrite::AnnotateDesiredState {
        machine: key.clone(),
        uid: identity(objects.asg_machine.as_ref()).0,
        record: "found capasg/1".to_owned(),
    }),
    ("machine-restored", |key, objects| KubeWrite::RestoreAsgMachine {
        machine: key.clone(),
        uid: identity(objects.asg_machine.as_ref()).0,
        owner: OwnerReference {
            api_version: "infrastructure.cluster.x-k8s.io/v1alpha1".to_owned(),
            kind: "ASGMachinePool".to_owned(),
            name: key.name.clone(),
            uid: identity(objects.pool.as_ref()).0,
            ..OwnerReference::default()
        },
        pool_name: Some("another".to_owned()),
    }),
    ("machine-finalizer-removed", |key, objects| KubeWrite::RemoveAsgMachineFinalizer {
        machine: key.clone(),
        uid: identity(objects.asg_machine.as_ref()).0,
        instance: INSTANCE.to_owned(),
        terminated: true,
    }),
    ("marked", |key, objects| KubeWrite::AnnotateDeleteMachine {
        machine: key.clone(),
        uid: identity(objects.machine.as_ref()).0,
        annotated: true,
    }),
    ("not-drained", |key, objects| KubeWrite::AnnotateExcludeNodeDraining {
        machine: key.clone(),
        uid: identity(objects.machine.as_ref()).0,
    }),
    ("timeouts", |key, objects| KubeWrite::PatchMachineTimeouts {
        machine: key.clone(),
        uid: identity(objects.machine.as_ref()).0,
        deletion: MachineDeletion {
            node_drain_timeout_seconds: Some(600),
            node_volume_detach_timeout_seconds: None,
            node_deletion_timeout_seconds: Some(10),
        },
    }),
    ("machine-owners", |key, objects| {
        let (uid, resource_version) = identity(objects.machine.as_ref());
        let owner = OwnerReference {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: "MachinePool".to_owned(),
            name: key.name.clone(),
            uid: identity(objects.machine_pool.as_ref()).0,
            controller: Some(true),
            ..OwnerReference::default()
        };
        KubeWrite::PatchMachineOwners { machine: key.clone(), uid, resource_version, owners: vec![owner] }
    }),
    ("machine-deleted", |key, objects| KubeWrite::DeleteMachine {
        machine: key.clone(),
        uid: identity(objects.machine.as_ref()).0,
        reason: DeletionReason::ScaleIn,
    }),
];

/// The kind of a write; a new one has to get a name here, and a case above.
pub(super) fn kind(write: &KubeWrite) -> &'static str {
    match write {
        KubeWrite::AddPoolFinalizer { .. } => "AddPoolFinalizer",
        KubeWrite::RemoveNothingCreated { .. } => "RemoveNothingCreated",
        KubeWrite::RemovePoolFinalizer { .. } => "RemovePoolFinalizer",
        KubeWrite::PatchPoolProviderIds { .. } => "PatchPoolProviderIds",
        KubeWrite::AnnotateBlockMove { .. } => "AnnotateBlockMove",
        KubeWrite::AnnotateRolloutStopped { .. } => "AnnotateRolloutStopped",
        KubeWrite::PatchMachinePoolReplicas { .. } => "PatchMachinePoolReplicas",
        KubeWrite::PatchPoolStatus { .. } => "PatchPoolStatus",
        KubeWrite::CreateAsgMachine(_) => "CreateAsgMachine",
        KubeWrite::PatchAsgMachineStatus { .. } => "PatchAsgMachineStatus",
        KubeWrite::DeleteAsgMachine { .. } => "DeleteAsgMachine",
        KubeWrite::AnnotateTerminationRequested { .. } => "AnnotateTerminationRequested",
        KubeWrite::AnnotateDesiredState { .. } => "AnnotateDesiredState",
        KubeWrite::RestoreAsgMachine { .. } => "RestoreAsgMachine",
        KubeWrite::RemoveAsgMachineFinalizer { .. } => "RemoveAsgMachineFinalizer",
        KubeWrite::AnnotateDeleteMachine { .. } => "AnnotateDeleteMachine",
        KubeWrite::AnnotateExcludeNodeDraining { .. } => "AnnotateExcludeNodeDraining",
        KubeWrite::PatchMachineTimeouts { .. } => "PatchMachineTimeouts",
        KubeWrite::PatchMachineOwners { .. } => "PatchMachineOwners",
        KubeWrite::DeleteMachine { .. } => "DeleteMachine",
    }
}
/// How many kinds there are.
pub(super) const KINDS: usize = 20;
