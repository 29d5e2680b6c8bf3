//! The simulation: a seed makes a story (a spec, what people, AWS and mishaps do, and how it ends), which is lived
//! through in virtual time under the rules of [`crate::Invariants`].

mod act;
mod by_aws;
mod calm;
mod existing_group;
mod field;
mod generate;
mod generate_acts;
mod generate_events;
mod generate_others;
mod generate_outages;
mod generate_refreshes;
mod identities;
mod interruptions;
mod live;
mod odd;
mod outcome;
mod perform;
mod placement;
mod second_manager;
mod second_manager_live;
mod second_pool;
mod spec;
mod standing;
mod tally;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use act::{Act, Finale, Story};
pub use outcome::{Options, Outcome};
pub use second_manager::Moves;
pub use tally::tally;

use crate::{Trace, run};

/// Lives through a seed's story. The same seed and options always go the same way.
#[must_use]
pub fn simulate(seed: u64, options: Options) -> Outcome {
    let story = Story::with(seed, options.interruptions);
    guarded(seed, || run(live::live(&story, options)))
}

/// Moves a seed's pool between two management clusters, there and back, with interruptions or without. The same seed always
/// goes the same way.
#[must_use]
pub fn simulate_moves(seed: u64, are_interrupted: bool) -> Outcome {
    let story = Moves::with(seed, are_interrupted);
    guarded(seed, || run(second_manager_live::live(&story)))
}

/// What panics is a violation of its seed.
fn guarded(seed: u64, lives: impl FnOnce() -> anyhow::Result<Outcome>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(lives)) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => failed(seed, format!("no runtime: {error:#}")),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
            failed(seed, format!("panic: {}", words.unwrap_or_default()))
        }
    }
}

fn failed(seed: u64, violation: String) -> Outcome {
    Outcome { seed, violation: Some(violation), trace: Trace::default(), calls: 0, seconds: 0 }
}
