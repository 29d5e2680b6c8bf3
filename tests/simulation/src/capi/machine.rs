//! The Machine controller: adoption, the Node, and deletion with its drain.

use std::sync::Arc;

use capasg_api::{
    ASGMachine,
    capi::{Machine, NodeRef, pause_state},
    conditions::{self, Finding, READY, Status},
    names::{annotations, finalizers},
    time::from_kubernetes,
};
use capasg_controllers::ObjectKey;
use chrono::TimeDelta;
use kube::{Resource, ResourceExt};

use super::{State, drain::Drain, owners::set_owner};
use crate::api_server::{self, Expect};

/// How long a Machine waits for its first reconcile, in which it gets its finalizer: one of four waits.
fn busy(machine: &Machine) -> TimeDelta {
    let waits = machine.uid().is_some_and(|uid| uid.ends_with(['0', '4', '8', 'c']));
    if waits { TimeDelta::milliseconds(1500) } else { TimeDelta::zero() }
}

impl State {
    pub(super) fn machines(&mut self, api: &mut api_server::State) {
        for (key, machine) in api.machines.all() {
            let cluster = api.clusters.get(&key.sibling(&machine.spec.cluster_name));
            if pause_state(cluster.as_deref(), machine.annotations()).is_paused() {
                continue;
            }
            let infrastructure = key.sibling(&machine.spec.infrastructure_ref.name);
            let asg_machine = api.asg_machines.get(&infrastructure);
            if machine.is_deleting() {
                self.delete(api, &key, &machine, asg_machine.as_ref());
            } else if self.begin(api, &key, &machine)
                && let Some(asg_machine) = asg_machine
            {
                self.live(api, &key, &machine, &infrastructure, &asg_machine);
            }
        }
    }

    /// The first reconcile of a Machine adds the finalizer. Whether there was one.
    fn begin(&mut self, api: &mut api_server::State, key: &ObjectKey, machine: &Machine) -> bool {
        if machine.finalizers().iter().any(|finalizer| finalizer == finalizers::CORE_MACHINE) {
            return true;
        }
        let now = api.ledger.now;
        let first = machine.creation_timestamp().map_or(now, |at| from_kubernetes(&at) + busy(machine));
        if now < first {
            self.look_again(first);
            return false;
        }
        let api_server::State { ledger, machines, .. } = api;
        let _ = machines.update(ledger, key, Expect::default(), |machine| {
            machine.finalizers_mut().push(finalizers::CORE_MACHINE.to_owned());
        });
        true
    }

    fn live(
        &mut self,
        api: &mut api_server::State,
        key: &ObjectKey,
        machine: &Machine,
        infrastructure: &ObjectKey,
        asg_machine: &ASGMachine,
    ) {
        let foreign = asg_machine
            .owner_references()
            .iter()
            .any(|owner| owner.controller == Some(true) && Some(&owner.uid) != machine.metadata.uid.as_ref());
        if foreign {
            self.breach(format!("D4: {infrastructure} has another controller than its Machine"));
            return;
        }
        let now = api.ledger.now;
        let provisioned = asg_machine.status.as_ref().is_some_and(|status| status.initialization.provisioned);
        let id = asg_machine.spec.instance_id.clone();
        let (node, reason) = self.node_ready(&id, provisioned, machine.has_node());
        let joined = machine.has_node() || provisioned && self.has_node(&id) && !self.unreachable;
        let versions = || Some((machine.resource_version()?, asg_machine.resource_version()?, reason));
        let uid = machine.uid().unwrap_or_default();
        let seen = versions();
        // Nothing changed since nothing was to do: with a thousand Machines the look itself would be the cost.
        if seen.is_some() && self.settled.get(&uid) == seen.as_ref() {
            return;
        }
        let mut changed = false;
        let api_server::State { ledger, machines, asg_machines, .. } = api;
        if let Some(owner) = machine.controller_owner_ref(&()) {
            let adopted = asg_machines.update(ledger, infrastructure, Expect::default(), |asg_machine| {
                set_owner(asg_machine.owner_references_mut(), owner);
            });
            changed |= !matches!(adopted, Ok(false));
        }
        let told = machines.update(ledger, key, Expect::default(), |machine| {
            if provisioned {
                machine.spec.provider_id = Some(asg_machine.spec.provider_id.clone());
            }
            let generation = machine.metadata.generation.unwrap_or(1);
            let status = machine.status.get_or_insert_default();
            if joined {
                status.node_ref = Some(NodeRef { name: format!("node-{id}") });
            }
            status.phase = Some(if joined { "Running" } else { "Provisioning" }.to_owned());
            let ready = match node {
                Status::True => "Ready",
                Status::False => "NotReady",
                Status::Unknown => "ReadyUnknown",
            };
            for finding in [Finding::plain(READY, node, ready), Finding::plain("NodeReady", node, reason)] {
                conditions::set(&mut status.conditions, finding, generation, now);
            }
        });
        changed |= !matches!(told, Ok(false));
        if let Some(seen) = seen.filter(|_| !changed) {
            self.settled.insert(uid, seen);
        }
    }

    fn delete(
        &mut self,
        api: &mut api_server::State,
        key: &ObjectKey,
        machine: &Machine,
        asg_machine: Option<&Arc<ASGMachine>>,
    ) {
        let uid = machine.uid().unwrap_or_default();
        if !self.is_drained(api, key, machine, asg_machine, &uid) {
            return;
        }
        let api_server::State { ledger, machines, asg_machines, .. } = api;
        if let Some(asg_machine) = asg_machine {
            let _ = asg_machines.delete(ledger, &ObjectKey::of(asg_machine.as_ref()), Expect::default());
            return;
        }
        if let Some(id) = machine.spec.provider_id.as_deref().and_then(|id| id.rsplit('/').next()) {
            self.delete_node(id);
        }
        self.drains.remove(&uid);
        self.settled.remove(&uid);
        let _ = machines.update(ledger, key, Expect::default(), |machine| {
            machine.finalizers_mut().retain(|finalizer| finalizer != finalizers::CORE_MACHINE);
        });
    }

    /// Whether the Node's drain is over, or was never to be.
    fn is_drained(
        &mut self,
        api: &api_server::State,
        key: &ObjectKey,
        machine: &Machine,
        asg_machine: Option<&Arc<ASGMachine>>,
        uid: &str,
    ) -> bool {
        if self.drain_over.contains(uid) {
            return true;
        }
        let now = api.ledger.now;
        let cluster = api.clusters.get(&key.sibling(&machine.spec.cluster_name));
        let skipped = if machine.annotations().contains_key(annotations::EXCLUDE_NODE_DRAINING) {
            Some("the annotation says so")
        } else if cluster.is_none_or(|cluster| cluster.is_deleting()) {
            Some("the Cluster is being deleted")
        } else if asg_machine.is_none_or(|machine| machine.metadata.deletion_timestamp.is_some()) {
            Some("the infrastructure is being deleted")
        } else if !machine.has_node() && !asg_machine.is_some_and(|own| self.has_node(&own.spec.instance_id))
        {
            // Core finds the Node by the provider ID of the infrastructure object if the Machine does not name it.
            Some("no Node has joined")
        } else {
            None
        };
        if let Some(why) = skipped {
            self.over(key, uid, Drain::Skipped(why));
            return true;
        }
        let began = *self.drains.entry(uid.to_owned()).or_insert(now);
        let timeout = machine.spec.deletion.and_then(|deletion| deletion.node_drain_timeout_seconds);
        if let Some(seconds) = timeout.filter(|seconds| *seconds > 0) {
            let ends = began + TimeDelta::seconds(i64::from(seconds));
            if now >= ends {
                self.over(key, uid, Drain::TimedOut(now));
                return true;
            }
            self.look_again(ends);
        }
        if self.blocked.contains("*") || self.blocked.contains(&key.name) {
            return false;
        }
        let ends = began + self.drain_time;
        if now < ends {
            self.look_again(ends);
            return false;
        }
        self.over(key, uid, Drain::Done(now));
        true
    }

    fn over(&mut self, key: &ObjectKey, uid: &str, drain: Drain) {
        self.drain_over.insert(uid.to_owned());
        self.drained.push((key.name.clone(), drain));
    }
}
