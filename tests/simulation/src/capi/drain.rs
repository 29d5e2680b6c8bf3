//! How drains went.

use chrono::{DateTime, Utc};

/// How a Machine's drain went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drain {
    /// Its Node's pods were evicted; when that ended.
    Done(DateTime<Utc>),
    /// Its `nodeDrainTimeoutSeconds` passed; when that was.
    TimedOut(DateTime<Utc>),
    /// There was nothing to drain, or nobody to drain it, and why.
    Skipped(&'static str),
}
