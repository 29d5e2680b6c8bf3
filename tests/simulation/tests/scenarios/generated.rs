//! Generated specs through whole reconciles: whatever admission lets in, the controllers neither panic nor differ from
//! one run to the next.

use anyhow::{Result, ensure};
use capasg_api::ASGMachinePool;
use capasg_simulation::{Setup, World, pool_spec, run};
use capasg_test_objects::{Generator, is_long};
use chrono::TimeDelta;

/// All of them where there is time.
fn how_many() -> u64 {
    if is_long() { 10_000 } else { 1_000 }
}

/// How a pool with this spec begins: every write, in order.
fn beginning(seed: u64, pool: &ASGMachinePool) -> Result<String> {
    run(async {
        // Rules on what AWS refuses are not looked at: many of these specs can never work.
        let mut world = World::new(Setup { watch: false, invariants: false, ..Setup::seed(seed) });
        world.add_pool_with("workers", 2, |spec| {
            *spec = pool.spec.clone();
            spec.region = pool_spec().region;
            // Thousands of instances take minutes and show no more than a few do.
            spec.min_size = spec.min_size.map(|size| size.min(3));
        });
        world.run_for(TimeDelta::seconds(30)).await?;
        Ok(world.describe())
    })
    .flatten()
}

// Rules: B14
#[test]
fn decide_on_generated_specs_is_repeatable_and_never_panics() -> Result<()> {
    let generator = Generator::default();
    let mut decided = 0;
    for seed in 0..how_many() {
        // What the types cannot read never gets past admission.
        let Ok(pool) = serde_json::from_value::<ASGMachinePool>(generator.object(seed)) else { continue };
        let first = beginning(seed, &pool)?;
        if seed % 10 == 0 {
            ensure!(first == beginning(seed, &pool)?, "seed {seed} went two ways");
        }
        decided += 1;
    }
    ensure!(decided * 4 > how_many(), "only {decided} were read");
    Ok(())
}
