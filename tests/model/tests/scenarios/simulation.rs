//! The simulation itself (design section 6): a seed goes one way only, and a process may die before any call.

use anyhow::{Result, ensure};
use capasg_model::simulation::{Options, simulate};

#[test]
fn design6_the_same_seed_goes_the_same_way_byte_for_byte() -> Result<()> {
    for seed in 0..12 {
        let [first, second] = [(); 2].map(|()| simulate(seed, Options { record: true, kill: None }));
        let (first, second) = (first.trace.to_string(), second.trace.to_string());
        ensure!(first.lines().count() > 5, "seed {seed} was not recorded");
        ensure!(first == second, "seed {seed} went two ways");
    }
    Ok(())
}

#[test]
fn design6_whether_a_run_is_recorded_changes_nothing() -> Result<()> {
    for seed in 0..12 {
        let [plain, recorded] = [false, true].map(|record| simulate(seed, Options { record, kill: None }));
        ensure!(
            (plain.calls, plain.seconds) == (recorded.calls, recorded.seconds),
            "seed {seed} went two ways"
        );
    }
    Ok(())
}

/// Every await point of the controllers is a call through a port.
#[test]
fn design6_a_process_may_die_before_any_call_of_a_life() -> Result<()> {
    let seed = 2;
    let base = simulate(seed, Options::default());
    ensure!(base.violation.is_none(), "{:?}", base.violation);
    ensure!(base.calls > 50, "only {} calls", base.calls);
    for call in 1..=base.calls {
        let outcome = simulate(seed, Options { record: false, kill: Some(call) });
        ensure!(outcome.violation.is_none(), "killed before call {call}: {:?}", outcome.violation);
    }
    Ok(())
}
