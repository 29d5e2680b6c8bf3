//! Reads EC2's descriptions of instances that terminate, or that their group does not list.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use crate::machine_pool::model::{Input, Needs, Part, PoolInstance};

/// A terminating instance that EC2 does not describe for this long counts as running: `DescribeInstances` fails, or does not
/// know a new instance yet, and its Node may have Pods to evict. Core has the rest of the shortest wait for a Machine.
const UNANSWERED_FOR: TimeDelta = TimeDelta::seconds(30);

/// Whether an instance that its group terminates has terminated; `None` while EC2 may still answer.
#[must_use]
pub fn is_terminated(input: &Input<'_>, id: &str, instance: &PoolInstance) -> Option<bool> {
    let is_unanswered = input.now >= unanswered_at(input, id);
    instance.is_terminated_since(input.first_seen(id)).or_else(|| is_unanswered.then_some(false))
}

/// Requires EC2's description of an instance that its group terminates, unless EC2 has answered since.
#[must_use]
pub fn read_terminating(input: &Input<'_>, id: &str, instance: &PoolInstance) -> Part {
    if instance.is_terminated_since(input.first_seen(id)).is_some() {
        return Part::default();
    }
    let mut part = Part::needing(of(id));
    let wait = unanswered_at(input, id) - input.now;
    if wait > TimeDelta::zero() {
        part.requeue_within(wait);
    }
    part
}

fn unanswered_at(input: &Input<'_>, id: &str) -> DateTime<Utc> {
    input.first_seen(id) + UNANSWERED_FOR
}

/// Requires EC2's description of an instance: now, and again when the answer is `this_old`, since nothing else reports
/// its termination.
#[must_use]
pub fn read(input: &Input<'_>, id: &str, instance: &PoolInstance, this_old: TimeDelta) -> Part {
    let answered = instance.ec2.as_ref().map(|facts| facts.as_of).filter(|at| *at >= input.first_seen(id));
    let mut part = Part::requeue(this_old);
    if answered.is_none_or(|at| input.now - at >= this_old) {
        part.needs = of(id);
    }
    part
}

/// Requires EC2's description of an instance.
#[must_use]
pub fn of(id: &str) -> Needs {
    Needs { facts: BTreeSet::from([id.to_owned()]), ..Needs::default() }
}
