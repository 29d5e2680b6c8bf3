//! Joins the facts about each instance from the group, EC2, ASGMachines and Machines. Pure.

use crate::machine_pool::model::Machines;
use std::collections::BTreeMap;

use capasg_api::{
    ASGMachine, ASGMachineStatus,
    capi::{Machine, pause_state, pool_owner_of_machine},
    names::{annotations, finalizers, labels},
    time::from_kubernetes,
};
use capasg_cloud::Group;
use chrono::{DateTime, Utc};
use kube::{Resource, ResourceExt};

use crate::machine_pool::model::launch_record::LaunchRecord;
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
        let id = by_name.get(&machine.spec.infrastructure_ref.name);
        match id.map(|id| instances.entry(id.clone()).or_default()) {
            Some(instance) if is_reconciled_by_core(machine) => instance.machine = Some(found),
            Some(instance) => instance.unreconciled_since = found.created_at,
            None if is_reconciled_by_core(machine) => unmatched.push(found),
            None => {}
        }
    }
    for (id, instance) in &mut instances {
        instance.ec2 = facts(id);
    }
    (instances, unmatched)
}

/// Whether core has added its finalizer to a Machine. Until then the Machine counts as one that core has not created yet:
/// a deletion would remove it at once, without a drain and without its ASGMachine, and core would create another one.
fn is_reconciled_by_core(machine: &Machine) -> bool {
    machine.is_deleting()
        || machine.finalizers().iter().any(|finalizer| finalizer == finalizers::CORE_MACHINE)
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
        has_owner: pool_owner_of_machine(machine).is_some(),
        pool_name: machine.labels().get(labels::POOL_NAME).cloned(),
        replace_requested: machine.annotations().contains_key(annotations::REPLACE),
        do_not_disrupt: machine.annotations().contains_key(annotations::DO_NOT_DISRUPT),
        termination_requested_at,
        terminated_by_refresh: machine.status.as_ref().is_some_and(ASGMachineStatus::is_replaced_by_refresh),
        launch_record: launch_record(machine),
        created_at: machine.metadata.creation_timestamp.as_ref().map(from_kubernetes),
        launched_at: machine.status.as_ref().and_then(|status| status.launch_time),
    }
}

/// The desired state that an ASGMachine records for its instance.
#[must_use]
pub fn launch_record(machine: &ASGMachine) -> Option<LaunchRecord> {
    LaunchRecord::parse(machine.annotations().get(annotations::DESIRED_STATE)?)
}

fn machine_ref(machine: &Machine) -> MachineRef {
    let annotation = |key: &str| machine.annotations().get(key).cloned();
    MachineRef {
        name: machine.name_any(),
        uid: machine.uid().unwrap_or_default(),
        resource_version: machine.resource_version().unwrap_or_default(),
        owners: machine.owner_references().to_vec(),
        deleting_since: machine.metadata.deletion_timestamp.as_ref().map(from_kubernetes),
        deletion_progress: machine.deletion_progress(),
        has_node: machine.has_node(),
        ready: machine.is_ready(),
        ready_since: machine.ready_since(),
        node: machine.node_report(),
        paused: pause_state(None, machine.annotations()).is_paused(),
        needs_remediation: machine.needs_remediation(),
        timeouts: machine.spec.deletion.unwrap_or_default(),
        delete_annotation: annotation(annotations::DELETE_MACHINE),
        drain_excluded: annotation(annotations::EXCLUDE_NODE_DRAINING).is_some(),
        created_at: machine.metadata.creation_timestamp.as_ref().map(from_kubernetes),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capasg_api::{
        ASGMachineSpec,
        capi::{ContractReference, MachineSpec},
    };

    use super::*;

    /// Core creates a Machine without its finalizer and adds that in its first reconcile.
    #[test]
    fn d7_a_machine_without_the_finalizer_of_core_is_none_yet() {
        let asg_machine = ASGMachine::new("p-i-1", ASGMachineSpec::new("eu-west-1a", "i-1"));
        let infrastructure_ref = ContractReference {
            api_group: capasg_api::GROUP.to_owned(),
            kind: "ASGMachine".to_owned(),
            name: "p-i-1".to_owned(),
        };
        let mut machine = Machine::new("p-i-1", MachineSpec { infrastructure_ref, ..MachineSpec::default() });
        let is_joined = |machine: &Machine| {
            let machines = Machines {
                asg_machines: vec![Arc::new(asg_machine.clone())],
                machines: vec![Arc::new(machine.clone())],
            };
            let (instances, unmatched) = join(None, &machines, |_| None);
            assert!(unmatched.is_empty());
            instances["i-1"].machine.is_some()
        };
        assert!(!is_joined(&machine), "its deletion would neither drain nor delete the ASGMachine");
        machine.metadata.finalizers = Some(vec!["machine.cluster.x-k8s.io".to_owned()]);
        assert!(is_joined(&machine));
        machine.metadata.finalizers = None;
        machine.metadata.deletion_timestamp = Some(capasg_api::time::to_kubernetes(DateTime::UNIX_EPOCH));
        assert!(is_joined(&machine), "another finalizer holds it");
    }
}
