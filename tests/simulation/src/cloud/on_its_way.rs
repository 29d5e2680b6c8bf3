//! Requests that are on their way to AWS: one that was sent arrives, whether or not its sender still waits for the reply.

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use capasg_cloud::{Clock, Identity, Write};
use capasg_fake_aws::{Call, Service, Simulator};
use chrono::{DateTime, Utc};

use super::Shared;
use crate::journal::Moment;

/// A request whose sender died or gave it up.
pub(crate) struct Request {
    due: DateTime<Utc>,
    identity: Arc<Identity>,
    call: Call,
}

/// A request whose sender waits for the reply.
pub(super) struct OnItsWay<'a> {
    shared: &'a Shared,
    identity: &'a Arc<Identity>,
    write: Option<&'a Write>,
    call: &'a Call,
    time: Duration,
    due: DateTime<Utc>,
    has_arrived: bool,
}

impl<'a> OnItsWay<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        identity: &'a Arc<Identity>,
        write: Option<&'a Write>,
        call: &'a Call,
        time: Duration,
    ) -> Self {
        Self { shared, identity, write, call, time, due: shared.clock.now() + time, has_arrived: false }
    }

    /// Waits until the request arrives.
    pub(super) async fn arrives(mut self) {
        tokio::time::sleep(self.time).await;
        self.has_arrived = true;
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        // A read changes nothing; a receive hides messages.
        if self.has_arrived || self.write.is_none() && self.call.service != Service::Sqs {
            return;
        }
        if let Some(write) = self.write {
            // Judged by what its reconcile knew: another one may be under way when it arrives.
            self.shared.journal.tell(Moment::Cloud { write });
        }
        let (due, identity, call) = (self.due, Arc::clone(self.identity), self.call.clone());
        self.shared.late().push(Request { due, identity, call });
    }
}

impl Shared {
    fn late(&self) -> MutexGuard<'_, Vec<Request>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the next request arrives that nobody waits for.
    pub(crate) fn next_arrival(&self) -> Option<DateTime<Utc>> {
        self.late().iter().map(|request| request.due).min()
    }

    /// Lets the requests arrive that are due, in order.
    pub(crate) fn arrive(&self, simulator: &Simulator) {
        let now = self.clock.now();
        let (mut due, later): (Vec<Request>, Vec<Request>) =
            std::mem::take(&mut *self.late()).into_iter().partition(|request| request.due <= now);
        *self.late() = later;
        due.sort_by_key(|request| request.due);
        simulator.set_time(now);
        for request in due {
            if !self.is_rejected(&request.identity) {
                // Nobody hears the reply.
                let _ = simulator.answer(request.call);
            }
        }
    }
}
