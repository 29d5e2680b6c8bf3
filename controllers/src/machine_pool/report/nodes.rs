//! The condition `NodesReady` of a pool: whether its instances in service have ready Nodes, and when one that has none
//! exceeds `spec.nodeStartupTimeoutSeconds`. Pure: what core reports of each Machine determines it, and times that objects
//! record. Only that instances terminate before their Nodes are ready is remembered.

use std::collections::BTreeMap;

use capasg_api::{
    capi::{Cluster, NodeState},
    conditions::{Finding, NODES_READY, Status},
    reasons::nodes_ready,
};
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::memory::node_startups::TERMINATED_EARLY;
use crate::machine_pool::model::{
    Blocker, Desired, Observation, Observed, Plan, PoolInstance, PoolMemory, PoolObjects, RolloutPhase,
    counted, instances,
};
use crate::machine_pool::report::text::some_of_at_most;

/// A message names at most this many instances.
const NAMED: usize = 3;

/// The instances in service that are not being removed, by the state of their Nodes.
#[derive(Debug, Default)]
pub struct Nodes {
    /// The desired number of replicas; 0 while the pool is being deleted.
    pub wanted: i32,
    /// The number of instances with a ready Node.
    pub ready: i32,
    /// Those without a ready Node for less than the timeout, or until they are replaced.
    waiting: Vec<String>,
    /// Those without a ready Node for longer, by what core reports.
    overdue: BTreeMap<NodeState, Vec<String>>,
    /// The group, if its instances have terminated before their Nodes were ready for longer than the timeout.
    failing: Option<String>,
    /// Those of which core does not know it.
    pub unknown: Vec<String>,
    /// When the next one, or the pool, exceeds the timeout.
    next: Option<DateTime<Utc>>,
    /// Whether the control plane of the Cluster is not initialized.
    before_control_plane: bool,
}

impl Nodes {
    /// The Nodes of a pool; none while it is being deleted.
    #[must_use]
    pub fn of(
        objects: &PoolObjects,
        desired: &Desired,
        observed: &Observed,
        plan: &Plan,
        memory: &PoolMemory,
        now: DateTime<Utc>,
    ) -> Self {
        let mut nodes = Self::default();
        if objects.is_deleting() {
            return nodes;
        }
        nodes.wanted = desired.replicas;
        let seconds = objects.pool.spec.node_startup_timeout_seconds();
        let timeout = (seconds > 0).then(|| TimeDelta::seconds(i64::from(seconds)));
        let cluster = objects.cluster.as_deref();
        nodes.before_control_plane = cluster.is_some_and(|cluster| !cluster.is_control_plane_initialized());
        let replaces = is_replacing(plan.rollout.as_ref());
        for (id, _) in instances::in_service(observed) {
            let Some(instance) = observed.instances.get(id).filter(|instance| !instance.is_deleting()) else {
                continue;
            };
            let state = nodes.state(instance);
            if state == NodeState::Ready {
                nodes.ready += 1;
                continue;
            }
            let machine = instance.machine.as_ref();
            let is_replaced = replaces && plan.outdated.is_outdated(id) && !blocking(plan).contains(id)
                || desired.remediate && machine.is_some_and(|machine| machine.needs_remediation);
            let since = since(state, instance, cluster);
            let ends = timeout.zip(since).map(|(timeout, since)| since + timeout);
            let is_due = ends.is_some_and(|ends| ends <= now);
            let id = id.clone();
            if is_replaced || !is_due && state != NodeState::Unknown {
                nodes.waiting.push(id);
            } else if state != NodeState::Unknown {
                nodes.overdue.entry(state).or_default().push(id);
            } else if is_due || machine.is_some_and(|machine| machine.has_node) {
                nodes.unknown.push(id);
            } else {
                // Core has had no time to look.
                nodes.waiting.push(id);
            }
            let next = ends.filter(|ends| *ends > now && !is_replaced);
            nodes.next = [nodes.next, next].into_iter().flatten().min();
        }
        let failing = memory.startups.failing_since().filter(|_| !nodes.before_control_plane);
        if let Some((since, timeout)) = failing.zip(timeout) {
            let initialized = cluster.and_then(Cluster::control_plane_initialized_at);
            let ends = initialized.map_or(since, |at| at.max(since)) + timeout;
            nodes.failing = (ends <= now).then(|| desired.group.clone());
            let next = Some(ends).filter(|ends| *ends > now);
            nodes.next = [nodes.next, next].into_iter().flatten().min();
        }
        nodes
    }

    /// No Node joins before the control plane is initialized.
    fn state(&self, instance: &PoolInstance) -> NodeState {
        let state = instance.machine.as_ref().map_or(NodeState::Unknown, |machine| machine.node.state);
        if state == NodeState::NotJoined && self.before_control_plane { NodeState::Unknown } else { state }
    }

    /// The condition.
    #[must_use]
    pub fn finding(&self, objects: &PoolObjects) -> Finding {
        let late: usize = self.overdue.values().map(Vec::len).sum();
        let ready = usize::try_from(self.ready).unwrap_or(0);
        let all = counted(ready + self.waiting.len() + self.unknown.len() + late, "instance");
        let first = self.overdue.keys().next().copied();
        if let Some(state) = self.failing.as_ref().map_or(first, |_| Some(NodeState::NotJoined)) {
            let message = self.overdue_message(objects, late, &all);
            return Finding::new(NODES_READY, false, reason(state), message);
        }
        if !self.unknown.is_empty() {
            let remedy = if self.before_control_plane {
                "the control plane of the Cluster is not initialized"
            } else {
                "see condition NodeReady of their Machines, and check that the API server of the workload cluster is \
                 reachable"
            };
            let message = format!(
                "Cluster API does not know the Nodes of {} of {all} in service ({}): {remedy}",
                self.unknown.len(),
                some_of_at_most(NAMED, &self.unknown),
            );
            return Finding::new(NODES_READY, Status::Unknown, nodes_ready::NODES_READY_UNKNOWN, message);
        }
        let message = if !self.waiting.is_empty() {
            let names = some_of_at_most(NAMED, &self.waiting);
            format!(
                "waiting for the Nodes of {} of {all} in service to be ready: {names}",
                self.waiting.len()
            )
        } else if self.ready < self.wanted {
            format!("waiting for instances: {} of {} replicas are ready", self.ready, self.wanted)
        } else {
            return Finding::plain(NODES_READY, true, nodes_ready::NODES_READY);
        };
        Finding::new(NODES_READY, false, nodes_ready::WAITING_FOR_NODES, message)
    }

    fn overdue_message(&self, objects: &PoolObjects, late: usize, all: &str) -> String {
        let seconds = objects.pool.spec.node_startup_timeout_seconds();
        let mut parts = Vec::new();
        if let Some(group) = &self.failing {
            parts.push(format!(
                "{TERMINATED_EARLY}, and no Node has become ready for {seconds} s (spec.nodeStartupTimeoutSeconds): a \
                 bootstrap that fails may shut them down, and AWS replaces them. Check the user data, the console output \
                 of an instance, and why AWS terminates them (aws autoscaling describe-scaling-activities \
                 --auto-scaling-group-name {group})."
            ));
        }
        if late > 0 {
            parts.push(format!(
                "{late} of {all} in service had no ready Node for {seconds} s (spec.nodeStartupTimeoutSeconds)."
            ));
        }
        let mut left = NAMED;
        for (state, ids) in &self.overdue {
            let names = if left == 0 { counted(ids.len(), "instance") } else { some_of_at_most(left, ids) };
            left -= ids.len().min(left);
            parts.push(format!("{}: {names}. {}.", what(*state), remedy(*state)));
        }
        let key = &objects.key;
        parts.push(format!(
            "For details, run: capasg why asgmachinepool/{} --namespace {}",
            key.name, key.namespace
        ));
        parts.join(" ")
    }
}

/// When the next instance of a pool, or the pool, exceeds the timeout, from now.
#[must_use]
pub fn next_timeout(
    observation: &Observation,
    plan: &Plan,
    memory: &PoolMemory,
    now: DateTime<Utc>,
) -> Option<TimeDelta> {
    let is_not_owned = plan.blocker.as_ref().is_some_and(Blocker::is_not_owned);
    let facts = observation.facts().filter(|_| !observation.is_paused() && !is_not_owned)?;
    let nodes = Nodes::of(&observation.objects, &facts.desired, &facts.observed, plan, memory, now);
    nodes.next.map(|next| next - now)
}

/// Since when an instance has no ready Node.
fn since(state: NodeState, instance: &PoolInstance, cluster: Option<&Cluster>) -> Option<DateTime<Utc>> {
    let machine = instance.machine.as_ref();
    match state {
        // A Node that has not joined has no time of its own.
        NodeState::NotJoined | NodeState::Unknown => {
            let initialized = cluster.and_then(Cluster::control_plane_initialized_at);
            [instance.awaits_node_since(), initialized].into_iter().flatten().max()
        }
        _ => machine.and_then(|machine| machine.node.since),
    }
}

/// The instances that a rollout does not replace without an action of a user.
fn blocking(plan: &Plan) -> &[String] {
    match &plan.rollout {
        Some(RolloutPhase::Rolling { kept, .. }) => kept,
        _ => &[],
    }
}

/// Whether a rollout is replacing outdated instances, or is about to, without an action of a user.
fn is_replacing(rollout: Option<&RolloutPhase>) -> bool {
    match rollout {
        Some(
            RolloutPhase::Settling
            | RolloutPhase::OutOfBudget
            | RolloutPhase::Refreshing { .. }
            | RolloutPhase::Rolling { .. },
        ) => true,
        None
        | Some(
            RolloutPhase::OnDelete
            // They may last until a user or AWS does something.
            | RolloutPhase::Held
            | RolloutPhase::Unread
            | RolloutPhase::Rejected
            | RolloutPhase::Paused { .. }
            | RolloutPhase::Closed { .. }
            | RolloutPhase::Stopped { .. }
            | RolloutPhase::WindowsUnsupported { .. },
        ) => false,
    }
}

fn reason(state: NodeState) -> &'static str {
    match state {
        NodeState::NotJoined => nodes_ready::NODE_STARTUP_TIMEOUT,
        NodeState::Deleted => nodes_ready::NODE_DELETED,
        NodeState::NotReady => nodes_ready::NODE_NOT_READY,
        NodeState::MachineNotReady => nodes_ready::MACHINE_NOT_READY,
        NodeState::Unknown => nodes_ready::NODES_READY_UNKNOWN,
        NodeState::Ready => nodes_ready::NODES_READY,
    }
}

fn what(state: NodeState) -> &'static str {
    match state {
        NodeState::NotJoined => "Not joined",
        NodeState::Deleted => "Node deleted",
        NodeState::NotReady => "Node not ready",
        NodeState::MachineNotReady => "Machine not ready",
        NodeState::Unknown => "Node unknown",
        NodeState::Ready => "Node ready",
    }
}

/// What to check, for a state that lasts.
fn remedy(state: NodeState) -> &'static str {
    match state {
        NodeState::NotJoined => {
            "Check the security groups and routes to the API server, the image (kubelet and container runtime), whether \
             the bootstrap token expired, the clock of the instance, its instance profile, and the provider ID of the Node"
        }
        NodeState::Deleted => {
            "Restart the kubelet to register the Node again, or delete the Machine to replace the instance"
        }
        NodeState::NotReady => {
            "Check the network plugin, the kubelet and the conditions of the Node, or delete the Machine to replace the \
             instance"
        }
        NodeState::MachineNotReady => "See the condition Ready of the Machine",
        NodeState::Unknown | NodeState::Ready => "",
    }
}

#[cfg(test)]
mod tests;
