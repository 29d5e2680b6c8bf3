//! Creates the ASGMachines of new instances (D2 to D5).

use std::collections::BTreeMap;

use capasg_api::{
    ASGMachine, ASGMachineSpec,
    capi::owner_reference_to_pool,
    names::{annotations, finalizers, labels, machine_name, provider_id},
};
use capasg_cloud::{Group, LifecycleState};
use chrono::TimeDelta;
use kube::{ResourceExt, api::ObjectMeta};

use crate::kubernetes::KubeWrite;
use crate::machine_pool::decide::machines::{deletion::wait_for_machine, facts};
use crate::machine_pool::model::launch_record::{LaunchRecord, types_hash};
use crate::machine_pool::model::revision::desired_stamp;
use crate::machine_pool::model::stamp::Stamp;
use crate::machine_pool::model::template_versions::{
    is_of_another_template, is_of_foreign_version, record, stamps, unread_version, version_of,
};
use crate::machine_pool::model::{Blocker, Input, Part, PoolInstance, PoolObjects};

/// An instance that needs an ASGMachine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NewInstance {
    id: String,
    /// `aws:///<zone>/<id>` (B2).
    provider_id: String,
    record: Option<LaunchRecord>,
}

/// Creates the missing ASGMachines, unless the pool does not own the group, or AWS deletes the group.
#[must_use]
pub fn create(input: &Input<'_>, blocker: Option<&Blocker>) -> Part {
    let Input { objects, observed, .. } = *input;
    if blocker.is_some_and(Blocker::is_not_owned) || observed.group.present().is_none_or(Group::is_deleting) {
        return Part::default();
    }
    let machines = missing(input).into_iter().filter_map(|new| asg_machine(objects, new));
    let mut part = Part::of_all(machines.map(|machine| KubeWrite::CreateAsgMachine(Box::new(machine))));
    for write in late_records(input) {
        part.push(write);
    }
    part
}

/// What the ASGMachine of an instance records; `None` while its launch template version was not read, or nothing desired
/// is known.
fn record_of(input: &Input<'_>, instance: &PoolInstance) -> Option<LaunchRecord> {
    let Input { desired, observed, .. } = *input;
    // Only the next change of the desired state shows whether it is still as desired.
    let is_found = is_of_another_template(observed, instance)
        || is_of_foreign_version(observed, instance)
        || is_of_deleted_version(input, instance);
    if is_found && let Some(record) = record_of_deleted_version(input, instance) {
        return Some(record);
    }
    if is_found {
        let of_type = instance.listed.as_ref().and_then(|listed| listed.instance_type.as_ref());
        let other_type = of_type.is_some_and(|kind| !desired.instance_types.contains(kind));
        let types = other_type.then(|| types_hash(&desired.instance_types));
        return desired_stamp(desired, observed).map(|stamp| LaunchRecord::Found {
            stamp,
            other_type,
            types,
        });
    }
    stamps(observed).remove(&version_of(observed, instance)?).map(LaunchRecord::Launched)
}

/// The record of an instance whose version the pool had before another actor deleted it: what the ASGMachine of another such
/// instance records, or what the pool reports of the version. The report has no hash of the bootstrap config.
fn record_of_deleted_version(input: &Input<'_>, instance: &PoolInstance) -> Option<LaunchRecord> {
    let Input { objects, desired, observed, .. } = *input;
    let from = instance.listed.as_ref()?.template.as_ref()?;
    let recorded = observed.instances.values().find_map(|other| {
        let is_alike = other.listed.as_ref()?.template.as_ref() == Some(from);
        record(other).filter(|record| is_alike && matches!(record, LaunchRecord::Launched(_))).cloned()
    });
    let reported = || {
        let reported = objects.pool.status.as_ref()?.launch_template.as_ref()?;
        let is_it = (&reported.id, reported.version) == (&from.0, from.1);
        let (content, rollout) = reported.content_hash.clone().zip(reported.rollout_hash.clone())?;
        let stamp = desired_stamp(desired, observed).filter(|_| is_it)?;
        Some(if stamp.rollout == rollout {
            LaunchRecord::Found { stamp, other_type: false, types: None }
        } else {
            LaunchRecord::Launched(Stamp { content, rollout, ..stamp })
        })
    };
    recorded.or_else(reported)
}

/// Whether the launch template version that an instance was launched from does not exist any more.
fn is_of_deleted_version(input: &Input<'_>, instance: &PoolInstance) -> bool {
    let has_all = input.observed.template.present().is_some_and(|template| template.has_all_versions);
    has_all
        && unread_version(input.observed, instance).is_some()
        && input.memory.unknown_versions.missing(input.observed, input.now).is_none()
}

/// Records of instances whose ASGMachines have none: those of earlier releases, and those that were created before their
/// launch template version was read.
fn late_records(input: &Input<'_>) -> impl Iterator<Item = KubeWrite> {
    input.observed.instances.values().filter_map(|instance| {
        let machine = instance.asg_machine.as_ref()?;
        if machine.launch_record.is_some() || machine.paused || machine.deleting_since.is_some() {
            return None;
        }
        Some(KubeWrite::AnnotateDesiredState {
            machine: input.key(&machine.name),
            uid: machine.uid.clone(),
            record: record_of(input, instance)?.to_string(),
        })
    })
}

/// Whether an instance needs an ASGMachine: it is live, in standby, or terminates and runs (or counts as running) without
/// ever having had one. An instance whose ASGMachine was released after the view does not.
fn needs_one(input: &Input<'_>, id: &str, instance: &PoolInstance) -> bool {
    let Some(as_of) = input.observed.group.as_of() else { return false };
    let stays =
        instance.lifecycle().is_some_and(|state| state.is_live() || *state == LifecycleState::Standby);
    let released = input.memory.sightings.released_at(id).is_some_and(|at| at >= as_of);
    let runs = facts::is_terminated(input, id, instance) == Some(false);
    (stays && instance.asg_machine.is_none() && !released)
        || (runs && wait_for_drain(input, id, instance).is_some())
}

/// For how much longer our lifecycle hook holds an instance that AWS terminates before it had an ASGMachine, and that may
/// still run: core drains its Node once it has one. No longer than a drain, since the creation may fail.
#[must_use]
pub fn wait_for_drain(input: &Input<'_>, id: &str, instance: &PoolInstance) -> Option<TimeDelta> {
    let Input { objects, desired, memory, .. } = *input;
    let may_be_drained = instance.lifecycle() == Some(&LifecycleState::TerminatingWait)
        && instance.asg_machine.is_none()
        && desired.hook.is_some()
        && !objects.is_deleting()
        && !memory.sightings.is_released(id)
        && facts::is_terminated(input, id, instance) != Some(true);
    wait_for_machine(input, id).filter(|_| may_be_drained)
}

/// The instances without an ASGMachine that need one.
fn missing(input: &Input<'_>) -> Vec<NewInstance> {
    let all = input.observed.instances.iter();
    all.filter(|(id, instance)| needs_one(input, id, instance))
        .filter_map(|(id, instance)| {
            let zone = &instance.listed.as_ref()?.zone;
            let record = record_of(input, instance);
            Some(NewInstance { id: id.clone(), provider_id: provider_id(zone, id), record })
        })
        .collect()
}

/// The ASGMachine of an instance. Because of its owner reference, `clusterctl move` moves it (M1).
fn asg_machine(objects: &PoolObjects, new: NewInstance) -> Option<ASGMachine> {
    let (cluster, machine_pool) = (objects.cluster_name.as_ref()?, objects.machine_pool_name()?);
    let name = machine_name(&objects.key.name, &new.id);
    let mut machine =
        ASGMachine::new(&name, ASGMachineSpec { provider_id: new.provider_id, instance_id: new.id });
    let mut labels_of = labels::of_machine(cluster, &machine_pool);
    if let Some(filter) = objects.pool.labels().get(labels::WATCH_FILTER) {
        labels_of.insert(labels::WATCH_FILTER.to_owned(), filter.clone());
    }
    machine.metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(objects.key.namespace.clone()),
        labels: Some(labels_of),
        annotations: new
            .record
            .map(|record| BTreeMap::from([(annotations::DESIRED_STATE.to_owned(), record.to_string())])),
        finalizers: Some(vec![finalizers::MACHINE.to_owned()]),
        owner_references: owner_reference_to_pool(&objects.pool).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Some(machine)
}
