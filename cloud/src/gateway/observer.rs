//! Who counts the calls.

use std::time::Duration;

use crate::{CloudError, EventKind, EventOutcome};

/// Told of every call that was sent, each page by itself. All labels are bounded.
pub trait CallObserver: Send + Sync + 'static {
    /// A call ended. `outcome` is `Success`, `NoAnswer`, `Cancelled` or [`crate::ErrorClass::as_str`];
    /// `took` leaves out the wait for the rate limit.
    fn called(&self, api: &'static str, mutating: bool, outcome: &'static str, took: Duration);

    /// How long a call waited for the rate limit before it was sent.
    fn waited(&self, _api: &'static str, _waited: Duration) {}

    /// A listing lacked groups that we know of: it is read again before it is believed.
    fn doubted(&self) {}

    /// The queue of events of a region began to answer, or ceased to.
    fn queue_up(&self, _region: &str, _up: bool) {}

    /// A message of a queue of events was looked at.
    fn event(&self, _kind: EventKind, _outcome: EventOutcome) {}
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl CallObserver for NoObserver {
    fn called(&self, _: &'static str, _: bool, _: &'static str, _: Duration) {}
}

/// The bounded label of a result.
pub(super) fn outcome<T>(result: &Result<T, CloudError>) -> &'static str {
    match result {
        Ok(_) => "Success",
        Err(error) if error.outcome_unknown => "NoAnswer",
        Err(error) => error.class.as_str(),
    }
}
