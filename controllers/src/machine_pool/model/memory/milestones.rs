//! What happened to instances: drains that ended, nodes that became ready, Spot instances that EC2 reclaimed. For metrics
//! alone: no decision depends on it.

use std::collections::BTreeMap;

use capasg_api::time::to_second;
use capasg_cloud::TerminationCause;
use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::memory::terminations::Terminations;
use crate::machine_pool::model::{Observed, PoolInstance};
use crate::observer::{InterruptionOutcome, PoolEvent};

/// What happened to an instance is remembered for this long after the instance was last observed: caches and the group
/// may show it again.
const REMEMBERED: TimeDelta = TimeDelta::minutes(10);

/// What happened to the instances of a pool, and what of it was not reported yet.
#[derive(Debug, Clone, Default)]
pub struct Milestones {
    instances: BTreeMap<String, Milestone>,
    unreported: Vec<PoolEvent>,
}

/// What happened to one instance.
#[derive(Debug, Clone)]
struct Milestone {
    seen_at: DateTime<Utc>,
    drained: bool,
    ready: bool,
    interrupted: bool,
}

impl Milestone {
    const fn begins(now: DateTime<Utc>) -> Self {
        Self { seen_at: now, drained: false, ready: false, interrupted: false }
    }
}

impl Milestones {
    /// What was not reported yet, oldest first.
    #[must_use]
    pub fn unreported(&self) -> &[PoolEvent] {
        &self.unreported
    }

    /// Records that everything was reported.
    pub(super) fn report(&mut self) {
        self.unreported.clear();
    }

    /// Records the instances as they are observed now. What happened before `began`, when this process first observed the
    /// pool, was counted by the previous leader.
    pub(super) fn observe(
        &mut self,
        observed: &Observed,
        terminations: &Terminations,
        began: DateTime<Utc>,
        now: DateTime<Utc>,
    ) {
        let began = to_second(began);
        for (id, instance) in &observed.instances {
            let known = match self.instances.get_mut(id) {
                Some(known) => known,
                None => self.instances.entry(id.clone()).or_insert(Milestone::begins(now)),
            };
            known.seen_at = now;
            if !known.drained
                && let Some(took) = drain(instance, began)
            {
                known.drained = true;
                self.unreported.push(PoolEvent::Drained(took));
            }
            if !known.ready
                && let Some(took) = startup(instance, began)
            {
                known.ready = true;
                self.unreported.push(PoolEvent::NodeReady(took));
            }
            if !known.interrupted
                && let Some(outcome) = interruption(id, instance, terminations)
            {
                known.interrupted = true;
                self.unreported.push(PoolEvent::Interrupted(outcome));
            }
        }
        self.instances.retain(|_, known| now - known.seen_at < REMEMBERED);
    }
}

/// How long the drain of an instance took, if it ended: core deletes the ASGMachine once the Node is drained and its
/// volumes are detached. A Machine that is not drained does not count.
fn drain(instance: &PoolInstance, began: DateTime<Utc>) -> Option<TimeDelta> {
    let machine = instance.machine.as_ref().filter(|machine| machine.has_node && !machine.drain_excluded)?;
    let ended = instance.asg_machine.as_ref()?.deleting_since.filter(|ended| *ended >= began)?;
    let took = ended - machine.deleting_since?;
    (took >= TimeDelta::zero()).then_some(took)
}

/// How long it took from the launch of an instance until its Machine was ready, if this process observed both.
fn startup(instance: &PoolInstance, began: DateTime<Utc>) -> Option<TimeDelta> {
    let ready = instance.machine.as_ref().filter(|machine| machine.ready)?.ready_since?;
    let took = ready - instance.launched_at().filter(|launched| *launched >= began)?;
    (took >= TimeDelta::zero()).then_some(took)
}

/// What became of a Spot instance that EC2 reclaims, once that is known.
fn interruption(
    id: &str,
    instance: &PoolInstance,
    terminations: &Terminations,
) -> Option<InterruptionOutcome> {
    if !instance.is_interrupted() {
        let is_spot = terminations.cause(id) == Some(TerminationCause::Spot);
        return is_spot.then_some(InterruptionOutcome::NoNotice);
    }
    if instance.is_terminated() && !instance.is_drained() {
        return Some(InterruptionOutcome::NotDrained);
    }
    // Core stops a drain that EC2 ended, and deletes the ASGMachine then.
    let is_excluded = instance.machine.as_ref().is_some_and(|machine| machine.drain_excluded);
    match (instance.is_drained(), is_excluded) {
        (false, _) => None,
        (true, false) => Some(InterruptionOutcome::Drained),
        (true, true) => Some(InterruptionOutcome::NotDrained),
    }
}

#[cfg(test)]
mod tests {
    use capasg_cloud::NoticeKind;

    use super::*;
    use crate::machine_pool::decide::testing::{Stage, facts, now};
    use crate::machine_pool::model::Ec2Answer;

    fn seen(milestones: &mut Milestones, stage: &Stage, at: DateTime<Utc>) -> Vec<PoolEvent> {
        let terminations = &stage.memory.terminations;
        milestones.observe(&stage.observed, terminations, now() - TimeDelta::minutes(1), at);
        let events = milestones.unreported().to_vec();
        milestones.report();
        events
    }

    #[test]
    fn a_drain_counts_once_when_it_ends() {
        let (mut stage, mut milestones) = (Stage::new(2), Milestones::default());
        stage.draining("i-1");
        assert_eq!(seen(&mut milestones, &stage, now()), []);
        stage.instance("i-1").asg_machine.as_mut().unwrap().deleting_since =
            Some(now() + TimeDelta::seconds(15));
        let drained = PoolEvent::Drained(TimeDelta::seconds(45));
        assert_eq!(seen(&mut milestones, &stage, now()), [drained]);
        assert_eq!(seen(&mut milestones, &stage, now()), []);
        // A cache that is behind does not show the instance for a moment.
        let removed = stage.observed.instances.remove("i-1").unwrap();
        assert_eq!(seen(&mut milestones, &stage, now()), []);
        stage.observed.instances.insert("i-1".to_owned(), removed);
        assert_eq!(seen(&mut milestones, &stage, now()), []);
    }

    #[test]
    fn a_drain_that_ended_before_this_process_does_not_count() {
        let (mut stage, mut milestones) = (Stage::new(1), Milestones::default());
        let ended = now() - TimeDelta::minutes(2);
        let instance = stage.instance("i-1");
        instance.machine.as_mut().unwrap().deleting_since = Some(ended - TimeDelta::minutes(1));
        instance.asg_machine.as_mut().unwrap().deleting_since = Some(ended);
        assert_eq!(seen(&mut milestones, &stage, now()), []);
    }

    #[test]
    fn a_node_counts_when_it_is_ready_for_the_first_time() {
        let (mut stage, mut milestones) = (Stage::new(2), Milestones::default());
        let ready_at = now() + TimeDelta::seconds(90);
        let instance = stage.instance("i-1");
        instance.asg_machine.as_mut().unwrap().launched_at = Some(now());
        let machine = instance.machine.as_mut().unwrap();
        (machine.ready, machine.ready_since) = (false, Some(now()));
        // i-2 was launched before this process began.
        stage.instance("i-2").machine.as_mut().unwrap().ready_since = Some(ready_at);
        stage.instance("i-2").asg_machine.as_mut().unwrap().launched_at = Some(now() - TimeDelta::hours(1));
        assert_eq!(seen(&mut milestones, &stage, ready_at), []);
        let machine = stage.instance("i-1").machine.as_mut().unwrap();
        (machine.ready, machine.ready_since) = (true, Some(ready_at));
        let ready = PoolEvent::NodeReady(TimeDelta::seconds(90));
        assert_eq!(seen(&mut milestones, &stage, ready_at), [ready]);
        stage.instance("i-1").machine.as_mut().unwrap().ready_since = Some(ready_at + TimeDelta::hours(1));
        assert_eq!(seen(&mut milestones, &stage, ready_at + TimeDelta::hours(1)), []);
    }

    #[test]
    fn an_interruption_has_one_outcome() {
        let outcome = |prepare: fn(&mut Stage)| {
            let (mut stage, mut milestones) = (Stage::new(1), Milestones::default());
            stage.instance("i-1").notice = Some(NoticeKind::SpotInterruption);
            prepare(&mut stage);
            let events = seen(&mut milestones, &stage, now());
            assert_eq!(seen(&mut milestones, &stage, now()), [], "once");
            events.into_iter().find(|event| matches!(event, PoolEvent::Interrupted(_)))
        };
        let terminate = |stage: &mut Stage| {
            stage.instance("i-1").ec2 = Some(Ec2Answer { facts: Some(facts("i-1", false)), as_of: now() });
        };
        let drained = |outcome| Some(PoolEvent::Interrupted(outcome));
        assert_eq!(outcome(|stage| drop(stage.draining("i-1").clone())), None);
        assert_eq!(
            outcome(|stage| drop(stage.drained("i-1").clone())),
            drained(InterruptionOutcome::Drained)
        );
        assert_eq!(outcome(terminate), drained(InterruptionOutcome::NotDrained));
        let excluded = |stage: &mut Stage| {
            stage.drained("i-1").instance("i-1").machine.as_mut().unwrap().drain_excluded = true;
        };
        assert_eq!(outcome(excluded), drained(InterruptionOutcome::NotDrained));
        let no_notice = |stage: &mut Stage| {
            stage.instance("i-1").notice = None;
            stage.memory.terminations.causes_mut().insert("i-1".to_owned(), TerminationCause::Spot);
        };
        assert_eq!(outcome(no_notice), drained(InterruptionOutcome::NoNotice));
    }
}
