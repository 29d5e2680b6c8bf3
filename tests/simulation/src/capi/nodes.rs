//! Nodes: one joins for each machine that runs for a while, and stays until its Machine is deleted.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
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
        let waiting =
            |id: &String| !self.nodes.contains(id) && !self.mute.contains(id) && !self.expired.contains(id);
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

    /// Whether the Node's kubelet answers.
    pub(super) fn is_running(&self, id: &str) -> bool {
        self.running.contains_key(id)
    }

    pub(super) fn delete_node(&mut self, id: &str) {
        self.nodes.remove(id);
    }
}
