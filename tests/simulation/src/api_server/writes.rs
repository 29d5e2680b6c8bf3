//! What each of the controllers' writes does to the objects.

use capasg_api::{
    ASGMachine,
    names::{annotations, finalizers, labels},
};
use capasg_controllers::{
    ObjectKey,
    kubernetes::{KubeWrite, Result},
    names::{BLOCK_MOVE_VALUE, SCALE_IN_VALUE},
};
use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

use super::{Expect, State};

/// Carries out a write; tells whether anything became different.
pub(crate) fn apply(state: &mut State, write: &KubeWrite) -> Result<bool> {
    let State { ledger, pools, asg_machines, machine_pools, machines, .. } = state;
    match write {
        KubeWrite::AddPoolFinalizer { pool, resource_version, finalizers, owner_id, nothing_created } => {
            pools.update(ledger, pool, at_version(Some(resource_version)), |pool| {
                pool.metadata.finalizers = Some(finalizers.clone());
                pool.annotations_mut().insert(annotations::OWNER_ID.to_owned(), owner_id.clone());
                if *nothing_created {
                    annotate(pool, annotations::NOTHING_CREATED, Some("true"));
                }
            })
        }
        KubeWrite::RemoveNothingCreated { pool, uid } => {
            pools.update(ledger, pool, of_uid(uid), |own| annotate(own, annotations::NOTHING_CREATED, None))
        }
        KubeWrite::RemovePoolFinalizer { pool, resource_version, finalizers } => {
            let expect = at_version(Some(resource_version));
            pools.update(ledger, pool, expect, |pool| pool.metadata.finalizers = Some(finalizers.clone()))
        }
        KubeWrite::PatchPoolProviderIds { pool, resource_version, provider_id, list } => {
            pools.update(ledger, pool, at_version(resource_version.as_ref()), |pool| {
                if let Some(id) = provider_id {
                    pool.spec.provider_id = Some(id.clone());
                }
                if let Some(list) = list {
                    pool.spec.provider_id_list.clone_from(list);
                }
            })
        }
        KubeWrite::AnnotateBlockMove { pool, uid: wanted, blocked } => {
            pools.update(ledger, pool, of_uid(wanted), |pool| {
                annotate(pool, annotations::BLOCK_MOVE, blocked.then_some(BLOCK_MOVE_VALUE));
            })
        }
        KubeWrite::AnnotateRolloutStopped { pool, resource_version, revision, .. } => {
            pools.update(ledger, pool, at_version(resource_version.as_ref()), |pool| {
                annotate(pool, annotations::ROLLOUT_STOPPED, revision.as_deref());
            })
        }
        KubeWrite::PatchMachinePoolReplicas { machine_pool, uid, resource_version, replicas } => {
            let expect = Expect { version: Some(resource_version), uid: Some(uid) };
            machine_pools.update(ledger, machine_pool, expect, |own| own.spec.replicas = Some(*replicas))
        }
        KubeWrite::PatchPoolStatus { pool, resource_version, status } => {
            let expect = at_version(resource_version.as_ref());
            pools.update(ledger, pool, expect, |pool| pool.status = Some(status.as_ref().clone()))
        }
        KubeWrite::CreateAsgMachine(new) if asg_machines.get(&ObjectKey::of(new.as_ref())).is_some() => {
            Ok(false)
        }
        KubeWrite::CreateAsgMachine(new) => asg_machines.create(ledger, new.as_ref().clone()).map(|_| true),
        KubeWrite::PatchAsgMachineStatus { machine, resource_version, status } => {
            let expect = at_version(resource_version.as_ref());
            asg_machines.update(ledger, machine, expect, |own| own.status = Some(status.as_ref().clone()))
        }
        KubeWrite::DeleteAsgMachine { machine, uid: wanted } => {
            asg_machines.delete(ledger, machine, of_uid(wanted))
        }
        KubeWrite::AnnotateTerminationRequested { machine, uid: wanted, at, .. } => {
            asg_machines.update(ledger, machine, of_uid(wanted), |machine| {
                let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
                annotate(machine, annotations::END_REQUESTED_AT, Some(&at));
            })
        }
        KubeWrite::AnnotateDesiredState { machine, uid: wanted, record } => {
            asg_machines.update(ledger, machine, of_uid(wanted), |machine| {
                annotate(machine, annotations::DESIRED_STATE, Some(record));
            })
        }
        KubeWrite::RestoreAsgMachine { machine, uid, owner, pool_name } => {
            asg_machines
                .update(ledger, machine, of_uid(uid), |machine| restore(machine, owner, pool_name.as_ref()))
        }
        KubeWrite::RemoveAsgMachineFinalizer { machine, uid: wanted, .. } => {
            asg_machines.update(ledger, machine, of_uid(wanted), |machine| {
                machine.finalizers_mut().retain(|finalizer| finalizer != finalizers::MACHINE);
            })
        }
        KubeWrite::AnnotateDeleteMachine { machine, uid: wanted, annotated } => {
            machines.update(ledger, machine, of_uid(wanted), |machine| {
                annotate(machine, annotations::DELETE_MACHINE, annotated.then_some(SCALE_IN_VALUE));
            })
        }
        KubeWrite::AnnotateExcludeNodeDraining { machine, uid: wanted } => {
            machines.update(ledger, machine, of_uid(wanted), |machine| {
                annotate(machine, annotations::EXCLUDE_NODE_DRAINING, Some("true"));
            })
        }
        KubeWrite::PatchMachineTimeouts { machine, uid: wanted, deletion } => {
            machines.update(ledger, machine, of_uid(wanted), |own| own.spec.deletion = Some(*deletion))
        }
        KubeWrite::PatchMachineOwners { machine, uid, resource_version, owners } => {
            let expect = Expect { version: Some(resource_version), uid: Some(uid) };
            let owners = Some(owners.clone());
            machines.update(ledger, machine, expect, |own| own.metadata.owner_references = owners)
        }
        KubeWrite::DeleteMachine { machine, uid: wanted, .. } => {
            machines.delete(ledger, machine, of_uid(wanted))
        }
    }
}

/// The precondition of a write on a uid.
fn of_uid(uid: &str) -> Expect<'_> {
    Expect { uid: Some(uid), version: None }
}

/// Adds the reference to its pool and our finalizer.
fn restore(machine: &mut ASGMachine, owner: &OwnerReference, pool_name: Option<&String>) {
    if let Some(name) = pool_name {
        machine.labels_mut().insert(labels::POOL_NAME.to_owned(), name.clone());
    }
    if !machine.owner_references().iter().any(|one| one.uid == owner.uid) {
        machine.owner_references_mut().push(owner.clone());
    }
    if !machine.finalizers().iter().any(|finalizer| finalizer == finalizers::MACHINE) {
        machine.finalizers_mut().push(finalizers::MACHINE.to_owned());
    }
}

/// The precondition of a write over a version, if it names one.
fn at_version(version: Option<&String>) -> Expect<'_> {
    Expect { version: version.map(String::as_str), uid: None }
}

/// Sets an annotation, or takes it off.
fn annotate(object: &mut impl ResourceExt, key: &str, value: Option<&str>) {
    match value {
        Some(value) => drop(object.annotations_mut().insert(key.to_owned(), value.to_owned())),
        None => drop(object.annotations_mut().remove(key)),
    }
}

impl State {
    /// Lets the writes of processes that died land that are due; gives those that changed something.
    pub(crate) fn land(&mut self) -> Vec<KubeWrite> {
        let now = self.ledger.now;
        let (due, left) = std::mem::take(&mut self.late).into_iter().partition(|(at, _)| *at <= now);
        self.late = left;
        let mut due: Vec<(DateTime<Utc>, KubeWrite)> = due;
        due.sort_by_key(|(at, _)| *at);
        let landed = due.into_iter().map(|(_, write)| write);
        landed.filter(|write| matches!(apply(self, write), Ok(true))).collect()
    }
}
