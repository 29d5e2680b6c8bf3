//! Generated stories of a pool that moves between two management clusters, there and back.

use anyhow::{Result, ensure};
use capasg_simulation::simulation::{Moves, simulate_moves};
use capasg_test_objects::is_long;

/// More of them where there is time.
fn how_many() -> u64 {
    if is_long() { 500 } else { 40 }
}

// Rules: F5, M2, M4, M8
// Pains: P22, P38
#[test]
fn a_pool_that_moves_there_and_back_is_read_anew_and_converges() -> Result<()> {
    let (mut moves, mut calls) = (0, 0);
    for seed in 0..how_many() {
        let outcome = simulate_moves(seed, true);
        ensure!(outcome.violation.is_none(), "seed {seed}: {}", outcome.violation.unwrap_or_default());
        moves += Moves::with(seed, true).moves.len();
        calls += outcome.calls;
    }
    ensure!(moves >= 80 && calls > moves * 20, "{moves} moves with {calls} calls: what is run?");
    Ok(())
}
