//! Nodes: one joins for each machine that runs for a while, and stays until its Machine or somebody deletes it.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use capasg_api::conditions::Status;
use capasg_fake_aws::{LogFilter, Simulator};
use chrono::{DateTime, Utc};

use super::State;

impl State {
    /// Looks at the machines that there are: those that run long enough have a Node.
    pub(super) fn look_at_instances(&mut self, simulator: &Simulator, now: DateTime<Utc>) {
        // Machines change by themselves, and by calls.
        if let Some(next) = simulator.next_event() {
            self.look_again(next.max(now));
        }
        let calls = simulator.counts(&LogFilter::default().since(u64::MAX)).last_sequence;
        if self.looked != (now, calls) {
            self.looked = (now, calls);
            let running: BTreeSet<String> = simulator.running();
            self.running.retain(|id, _| running.contains(id));
            for id in running {
                self.running.entry(id).or_insert(now);
            }
        }
        if self.mute.contains("*") {
            return;
        }
        let waiting = |id: &String| {
            ![&self.nodes, &self.mute, &self.expired, &self.lost].iter().any(|all| all.contains(id))
        };
        let joining: Vec<(String, DateTime<Utc>)> = self
            .running
            .iter()
            .filter(|(id, _)| waiting(id))
            .map(|(id, since)| (id.clone(), *since + self.join_time))
            .collect();
        for (id, joins) in joining {
            if joins <= now {
                if self.has_expired(simulator, &id, joins) {
                    self.expired.insert(id);
                } else {
                    self.nodes.insert(id);
                }
            } else {
                self.look_again(joins);
            }
        }
    }

    /// Whether the token with which a machine joins was not valid any more then: the kubeadm bootstrap provider makes
    /// the next one before a token expires (half of its time to live, 15 minutes by default).
    fn has_expired(&self, simulator: &Simulator, id: &str, joins: DateTime<Utc>) -> bool {
        let Some(expiry) = self.expiry else { return false };
        let data = simulator.user_data(id).and_then(|data| STANDARD.decode(data).ok());
        let text = String::from_utf8_lossy(data.as_deref().unwrap_or_default()).into_owned();
        let mut gone = self.replaced.iter().filter(|(_, at)| *at + expiry < joins);
        gone.any(|(token, _)| text.contains(token.as_str()))
    }

    pub(crate) fn has_node(&self, id: &str) -> bool {
        self.nodes.contains(id)
    }

    /// An instance's Node joins.
    #[cfg(test)]
    pub(crate) fn join(&mut self, id: &str) {
        self.nodes.insert(id.to_owned());
    }

    /// What core finds of the Node of a Machine that had one before or not: status and reason of `NodeReady`, as core's
    /// Machine controller words them.
    pub(super) fn node_ready(&self, id: &str, provisioned: bool, had_node: bool) -> (Status, &'static str) {
        match (provisioned && self.has_node(id), had_node) {
            _ if self.unreachable => (Status::Unknown, "ConnectionDown"),
            (true, _) if !self.running.contains_key(id) || self.down.contains(id) => {
                (Status::Unknown, "NodeReadyUnknown")
            }
            (true, _) => (Status::True, "NodeReady"),
            (false, true) => (Status::False, "NodeDeleted"),
            (false, false) => (Status::Unknown, "InspectionFailed"),
        }
    }

    /// Somebody deletes a Node.
    pub(crate) fn lose_node(&mut self, id: &str) {
        if self.nodes.remove(id) {
            self.lost.insert(id.to_owned());
        }
    }

    /// The kubelet of an instance goes down, or is up again.
    pub(crate) fn set_down(&mut self, id: &str, down: bool) {
        if down {
            self.down.insert(id.to_owned())
        } else {
            self.down.remove(id)
        };
    }

    /// Kubelets that run register their Nodes again.
    pub(crate) fn heal_nodes(&mut self) {
        self.nodes.append(&mut self.lost);
        self.down.clear();
        self.unreachable = false;
    }

    pub(super) fn delete_node(&mut self, id: &str) {
        self.nodes.remove(id);
        self.lost.remove(id);
        self.down.remove(id);
    }
}
