//! How a seed is run, and how that went.

use crate::{Line, Trace};

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
    /// Calls take time, and more is interrupted.
    pub interruptions: bool,
}
