//! Reads EC2's description of an instance that its group does not list.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use crate::machine_pool::model::{Input, Needs, Part, PoolInstance};

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
