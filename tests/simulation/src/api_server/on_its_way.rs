//! Writes that are on their way to the API server: one that was sent arrives, whether or not its sender still waits for the
//! reply.

use std::time::Duration;

use capasg_cloud::Clock;
use capasg_controllers::kubernetes::KubeWrite;
use chrono::{DateTime, Utc};

use super::ApiServer;

/// A write whose sender waits for the reply.
pub(super) struct OnItsWay<'a> {
    api: &'a ApiServer,
    write: &'a KubeWrite,
    time: Duration,
    due: DateTime<Utc>,
    has_arrived: bool,
}

impl<'a> OnItsWay<'a> {
    pub(super) fn new(api: &'a ApiServer, write: &'a KubeWrite, time: Duration) -> Self {
        Self { api, write, time, due: api.clock.now() + time, has_arrived: false }
    }

    /// Waits until the write arrives.
    pub(super) async fn arrives(mut self) {
        tokio::time::sleep(self.time).await;
        self.has_arrived = true;
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        if !self.has_arrived {
            self.api.state().late.push((self.due, self.write.clone()));
        }
    }
}
