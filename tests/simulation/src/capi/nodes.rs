//! Nodes: one joins for each machine that runs for a while, and stays until its Machine is deleted.

use std::collections::BTreeSet;

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
        let waiting = |id: &String| !self.nodes.contains(id) && !self.mute.contains(id);
        let joining: Vec<(String, DateTime<Utc>)> = self
            .running
            .iter()
            .filter(|(id, _)| waiting(id))
            .map(|(id, since)| (id.clone(), *since + self.join_time))
            .collect();
        for (id, joins) in joining {
            if joins <= now {
                self.nodes.insert(id);
            } else {
                self.look_again(joins);
            }
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
