//! Nodes: one joins for each machine that runs for a while, and stays until its Machine is deleted.

use capasg_simulator::Simulator;
use chrono::{DateTime, Utc};

use super::State;

impl State {
    /// Looks at the machines that there are: those that run long enough have a Node.
    pub(super) fn look_at_instances(&mut self, simulator: &Simulator, now: DateTime<Utc>) {
        let dumps = simulator.dump(None);
        let all = dumps.iter().flat_map(|dump| &dump.instances);
        let running: Vec<&String> =
            all.filter(|one| one.state == "running" && one.user_data.is_some()).map(|one| &one.id).collect();
        self.running.retain(|id, _| running.contains(&id));
        for id in running {
            let since = *self.running.entry(id.clone()).or_insert(now);
            if self.nodes.contains(id) || self.mute.contains("*") || self.mute.contains(id) {
                continue;
            }
            let joins = since + self.join_time;
            if joins <= now {
                self.nodes.insert(id.clone());
            } else {
                self.look_again(joins);
            }
        }
        // Machines change their state by themselves.
        if let Some(next) = simulator.next_event() {
            self.look_again(next.max(now));
        }
    }

    pub(super) fn has_node(&self, id: &str) -> bool {
        self.nodes.contains(id)
    }

    /// Whether the Node's kubelet answers.
    pub(super) fn is_running(&self, id: &str) -> bool {
        self.running.contains_key(id)
    }

    pub(super) fn delete_node(&mut self, id: &str) {
        self.nodes.remove(id);
    }
}
