//! Reads what EC2 says about an instance that its group does not show.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use crate::machine_pool::model::{Input, Needs, Part, PoolInstance};

/// Requests what EC2 says about an instance: at once, and again when the answer is `this_old`, since nothing else
/// announces its termination.
#[must_use]
pub fn read(input: &Input<'_>, id: &str, instance: &PoolInstance, this_old: TimeDelta) -> Part {
    let answered = instance.ec2.as_ref().map(|facts| facts.as_of).filter(|at| *at >= input.first_seen(id));
    let mut part = Part::requeue(this_old);
    if answered.is_none_or(|at| input.now - at >= this_old) {
        part.needs = of(id);
    }
    part
}

/// Needs what EC2 says about an instance.
#[must_use]
pub fn of(id: &str) -> Needs {
    Needs { facts: BTreeSet::from([id.to_owned()]), ..Needs::default() }
}
