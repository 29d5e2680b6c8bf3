//! A scaling activity.

use chrono::{DateTime, Utc};

/// How an activity stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    PreInService,
    InProgress,
    MidLifecycleAction,
    Successful,
    Failed,
    Cancelled,
}

/// A scaling activity.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    pub(crate) id: String,
    pub(crate) description: String,
    pub(crate) cause: String,
    pub(crate) start: DateTime<Utc>,
    pub(crate) end: Option<DateTime<Utc>>,
    pub(super) status: Status,
    pub(crate) message: Option<String>,
    pub(crate) details: String,
}
