//! What core reports about the Node of a Machine, from the conditions and the `nodeRef` of the Machine.

use chrono::{DateTime, Utc};

use super::Machine;
use crate::{
    conditions::{self, Status},
    time::from_kubernetes,
};

/// Core's condition on a Machine about the condition `Ready` of its Node.
const NODE_READY: &str = "NodeReady";
/// The reasons of [`NODE_READY`] in Cluster API v1beta2.
mod reasons {
    /// The Machine has a `nodeRef`, and the Node does not exist any more.
    pub const DELETED: &str = "NodeDeleted";
    /// The Node reports that it is not ready.
    pub const NOT_READY: &str = "NodeNotReady";
    /// The kubelet of the Node does not report, or has not reported yet.
    pub const READY_UNKNOWN: &str = "NodeReadyUnknown";
    /// Core waits for the Node, the provider ID, or the control plane.
    pub const INSPECTION_FAILED: &str = "InspectionFailed";
}

/// The state of a Machine's Node, as far as core knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeState {
    /// The Node and the Machine are ready.
    Ready,
    /// No Node with the provider ID of the Machine has joined.
    NotJoined,
    /// A Node joined, and its object was deleted.
    Deleted,
    /// The Node is not ready.
    NotReady,
    /// The Node is ready, and the Machine is not.
    MachineNotReady,
    /// Core does not know: it has not reported yet, or the API server of the workload cluster does not answer.
    Unknown,
}

/// The state of a Machine's Node, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The state.
    pub state: NodeState,
    /// When the condition that shows the state changed its status; `None` for a Node that has not joined, and if core does
    /// not report it.
    pub since: Option<DateTime<Utc>>,
}

impl Machine {
    /// What core reports about the Node.
    #[must_use]
    pub fn node_report(&self) -> NodeReport {
        let condition = conditions::get(self.conditions(), NODE_READY);
        let since = condition.map(|condition| from_kubernetes(&condition.last_transition_time));
        let report = |state, since| NodeReport { state, since };
        if self.has_node() && self.is_ready() {
            return report(NodeState::Ready, self.ready_since());
        }
        let Some(condition) = condition else { return report(NodeState::Unknown, None) };
        match (Status::parse(&condition.status), condition.reason.as_str()) {
            (Status::True, _) => report(NodeState::MachineNotReady, self.ready_since()),
            (_, reasons::DELETED) => report(NodeState::Deleted, since),
            (_, reasons::NOT_READY | reasons::READY_UNKNOWN) => report(NodeState::NotReady, since),
            // With a Node, core inspects it, and has another reason unless it cannot.
            (_, reasons::INSPECTION_FAILED) if !self.has_node() => report(NodeState::NotJoined, None),
            _ => report(NodeState::Unknown, since),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(node: Option<&str>, conditions: &[(&str, &str, &str, &str)]) -> Machine {
        let condition = |(type_, status, reason, minute): &(&str, &str, &str, &str)| {
            let at = format!("2026-01-01T00:{minute}:00Z");
            json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": at})
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {"name": "m"},
            "spec": {},
            "status": {"nodeRef": node.map(|name| json!({"name": name})), "conditions": conditions},
        }))
        .unwrap()
    }

    /// The reasons are those of core's Machine controller in v1.14.
    #[test]
    fn the_state_of_a_node_follows_the_conditions_of_core() {
        use NodeState::{Deleted, MachineNotReady, NotJoined, NotReady, Ready, Unknown};
        let ready = ("Ready", "True", "Ready", "01");
        let not = ("Ready", "False", "NotReady", "02");
        let node = |status, reason| ("NodeReady", status, reason, "03");
        for (name, conditions, state, minute) in [
            (Some("n"), vec![ready, node("True", "NodeReady")], Ready, Some(1)),
            (None, vec![not, node("Unknown", "InspectionFailed")], NotJoined, None),
            (None, vec![not, node("Unknown", "ConnectionDown")], Unknown, Some(3)),
            (None, vec![], Unknown, None),
            (Some("n"), vec![not, node("False", "NodeDeleted")], Deleted, Some(3)),
            (Some("n"), vec![not, node("False", "NodeNotReady")], NotReady, Some(3)),
            (Some("n"), vec![not, node("Unknown", "NodeReadyUnknown")], NotReady, Some(3)),
            (Some("n"), vec![not, node("Unknown", "ConnectionDown")], Unknown, Some(3)),
            (Some("n"), vec![not, node("Unknown", "InternalError")], Unknown, Some(3)),
            (Some("n"), vec![not, node("Unknown", "InspectionFailed")], Unknown, Some(3)),
            // A full disk, a failed health check, or an infrastructure that is not ready.
            (Some("n"), vec![not, node("True", "NodeReady")], MachineNotReady, Some(2)),
        ] {
            let found = machine(name, &conditions).node_report();
            let minutes = |since: DateTime<Utc>| (since.timestamp() / 60) % 60;
            assert_eq!((found.state, found.since.map(minutes)), (state, minute), "{name:?} {conditions:?}");
        }
    }
}
