//! The status of a pool. Pure; what is unknown stays as it was.

use capasg_api::{
    ASGMachine, ASGMachinePoolStatus,
    conditions::{self, Finding},
    pool::{EffectiveSettings, GroupStatus, ImageStatus, LaunchTemplateStatus, Phase, SubnetStatus},
    reasons::{NOT_YET_REPORTED, deleting, event_queue_ready},
};
use chrono::{DateTime, Utc};
use kube::{Resource, ResourceExt};

use crate::machine_pool::model::memory::PoolMemory;
use crate::machine_pool::model::template_versions::{pinned_stamp, pinned_version};
use crate::machine_pool::model::{GroupView, Known, Observed, ObservedTemplate, instances};
use crate::machine_pool::report::event_queue::depends_on_events;
use crate::machine_pool::report::input::Input;
use crate::machine_pool::report::node_capacity::{EPHEMERAL_STORAGE, capacity, node_info};
use crate::machine_pool::report::pool_conditions::findings;
use crate::machine_pool::report::replica_owner::replica_owner;
use crate::machine_pool::report::scaling_healthy::last_failure;

/// The desired status.
#[must_use]
pub fn status(
    input: &Input<'_>,
    list: Option<&Vec<String>>,
    memory: &PoolMemory,
    now: DateTime<Utc>,
) -> ASGMachinePoolStatus {
    let generation = input.objects.pool.metadata.generation.unwrap_or_default();
    let mut status = input.objects.pool.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    status.identity.clone_from(&input.objects.access.in_use);
    // D1: it is always set, since a pool always has Machines.
    status.infrastructure_machine_kind = Some(ASGMachine::kind(&()).into_owned());
    if let Some(owner) = input.objects.machine_pool.as_ref().filter(|_| !input.objects.is_deleting()) {
        replica_owner(&mut status, owner, input.desired, input.plan.handed_back);
        status.version = owner.version().map(str::to_owned);
    }
    if let Some(effective) = effective(&status, input) {
        status.effective = Some(Box::new(effective));
    }
    if let Some(pending) = &input.plan.pending {
        status.pending_changes.clone_from(pending);
    } else if input.objects.is_deleting() {
        status.pending_changes.clear();
    }
    if let Some(list) = list.filter(|_| !input.is_not_owned()) {
        status.replicas = count(list.len());
    }
    // B5, B6, B8: once group and launch template exist, the pool stays provisioned.
    let was_provisioned = memory.ownership.is_reported_provisioned(input.objects.pool.uid().as_ref());
    if was_provisioned || (list.is_some() && !input.is_not_owned()) {
        status.set_provisioned();
    }
    if let Some(observed) = input.observed.filter(|_| !input.is_not_owned()) {
        resolved(&mut status, input, observed);
    }
    if let Some(types) = input.types {
        let is_unread = input.references.image.is_none() || input.references.ephemeral_storage_is_unread;
        let reported = status.capacity.remove(EPHEMERAL_STORAGE).filter(|_| is_unread);
        status.capacity = capacity(types, input.references.ephemeral_storage_gib);
        if let Some(reported) = reported.filter(|_| !status.capacity.is_empty()) {
            status.capacity.entry(EPHEMERAL_STORAGE.to_owned()).or_insert(reported);
        }
        status.node_info = node_info(types, input.references.image.as_ref()).or(status.node_info);
    }
    if let Some(blocked) = memory.launches.blocked() {
        status.last_launch_failure = Some(last_failure(blocked));
    }
    for finding in findings(input, memory) {
        if !is_unknown_yet(&finding, &status, input) {
            conditions::set(&mut status.conditions, finding, generation, now);
        }
    }
    let summarized = conditions::pool_summary(&status.conditions);
    conditions::set_ready(&mut status.conditions, &summarized, generation, now);
    conditions::set_progress(&mut status.conditions, generation, now);
    status.phase = Some(phase(&status, input));
    status
}

/// `status.effective`; `None` while the replicas are not known. A pool that is being deleted has none of its own any more,
/// and still has policies that users may change.
fn effective(status: &ASGMachinePoolStatus, input: &Input<'_>) -> Option<EffectiveSettings> {
    let owner = input.objects.machine_pool.as_deref();
    let replicas = if input.objects.is_deleting() {
        status.desired_replicas
    } else {
        input.desired.filter(|desired| desired.machine_pool.is_some())?.replicas
    };
    Some(input.objects.pool.spec.effective(owner, replicas))
}

/// Whether a condition is unknown to a new leader, so that it stays as the previous leader reported it. That a spec that
/// depends on events requires no event queue was true of another spec.
fn is_unknown_yet(finding: &Finding, status: &ASGMachinePoolStatus, input: &Input<'_>) -> bool {
    let Some(before) = conditions::get(&status.conditions, finding.type_) else { return false };
    let begins = finding.reason == deleting::DELETING && before.status == "True";
    let is_outdated =
        before.reason == event_queue_ready::NOT_REQUIRED && depends_on_events(&input.objects.pool.spec);
    begins || finding.reason == NOT_YET_REPORTED && !is_outdated
}

fn resolved(status: &mut ASGMachinePoolStatus, input: &Input<'_>, observed: &Observed) {
    let ready =
        observed.instances.values().filter(|m| m.machine.as_ref().is_some_and(|machine| machine.ready));
    status.ready_replicas = count(ready.count());
    if let Some(group) = observed.group.present() {
        status.rollout.clone_from(&input.rollout_status);
        let current = instances::live(observed).filter(|(id, _)| input.plan.outdated.is_up_to_date(id));
        status.up_to_date_replicas = instances::count(current);
        status.group = Some(GroupStatus {
            name: group.name.clone(),
            min_size: group.capacity.min,
            max_size: group.capacity.max,
            desired_capacity: group.capacity.desired,
            suspended_processes: group.suspended_processes.keys().cloned().collect(),
        });
    }
    if let (Known::Present(ObservedTemplate { id, versions, .. }), Some(version)) =
        (&observed.template, pinned_version(observed))
        // The pinned version is unknown while the group was not read.
        && !matches!(observed.group, GroupView::Unknown)
        && input.template_not_owned().is_none()
    {
        let stamp = pinned_stamp(observed);
        status.launch_template = Some(LaunchTemplateStatus {
            id: id.clone(),
            version,
            content_hash: stamp.as_ref().map(|s| s.content.clone()),
            rollout_hash: stamp.as_ref().map(|s| s.rollout.clone()),
        });
        if let Some(image) = versions.get(&version).and_then(|v| v.image_id.clone()) {
            let available = input.references.available_image.clone().filter(|id| *id != image);
            status.image = Some(ImageStatus { id: image, available_id: available });
        }
    }
    if !input.references.zones.is_empty() {
        let subnet =
            |s: &capasg_cloud::Subnet| SubnetStatus { id: s.id.clone(), availability_zone: s.zone.clone() };
        status.subnets = input.references.zones.iter().map(subnet).collect();
        // The list is complete again until it is cut.
        status.omitted.remove("subnets");
    }
    if input.objects.machine_pool.is_some() && input.references.failed.is_empty() {
        status.security_group_ids.clone_from(&input.references.security_groups);
        status.omitted.remove("securityGroupIDs");
    }
}

/// The summary for users; no decision depends on it.
fn phase(status: &ASGMachinePoolStatus, input: &Input<'_>) -> Phase {
    let is = |condition| conditions::is_true(&status.conditions, condition);
    let is_false =
        |condition| conditions::get(&status.conditions, condition).is_some_and(|c| c.status == "False");
    if input.objects.is_deleting() {
        Phase::Deleting
    } else if is_false(conditions::READY) && status.ready {
        Phase::Degraded
    } else if !status.ready {
        if input.observed.is_some() { Phase::Provisioning } else { Phase::Pending }
    } else if is(conditions::ROLLING_OUT) {
        Phase::RollingOut
    } else if is(conditions::SCALING_UP) || is(conditions::SCALING_DOWN) {
        Phase::Scaling
    } else if is_false(conditions::SCALING_UP) {
        Phase::Running
    } else {
        Phase::Unknown
    }
}

fn count(items: usize) -> i32 {
    i32::try_from(items).unwrap_or(i32::MAX)
}
