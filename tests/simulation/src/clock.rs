//! Virtual time: tokio's paused clock, told as wall-clock time.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use capasg_cloud::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// Follows tokio's clock from the simulator's start of time on.
#[derive(Debug)]
pub struct VirtualClock {
    began: Instant,
    epoch: DateTime<Utc>,
    /// How far the clock of the controllers' host is off.
    off: Mutex<TimeDelta>,
}

/// The clock of the controllers' host, which may be off from that of AWS and of the API server.
pub(crate) struct HostClock(pub(crate) Arc<VirtualClock>);

impl Clock for HostClock {
    fn now(&self) -> DateTime<Utc> {
        self.0.now() + self.0.off()
    }
}

impl VirtualClock {
    /// A clock that begins now, at the simulator's epoch.
    #[must_use]
    pub fn begin() -> Arc<Self> {
        let epoch = DateTime::from_timestamp(capasg_fake_aws::EPOCH, 0).unwrap_or_default();
        Arc::new(Self { began: Instant::now(), epoch, off: Mutex::default() })
    }

    /// How far the clock of the controllers' host is off.
    pub(crate) fn off(&self) -> TimeDelta {
        *self.off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the clock of the controllers' host is off that much.
    pub(crate) fn set_off(&self, off: TimeDelta) {
        *self.off.lock().unwrap_or_else(PoisonError::into_inner) = off;
    }

    /// Virtual time since the begin.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The moment of an instant of tokio's clock.
    #[must_use]
    pub fn moment(&self, instant: Instant) -> DateTime<Utc> {
        self.epoch + instant.duration_since(self.began)
    }

    /// Lets time pass until a moment; returns at once if it is over.
    pub async fn sleep_until(&self, moment: DateTime<Utc>) {
        if let Ok(wait) = (moment - self.now()).to_std() {
            tokio::time::sleep(wait).await;
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        self.epoch + self.began.elapsed()
    }
}

/// Runs a future in a runtime of its own whose clock is paused, for tests that are not async themselves.
///
/// # Errors
/// If the runtime cannot be made.
pub fn run<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(future))
}
