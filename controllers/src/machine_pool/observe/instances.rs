//! Joins the facts about each instance from the group, EC2, ASGMachines and Machines. Pure.

use crate::machine_pool::model::Machines;
use std::collections::BTreeMap;

use capasg_api::{
    ASGMachine, ASGMachineStatus,
    capi::{Machine, pause_state},
    names::{annotations, finalizers},
    time::from_kubernetes,
};
use capasg_cloud::Group;
use chrono::{DateTime, Utc};
use kube::{Resource, ResourceExt};

use crate::machine_pool::model::{AsgMachineRef, Ec2Answer, MachineRef, PoolInstance};

/// Joins by instance ID. Returns the Machines whose ASGMachine does not exist, too.
#[must_use]
pub fn join(
    group: Option<&Group>,
    machines: &Machines,
    facts: impl Fn(&str) -> Option<Ec2Answer>,
) -> (BTreeMap<String, PoolInstance>, Vec<MachineRef>) {
    let mut instances: BTreeMap<String, PoolInstance> = BTreeMap::new();
    for instance in group.map(|g| g.instances.as_slice()).unwrap_or_default() {
        instances.entry(instance.id.clone()).or_default().listed = Some(instance.clone());
    }
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for machine in &machines.asg_machines {
        let id = machine.spec.instance_id.clone();
        by_name.insert(machine.name_any(), id.clone());
        instances.entry(id).or_default().asg_machine = Some(asg_machine_ref(machine));
    }
    let mut unmatched = Vec::new();
    for machine in &machines.machines {
        let reference = &machine.spec.infrastructure_ref;
        // A MachinePool that used another provider before has Machines of that provider.
        if reference.kind != ASGMachine::kind(&()) || reference.api_group != capasg_api::GROUP {
            continue;
        }
        let found = machine_ref(machine);
        match by_name.get(&machine.spec.infrastructure_ref.name) {
            Some(id) => instances.entry(id.clone()).or_default().machine = Some(found),
            None => unmatched.push(found),
        }
    }
    for (id, instance) in &mut instances {
        instance.ec2 = facts(id);
    }
    (instances, unmatched)
}

fn asg_machine_ref(machine: &ASGMachine) -> AsgMachineRef {
    let termination_requested_at = machine
        .annotations()
        .get(annotations::END_REQUESTED_AT)
        .and_then(|at| DateTime::parse_from_rfc3339(at).ok())
        .map(|at| at.with_timezone(&Utc));
    AsgMachineRef {
        instance_id: machine.spec.instance_id.clone(),
        name: machine.name_any(),
        uid: machine.uid().unwrap_or_default(),
        provider_id: machine.spec.provider_id.clone(),
        deleting_since: machine.metadata.deletion_timestamp.as_ref().map(from_kubernetes),
        paused: pause_state(None, machine.annotations()).is_paused(),
        has_finalizer: machine.finalizers().iter().any(|f| f == finalizers::MACHINE),
        replace_requested: machine.annotations().contains_key(annotations::REPLACE),
        do_not_disrupt: machine.annotations().contains_key(annotations::DO_NOT_DISRUPT),
        termination_requested_at,
        terminated_by_refresh: machine.status.as_ref().is_some_and(ASGMachineStatus::is_replaced_by_refresh),
        created_at: machine.metadata.creation_timestamp.as_ref().map(from_kubernetes),
    }
}

fn machine_ref(machine: &Machine) -> MachineRef {
    let annotation = |key: &str| machine.annotations().get(key).cloned();
    MachineRef {
        name: machine.name_any(),
        uid: machine.uid().unwrap_or_default(),
        deleting_since: machine.metadata.deletion_timestamp.as_ref().map(from_kubernetes),
        has_node: machine.has_node(),
        ready: machine.is_ready(),
        ready_since: machine.ready_since(),
        paused: pause_state(None, machine.annotations()).is_paused(),
        needs_remediation: machine.needs_remediation(),
        timeouts: machine.spec.deletion.unwrap_or_default(),
        delete_annotation: annotation(annotations::DELETE_MACHINE),
        drain_excluded: annotation(annotations::EXCLUDE_NODE_DRAINING).is_some(),
        created_at: machine.metadata.creation_timestamp.as_ref().map(from_kubernetes),
    }
}
