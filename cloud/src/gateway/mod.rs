//! The one path on which calls reach one identity and region: rate-limited, guarded, timed and counted.

mod guard;
mod mutation_log;
mod observer;
mod queue_calls;
mod reads;
#[cfg(test)]
mod tests;

use std::{future::Future, sync::Arc, time::Duration};

pub use guard::{AlwaysLeading, WriteGuard};
use mutation_log::MutationLog;
pub use observer::{CallObserver, NoObserver};
pub(crate) use reads::{DESCRIBE_GROUPS, DESCRIBE_INSTANCES};
use tokio::time::Instant;

use crate::{
    Clock, Cloud, CloudError, ErrorClass, Identity, Priority, Result, Write, Written,
    throttle::{Limits, Throttle},
};

/// Every call to one identity and region goes through here.
pub struct Gateway {
    cloud: Arc<dyn Cloud>,
    guard: Arc<dyn WriteGuard>,
    observer: Arc<dyn CallObserver>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    throttle: Throttle,
    identity: String,
}

/// A token taken for one call of an operation: the request starts when it is used.
#[must_use]
pub(crate) struct Permit(&'static str);

impl Gateway {
    /// The call path of one identity and region.
    #[must_use]
    pub fn new(
        cloud: Arc<dyn Cloud>,
        guard: Arc<dyn WriteGuard>,
        observer: Arc<dyn CallObserver>,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Self {
        Self {
            cloud,
            guard,
            observer,
            clock,
            limits,
            throttle: Throttle::new(limits),
            identity: String::new(),
        }
    }

    /// The call path of an identity other than that of the process, under whose name calls are counted.
    #[must_use]
    pub fn of(self, identity: &Identity) -> Self {
        Self { identity: identity.name.clone(), ..self }
    }

    /// The name of the identity.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Carries out one change: by its priority, while this process leads, within its timeout.
    ///
    /// # Errors
    /// [`ErrorClass::NotLeading`] if nothing was sent; an error with `outcome_unknown` if no answer arrived in time; else
    /// AWS's answer.
    pub async fn write(&self, write: &Write) -> Result<Written> {
        self.time_left(write.api())?;
        let permit = self.permit(write.api(), write.priority()).await;
        self.send_write(permit, write).await
    }

    /// Sends a write for which a permit is held.
    pub(crate) async fn send_write(&self, permit: Permit, write: &Write) -> Result<Written> {
        // Checked again: the wait for the permit may have outlasted the lease.
        let timeout = self.limits.write_timeout.min(self.time_left(write.api())?);
        let log = MutationLog::of(write);
        let answer = self.send(permit, true, timeout, self.cloud.write(write)).await;
        log.answered(answer)
    }

    /// How long a write that starts now may take by the leader lease.
    pub(crate) fn time_left(&self, api: &'static str) -> Result<Duration> {
        let left = self.guard.deadline().map(|deadline| deadline - self.clock.now());
        match left.and_then(|left| left.to_std().ok()) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(CloudError::not_leading(api)),
        }
    }

    /// Waits for the rate limit.
    pub(crate) async fn permit(&self, api: &'static str, priority: Priority) -> Permit {
        let since = Instant::now();
        self.throttle.acquire(api, priority).await;
        self.observer.waited(api, since.elapsed());
        Permit(api)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn observer(&self) -> &dyn CallObserver {
        &*self.observer
    }

    async fn read<T>(&self, permit: Permit, call: impl Future<Output = Result<T>>) -> Result<T> {
        let answer = self.send(permit, false, self.limits.read_timeout, call).await;
        answer.map_err(|error| CloudError { request_id: None, ..error })
    }

    async fn send<T>(
        &self,
        Permit(api): Permit,
        mutating: bool,
        timeout: Duration,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut count = Count {
            observer: &*self.observer,
            identity: &self.identity,
            api,
            mutating,
            outcome: "Cancelled",
            since: Instant::now(),
        };
        let answer = tokio::time::timeout(timeout, call).await;
        let result = answer.unwrap_or_else(|_| {
            let message = format!("no answer within {} s", timeout.as_secs_f64());
            Err(CloudError::timed_out(api, &message))
        });
        if result.as_ref().is_err_and(|error| error.class == ErrorClass::Throttled) {
            self.throttle.throttled(api);
        }
        if result.as_ref().is_err_and(|error| error.class == ErrorClass::Denied) {
            self.cloud.reject_credentials();
        }
        count.outcome = observer::outcome(&result);
        result
    }
}

/// Counts a call when it ends, also when its future is dropped.
struct Count<'a> {
    observer: &'a dyn CallObserver,
    identity: &'a str,
    api: &'static str,
    mutating: bool,
    outcome: &'static str,
    since: Instant,
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.observer.called(self.identity, self.api, self.mutating, self.outcome, self.since.elapsed());
    }
}
