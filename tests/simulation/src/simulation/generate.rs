//! Makes a story of a seed.

use capasg_fake_aws::{BatchEnds, Settings};

use super::{
    act::{Finale, Story},
    field, generate_acts, generate_events, generate_others, generate_outages, generate_refreshes, identities,
    interruptions, second_pool, spec,
};
use crate::{Random, Setup};

impl Story {
    /// The story of a seed, with interruptions or without.
    #[must_use]
    pub fn with(seed: u64, are_interrupted: bool) -> Self {
        let mut story = Self::of(seed);
        if are_interrupted {
            interruptions::some(&mut story);
        }
        story
    }

    /// The story of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        // Another sequence than the scheduler's.
        let random = Random::new(seed ^ 0x0073_746f_7279);
        let size = size(&random);
        let count = match size {
            ..=5 => 1 + random.below(14),
            6..=20 => 1 + random.below(9),
            21..=60 => 1 + random.below(5),
            _ => 1 + random.below(3),
        };
        let mut acts = Vec::new();
        for _ in 0..count {
            generate_acts::some(&random, size, &mut acts);
        }
        let finale = match random.below(100) {
            0..40 => Finale::Stays,
            40..75 => Finale::DeleteMachinePool,
            75..82 => Finale::DeletePool,
            82..95 => Finale::DeleteCluster,
            _ => Finale::ClusterVanishes,
        };
        // Of a sequence of its own, so that other stories stay as they are.
        let whole = finale != Finale::Stays && Random::new(seed ^ 0x6e61_6d65_7370_6163).chance(10);
        let finale = if whole { Finale::DeleteNamespace } else { finale };
        let mut last_acts = Vec::new();
        for _ in 0..random.below(4) {
            generate_acts::during_deletion(&random, size, &mut last_acts);
        }
        let replicas = if random.chance(85) { size } else { 0 };
        let mut story = Self {
            seed,
            setup: setup(&random, seed, size),
            spec: spec::spec(&random, size),
            replicas,
            fixed: false,
            expiry: None,
            drain_seconds: [1, 5, 10, 10, 45, 90][random.index(6)],
            acts,
            existing_group: None,
            second: None,
            finale,
            last_acts,
            quiet: random.chance(30),
        };
        generate_refreshes::some(&mut story, size);
        generate_events::some(&mut story);
        generate_others::some(&mut story);
        generate_outages::some(&mut story);
        identities::some(&mut story);
        field::some(&mut story);
        second_pool::some(&mut story);
        story
    }
}

/// Mostly small: what goes wrong mostly goes wrong there, too.
fn size(random: &Random) -> i32 {
    let within = |from: u64, to: u64| i32::try_from(from + random.below(to - from + 1)).unwrap_or(1);
    match random.below(1000) {
        0..750 => within(0, 5),
        750..940 => within(6, 15),
        940..985 => within(16, 50),
        _ => within(51, 200),
    }
}

fn setup(random: &Random, seed: u64, size: i32) -> Setup {
    let read_lag_millis = [0, 0, 0, 1_000, 2_500][random.index(5)];
    let large = size > 20;
    let settings = Settings {
        read_lag_millis: if large { 0 } else { read_lag_millis },
        read_lag_jitter: random.chance(50),
        page_limit: random.chance(15).then_some(3),
        batch_ends: if random.chance(50) { BatchEnds::Atomic } else { BatchEnds::Partial },
        repeated_end_decrements: random.chance(70),
        launch_millis: [2_000, 15_000, 15_000, 60_000][random.index(4)],
        ..Settings::default()
    };
    Setup {
        seed,
        settings,
        lag_millis: [0, 20, 20, 300, 1_500][random.index(5)],
        meanwhile_percent: if large { 1 } else { random.below(40) },
        watch: false,
        ..Setup::default()
    }
}
