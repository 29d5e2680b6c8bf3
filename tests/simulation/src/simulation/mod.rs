//! The simulation: a seed makes a story (a spec, what people, AWS and mishaps do, and how it ends), which is lived
//! through in virtual time under the rules of [`crate::Invariants`].

mod act;
mod by_aws;
mod generate;
mod generate_acts;
mod generate_events;
mod generate_refreshes;
mod live;
mod perform;
mod spec;
mod tame;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use act::{Act, Finale, Story};

use crate::{Line, Trace, run};

/// How a seed's run went.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What went wrong; `None` if nothing did.
    pub violation: Option<String>,
    /// What happened, if it was recorded.
    pub trace: Trace,
    /// Calls through the ports.
    pub calls: usize,
    /// Virtual seconds that passed.
    pub seconds: i64,
}

impl Outcome {
    /// The lines of the trace.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        self.trace.lines()
    }
}

/// How a seed is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Record what happens, line by line.
    pub record: bool,
    /// The process dies before this call through either port, reads included.
    pub kill: Option<usize>,
}

/// Lives through a seed's story. The same seed and options always go the same way.
#[must_use]
pub fn simulate(seed: u64, options: Options) -> Outcome {
    let mut story = Story::of(seed);
    tame::tame(&mut story);
    let lived = catch_unwind(AssertUnwindSafe(|| run(live::live(&story, options))));
    match lived {
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
