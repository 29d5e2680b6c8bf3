//! Whether instances terminate before their Nodes are ready, one after another. An instance without a lifecycle hook for its
//! launch is in service before its user data end, and a bootstrap that fails may shut it down: AWS then replaces it, and none
//! of them waits for its Node as long as `spec.nodeStartupTimeoutSeconds`. For users: no decision depends on it.

use std::collections::BTreeMap;

use capasg_api::{
    ASGMachinePoolStatus,
    capi::NodeState,
    conditions::{self, NODES_READY},
    reasons::nodes_ready,
    time::from_kubernetes,
};
use capasg_cloud::{LifecycleState, TerminationCause};
use chrono::{DateTime, Utc};

use crate::machine_pool::model::{Observed, PoolInstance, instances};

/// How the message of `NodesReady` about such instances begins. A new leader recognizes it by this.
pub const TERMINATED_EARLY: &str = "Instances terminate before their Nodes are ready";
/// A single instance may terminate for any reason.
const SEVERAL: usize = 2;

/// The instances whose Nodes have never been ready, and how many terminated like that.
#[derive(Debug, Clone, Default)]
pub struct NodeStartups {
    starting: BTreeMap<String, Startup>,
    failing: Option<Failing>,
    /// What is rolled out, and when it changed.
    revision: Option<String>,
    changed_at: Option<DateTime<Utc>>,
    /// Whether what the previous leader reported was taken over.
    is_restored: bool,
}

/// An instance that had no Node when it was first observed.
#[derive(Debug, Clone, Copy)]
struct Startup {
    /// Since when its Node may join.
    since: DateTime<Utc>,
    /// Whether it was in service when it was last observed, and core knew that its Node was not ready.
    is_awaited: bool,
}

/// The instances that terminated since a Node last became ready.
#[derive(Debug, Clone, Copy)]
struct Failing {
    /// Since when the Node of the first one could join.
    since: DateTime<Utc>,
    terminated: usize,
}

impl NodeStartups {
    /// Since when instances terminate before their Nodes are ready, if several did and no Node became ready meanwhile.
    #[must_use]
    pub fn failing_since(&self) -> Option<DateTime<Utc>> {
        self.failing.filter(|failing| failing.terminated >= SEVERAL).map(|failing| failing.since)
    }

    /// Continues with what the previous leader reported of the spec as it is.
    pub(super) fn restore(&mut self, status: Option<&ASGMachinePoolStatus>, generation: Option<i64>) {
        if std::mem::replace(&mut self.is_restored, true) {
            return;
        }
        let status = status.filter(|status| Some(status.observed_generation) == generation);
        let reported = status.and_then(|status| conditions::get(&status.conditions, NODES_READY));
        let reported = reported.filter(|found| {
            found.reason == nodes_ready::NODE_STARTUP_TIMEOUT && found.message.starts_with(TERMINATED_EARLY)
        });
        self.failing = reported.map(|found| Failing {
            since: from_kubernetes(&found.last_transition_time),
            terminated: SEVERAL,
        });
    }

    /// Records the instances as they are observed now. What happened before the desired state changed says nothing about
    /// it; `revision` is `None` while that is unknown.
    pub(super) fn observe(&mut self, observed: &Observed, revision: Option<&String>, now: DateTime<Utc>) {
        if revision.is_some() && revision != self.revision.as_ref() {
            if self.revision.is_some() {
                (self.failing, self.changed_at) = (None, Some(now));
            }
            self.revision = revision.cloned();
        }
        let Some(group) = observed.group.present() else { return };
        let before = std::mem::take(&mut self.starting);
        if observed.instances.iter().any(|(id, one)| is_ready(one) && self.is_progress(before.get(id), one)) {
            self.failing = None;
        } else {
            for (id, startup) in before.iter().filter(|(_, startup)| startup.is_awaited) {
                if observed.instances.get(id).is_some_and(has_terminated) {
                    let since = self.changed_at.map_or(startup.since, |at| at.max(startup.since));
                    self.failing.get_or_insert(Failing { since, terminated: 0 }).terminated += 1;
                }
            }
        }
        let starting = instances::live(observed)
            .filter_map(|(id, one)| Some((id.clone(), startup(one, before.get(id), now)?)));
        self.starting = starting.collect();
        let is_complete = instances::live_count(observed) >= group.capacity.desired;
        if is_complete && self.starting.is_empty() && observed.group.is_settled() {
            self.failing = None;
        }
    }

    /// Whether a ready Node is the first one of its instance since the others terminated.
    fn is_progress(&self, before: Option<&Startup>, instance: &PoolInstance) -> bool {
        let is_later =
            |failing: Failing| instance.awaits_node_since().is_some_and(|since| since >= failing.since);
        before.is_some() || self.failing.is_some_and(is_later)
    }
}

/// What is remembered of a live instance; `None` if its Node was ready before, or it is being removed.
fn startup(instance: &PoolInstance, before: Option<&Startup>, now: DateTime<Utc>) -> Option<Startup> {
    let machine = instance.machine.as_ref();
    let is_starting = before.is_some() || machine.is_none_or(|machine| !machine.has_node);
    if !is_starting || is_ready(instance) || instance.is_deleting() {
        return None;
    }
    let is_known = machine.is_some_and(|machine| machine.node.state != NodeState::Unknown);
    Some(Startup {
        since: instance.awaits_node_since().or(before.map(|before| before.since)).unwrap_or(now),
        is_awaited: is_known && instance.lifecycle() == Some(&LifecycleState::InService),
    })
}

fn is_ready(instance: &PoolInstance) -> bool {
    instance.machine.as_ref().is_some_and(|machine| machine.node.state == NodeState::Ready)
}

/// Whether an instance was terminated or stopped in EC2, or the group finds it unhealthy. That EC2 reclaims a Spot instance
/// says nothing about its Node.
fn has_terminated(instance: &PoolInstance) -> bool {
    let is_unhealthy = instance.lifecycle().is_some_and(LifecycleState::is_terminating)
        && instance.shown_cause() == Some(TerminationCause::Unhealthy);
    (is_unhealthy || instance.is_terminated()) && !instance.is_interrupted()
}

#[cfg(test)]
impl NodeStartups {
    /// Since when instances terminate early, for a test to set.
    pub fn fail_since(&mut self, since: DateTime<Utc>) {
        self.failing = Some(Failing { since, terminated: SEVERAL });
    }
}

#[cfg(test)]
mod tests {
    use capasg_api::{capi::NodeReport, conditions::Finding};
    use capasg_cloud::{HealthStatus, NoticeKind};
    use chrono::TimeDelta;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, facts, now};
    use crate::machine_pool::model::Ec2Answer;

    fn at(minutes: i64) -> DateTime<Utc> {
        now() + TimeDelta::minutes(minutes)
    }

    /// Two instances with ready Nodes, and a third one that is missing.
    fn stage() -> Stage {
        let mut stage = Stage::new(2);
        stage.group().capacity.desired = 3;
        stage
    }

    fn report(stage: &mut Stage, id: &str, node: NodeState) {
        let machine = stage.instance(id).machine.as_mut().unwrap();
        machine.node = NodeReport { state: node, since: None };
        machine.ready = node == NodeState::Ready;
        machine.has_node = node == NodeState::Ready;
    }

    fn launch(stage: &mut Stage, id: &str, minutes: i64) {
        stage.add(id, 1).machine.as_mut().unwrap().created_at = Some(at(minutes));
        report(stage, id, NodeState::NotJoined);
    }

    /// The instance shuts itself down, and the group begins to replace it.
    fn shut_down(stage: &mut Stage, id: &str) {
        let listed = stage.instance(id).listed.as_mut().unwrap();
        listed.health = HealthStatus::Unhealthy;
        listed.lifecycle = LifecycleState::parse("Terminating:Wait");
    }

    fn observe(startups: &mut NodeStartups, stage: &Stage, minutes: i64) -> Option<DateTime<Utc>> {
        startups.observe(&stage.observed, Some(&"r".to_owned()), at(minutes));
        startups.failing_since()
    }

    /// An instance is launched, and ends three minutes later.
    fn fails(
        startups: &mut NodeStartups,
        stage: &mut Stage,
        id: &str,
        minutes: i64,
    ) -> Option<DateTime<Utc>> {
        launch(stage, id, minutes);
        observe(startups, stage, minutes);
        shut_down(stage, id);
        let since = observe(startups, stage, minutes + 3);
        stage.observed.instances.remove(id);
        since
    }

    #[test]
    fn instances_that_terminate_one_after_another_are_failing_until_a_node_is_ready() {
        let (mut stage, mut startups) = (stage(), NodeStartups::default());
        assert_eq!(fails(&mut startups, &mut stage, "i-3", 0), None, "one says nothing");
        assert_eq!(fails(&mut startups, &mut stage, "i-4", 4), Some(at(0)));
        assert_eq!(fails(&mut startups, &mut stage, "i-5", 8), Some(at(0)));
        launch(&mut stage, "i-6", 12);
        assert_eq!(observe(&mut startups, &stage, 12), Some(at(0)));
        report(&mut stage, "i-6", NodeState::NotReady);
        assert_eq!(observe(&mut startups, &stage, 13), Some(at(0)));
        report(&mut stage, "i-6", NodeState::Ready);
        assert_eq!(observe(&mut startups, &stage, 14), None);
        // It is not the first time that its Node is ready.
        stage.group().capacity.desired = 4;
        fails(&mut startups, &mut stage, "i-7", 20);
        report(&mut stage, "i-6", NodeState::NotReady);
        stage.instance("i-6").machine.as_mut().unwrap().has_node = true;
        observe(&mut startups, &stage, 24);
        report(&mut stage, "i-6", NodeState::Ready);
        assert_eq!(fails(&mut startups, &mut stage, "i-8", 24), Some(at(20)));
    }

    #[test]
    fn what_ends_for_another_reason_does_not_count() {
        let ends: [fn(&mut Stage, &str); 4] = [
            // A rollout, a scale-in, a MachineHealthCheck or a user replaces it.
            |stage, id| drop(stage.draining(id).clone()),
            // The API server of the workload cluster does not answer: its Node may be ready.
            |stage, id| report(stage, id, NodeState::Unknown),
            |stage, id| drop(stage.lifecycle(id, LifecycleState::Pending).clone()),
            |stage, id| stage.instance(id).notice = Some(NoticeKind::SpotInterruption),
        ];
        for (number, end) in ends.into_iter().enumerate() {
            let (mut stage, mut startups) = (stage(), NodeStartups::default());
            for (id, minutes) in [("i-3", 0), ("i-4", 4), ("i-5", 8)] {
                launch(&mut stage, id, minutes);
                observe(&mut startups, &stage, minutes);
                end(&mut stage, id);
                observe(&mut startups, &stage, minutes + 1);
                shut_down(&mut stage, id);
                let ec2 = Ec2Answer { facts: Some(facts(id, false)), as_of: at(minutes + 2) };
                stage.instance(id).ec2 = Some(ec2);
                assert_eq!(observe(&mut startups, &stage, minutes + 2), None, "{number}");
                stage.observed.instances.remove(id);
            }
        }
    }

    #[test]
    fn another_desired_state_or_a_complete_group_begins_anew() {
        let (mut stage, mut startups) = (stage(), NodeStartups::default());
        let fail_twice = |startups: &mut NodeStartups, stage: &mut Stage| {
            fails(startups, stage, "i-3", 0);
            fails(startups, stage, "i-4", 4)
        };
        assert_eq!(fail_twice(&mut startups, &mut stage), Some(at(0)));
        startups.observe(&stage.observed, None, at(8));
        assert_eq!(startups.failing_since(), Some(at(0)), "what is desired is unknown");
        launch(&mut stage, "i-5", 8);
        observe(&mut startups, &stage, 8);
        startups.observe(&stage.observed, Some(&"fixed".to_owned()), at(9));
        assert_eq!(startups.failing_since(), None);
        // What the change replaces may still end by itself: its time counts from the change.
        shut_down(&mut stage, "i-5");
        startups.observe(&stage.observed, Some(&"fixed".to_owned()), at(10));
        assert_eq!(startups.failing.unwrap().since, at(9));

        let (mut stage, mut startups) = (self::stage(), NodeStartups::default());
        assert_eq!(fail_twice(&mut startups, &mut stage), Some(at(0)));
        stage.group().capacity.desired = 2;
        assert_eq!(observe(&mut startups, &stage, 9), None);
    }

    #[test]
    fn a_new_leader_continues_with_what_is_reported() {
        let restored = |reason, message: String, stage: &Stage| {
            let mut status =
                ASGMachinePoolStatus { observed_generation: 1, ..ASGMachinePoolStatus::default() };
            conditions::set(
                &mut status.conditions,
                Finding::new(NODES_READY, false, reason, message),
                1,
                at(-30),
            );
            let mut startups = NodeStartups::default();
            startups.restore(Some(&status), Some(1));
            let since = observe(&mut startups, stage, 0);
            // Only what was reported when it began.
            startups.restore(Some(&status), Some(1));
            assert_eq!(startups.failing_since(), since);
            since
        };
        let (timeout, early) = (nodes_ready::NODE_STARTUP_TIMEOUT, format!("{TERMINATED_EARLY}, and"));
        assert_eq!(restored(timeout, early.clone(), &stage()), Some(at(-30)));
        assert_eq!(restored(timeout, "1 of 3 instances".to_owned(), &stage()), None);
        assert_eq!(restored(nodes_ready::WAITING_FOR_NODES, early.clone(), &stage()), None);
        assert_eq!(restored(timeout, early.clone(), &Stage::new(3)), None, "nothing is missing");
        let mut corrected = NodeStartups::default();
        corrected
            .restore(Some(&ASGMachinePoolStatus { observed_generation: 1, ..Default::default() }), Some(2));
        assert_eq!(corrected.failing_since(), None);
        // A Node became ready meanwhile.
        let mut stage = stage();
        stage.instance("i-2").machine.as_mut().unwrap().created_at = Some(at(-5));
        assert_eq!(restored(timeout, early, &stage), None);
    }
}
