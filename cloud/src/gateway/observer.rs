//! What is reported of calls, queues and events, for metrics.

use std::time::Duration;

use crate::{CloudError, EventKind, EventOutcome, Place};

/// Receives what metrics count: every call that was sent, each page by itself. All labels are bounded.
pub trait CallObserver: Send + Sync + 'static {
    /// A call finished. `outcome` is `Success`, `NoAnswer`, `Cancelled` or [`crate::ErrorClass::as_str`];
    /// `took` leaves out the wait for the rate limit; `identity` is [`crate::Identity::name`].
    fn called(
        &self,
        identity: &str,
        api: &'static str,
        mutating: bool,
        outcome: &'static str,
        took: Duration,
    );

    /// How long a call waited for the rate limit before it was sent.
    fn waited(&self, _api: &'static str, _waited: Duration) {}

    /// Groups that exist as far as we know were missing in a listing: it is repeated before their absence is believed.
    fn listing_rechecked(&self) {}

    /// The event queue of an identity in a region became available, or unavailable.
    fn queue_available(&self, _identity: &str, _region: &str, _available: bool) {}

    /// No pool uses a place any more.
    fn closed(&self, _place: &Place) {}

    /// A message of an event queue was processed.
    fn event(&self, _kind: EventKind, _outcome: EventOutcome) {}
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl CallObserver for NoObserver {
    fn called(&self, _: &str, _: &'static str, _: bool, _: &'static str, _: Duration) {}
}

/// The bounded label of a result.
pub(super) fn outcome<T>(result: &Result<T, CloudError>) -> &'static str {
    match result {
        Ok(_) => "Success",
        Err(error) if error.outcome_unknown => "NoAnswer",
        Err(error) => error.class.as_str(),
    }
}
