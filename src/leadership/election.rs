//! Leader election over a Lease, by the rules of client-go: every write names the resource version it read, and a
//! contender waits one lease duration by its own clock since it last saw the Lease change. Clocks of two machines
//! are never compared, so a wrong clock cannot make two leaders.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{
    Seat,
    store::{LeaseStore, StoreError},
};

/// Part of the lease duration that the holder does not use, for clocks that run at different speeds and for the
/// latency of the answer: one in ten.
const UNUSED_PART: u32 = 10;

/// The three durations of an election; the command line checks that each leaves room for the next.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long a standby waits after the last renewal that it observed.
    pub lease_duration: Duration,
    /// How long the holder tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// Pause between two attempts.
    pub retry_period: Duration,
}

/// The result of one attempt to acquire or renew the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Attempt {
    Ours,
    Theirs(String),
}

/// One replica's part in the election.
pub struct Election<S> {
    store: S,
    identity: String,
    namespace: String,
    timing: Timing,
    seat: Arc<Seat>,
    observed: Option<Observed>,
}

/// The Lease as last observed, and when it was observed to change.
struct Observed {
    lease: Lease,
    at: Instant,
}

impl<S: LeaseStore> Election<S> {
    /// Joins the election as `identity`, which no other process may use.
    pub fn new(store: S, namespace: String, identity: String, timing: Timing, seat: Arc<Seat>) -> Self {
        Self { store, identity, namespace, timing, seat, observed: None }
    }

    /// Waits until the Lease is ours; `false` if stopped before.
    pub async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        let mut leader = None;
        while !stop.is_cancelled() {
            match self.attempt_in(self.timing.renew_deadline).await {
                Ok(Attempt::Ours) => {
                    info!(identity = self.identity, "became the leader");
                    return true;
                }
                Ok(Attempt::Theirs(holder)) => {
                    if leader.as_ref() != Some(&holder) {
                        info!(leader = holder, "waiting to become the leader");
                        leader = Some(holder);
                    }
                }
                Err(StoreError::Conflict) => debug!("another replica updated the Lease first"),
                Err(error) => warn!(%error, source = source_of(&error), "failed to acquire the lease"),
            }
            tokio::select! {
                () = stop.cancelled() => {}
                // Spread out, so that contenders do not meet again and again.
                () = sleep(self.timing.retry_period.mul_f64(1.0 + rand::random::<f64>() / 2.0)) => {}
            }
        }
        false
    }

    /// Holds the Lease until it is lost: another replica has it, or it could not be renewed in time. The seat is given up
    /// before this returns.
    pub async fn hold(&mut self) {
        let mut renewed = Instant::now();
        loop {
            sleep(self.timing.retry_period).await;
            let started = Instant::now();
            let left = (renewed + self.timing.renew_deadline).saturating_duration_since(started);
            match self.attempt_in(left.min(self.timing.renew_deadline / 2)).await {
                Ok(Attempt::Ours) => renewed = started,
                Ok(Attempt::Theirs(holder)) => {
                    self.seat.leave();
                    warn!(leader = holder, "another replica took the lease");
                    return;
                }
                Err(error) => warn!(%error, source = source_of(&error), "failed to renew the lease"),
            }
            if Instant::now() >= renewed + self.timing.renew_deadline {
                self.seat.leave();
                warn!("failed to renew the lease in time");
                return;
            }
        }
    }

    /// Gives the Lease up, so that a successor need not wait for it to expire (rule N2).
    pub async fn release(&mut self) {
        self.seat.leave();
        let Some(Observed { mut lease, .. }) = self.observed.take() else { return };
        if holder_of(&lease) != self.identity {
            return;
        }
        let now = MicroTime(Timestamp::now());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            // As client-go does; 0 would not pass validation.
            lease_duration_seconds: Some(1),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            ..lease.spec.unwrap_or_default()
        });
        match timeout(self.timing.retry_period, self.give_up(lease)).await {
            Ok(Ok(())) => info!("released the lease"),
            Ok(Err(error)) => warn!(%error, source = source_of(&error), "failed to release the lease"),
            Err(_) => warn!("failed to release the lease in time"),
        }
    }

    async fn give_up(&self, mut lease: Lease) -> Result<(), StoreError> {
        match self.store.replace(&lease).await {
            // The answer to our last renewal may have been lost: then the stored one is ours, but newer.
            Err(StoreError::Conflict) => match self.store.get().await? {
                Some(stored) if holder_of(&stored) == self.identity => {
                    lease.metadata = stored.metadata;
                    self.store.replace(&lease).await.map(drop)
                }
                _ => Ok(()),
            },
            result => result.map(drop),
        }
    }

    async fn attempt_in(&mut self, limit: Duration) -> Result<Attempt, StoreError> {
        match timeout(limit, self.attempt()).await {
            Ok(result) => result,
            Err(late) => Err(StoreError::Other(Box::new(late))),
        }
    }

    async fn attempt(&mut self) -> Result<Attempt, StoreError> {
        // The Lease is ours as of the moment before the write was sent: no other replica can observe it earlier.
        let started = Instant::now();
        if self.seat.is_held()
            && let Some(lease) = self.renewal_without_read()
        {
            match self.store.replace(&lease).await {
                Ok(stored) => return Ok(self.won(stored, started)),
                Err(StoreError::Conflict) => {
                    debug!("the Lease was changed by another actor; reading it again");
                }
                Err(error) => return Err(error),
            }
        }

        let started = Instant::now();
        let Some(current) = self.store.get().await? else {
            let stored = self.store.create(&self.claim(None)).await?;
            return Ok(self.won(stored, started));
        };
        let identity = self.identity.clone();
        let observed = self.observe(current);
        let holder = holder_of(&observed.lease);
        let expired = Instant::now() >= observed.at + term_of(&observed.lease);
        if !holder.is_empty() && holder != identity && !expired {
            return Ok(Attempt::Theirs(holder.to_owned()));
        }
        let lease = observed.lease.clone();
        let stored = self.store.replace(&self.claim(Some(&lease))).await?;
        Ok(self.won(stored, started))
    }

    /// The Lease that renews ours without reading it first, as long as no other replica can have taken it.
    fn renewal_without_read(&self) -> Option<Lease> {
        let observed = self.observed.as_ref()?;
        (holder_of(&observed.lease) == self.identity).then(|| self.claim(Some(&observed.lease)))
    }

    /// The Lease as it reads once it is ours.
    fn claim(&self, current: Option<&Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let mut lease = current.cloned().unwrap_or_else(|| Lease {
            metadata: ObjectMeta { namespace: Some(self.namespace.clone()), ..ObjectMeta::default() },
            spec: None,
        });
        let renews = current.is_some_and(|lease| holder_of(lease) == self.identity);
        let spec = lease.spec.take().unwrap_or_default();
        let transitions = spec.lease_transitions.unwrap_or_default();
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.timing.lease_duration.as_secs()).ok(),
            acquire_time: if renews { spec.acquire_time.clone() } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(if renews || current.is_none() { transitions } else { transitions + 1 }),
            ..spec
        });
        lease
    }

    fn won(&mut self, stored: Lease, started: Instant) -> Attempt {
        self.observed = Some(Observed { lease: stored, at: started });
        self.seat.hold_until(started + self.timing.lease_duration * (UNUSED_PART - 1) / UNUSED_PART);
        Attempt::Ours
    }

    /// Remembers the Lease; the wait for its end starts again only if the holder changed it.
    fn observe(&mut self, lease: Lease) -> &Observed {
        let seen = self.observed.take().filter(|seen| seen.lease.spec == lease.spec);
        let at = seen.map_or_else(Instant::now, |seen| seen.at);
        self.observed.insert(Observed { lease, at })
    }
}

fn holder_of(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// How long the holder requests others to wait.
fn term_of(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

fn source_of(error: &StoreError) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
