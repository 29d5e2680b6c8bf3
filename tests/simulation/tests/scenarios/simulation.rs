//! The simulation itself: a seed goes one way only, and a process may die before any call.

use std::ops::Range;

use anyhow::{Result, ensure};
use capasg_simulation::simulation::{Options, simulate};
use capasg_test_objects::is_long;

use crate::some_of;

/// The seeds of stories that are lived through twice.
fn twice() -> Range<u64> {
    0..if is_long() { 12 } else { 4 }
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() -> Result<()> {
    for (seed, interruptions) in twice().flat_map(|seed| [(seed, false), (seed, true)]) {
        let options = Options { record: true, interruptions, ..Options::default() };
        let [first, second] = [(); 2].map(|()| simulate(seed, options));
        let (first, second) = (first.trace.to_string(), second.trace.to_string());
        ensure!(first.lines().count() > 5, "seed {seed} was not recorded");
        ensure!(first == second, "seed {seed} went two ways");
    }
    Ok(())
}

#[test]
fn recording_a_run_does_not_change_it() -> Result<()> {
    for (seed, interruptions) in twice().flat_map(|seed| [(seed, false), (seed, true)]) {
        let [plain, recorded] = [false, true]
            .map(|record| simulate(seed, Options { record, interruptions, ..Options::default() }));
        ensure!(
            (plain.calls, plain.seconds) == (recorded.calls, recorded.seconds),
            "seed {seed} went two ways"
        );
    }
    Ok(())
}

/// Every await point of the controllers is a call through a port.
#[test]
fn a_generated_scenario_survives_a_crash_before_any_call() -> Result<()> {
    let seed = 2;
    let base = simulate(seed, Options::default());
    ensure!(base.violation.is_none(), "{:?}", base.violation);
    ensure!(base.calls > 50, "only {} calls", base.calls);
    for call in some_of((1..=base.calls).collect(), 8) {
        let outcome = simulate(seed, Options { kill: Some(call), ..Options::default() });
        ensure!(outcome.violation.is_none(), "killed before call {call}: {:?}", outcome.violation);
    }
    Ok(())
}
