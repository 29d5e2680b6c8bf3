//! Requests that are on their way to AWS: one that was sent arrives, whether or not its sender still waits for the reply.

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use capasg_cloud::{Clock, Identity, Write};
use capasg_fake_aws::{Call, Service, Simulator};
use chrono::{DateTime, TimeDelta, Utc};

use super::{Shared, shared::Request};
use crate::{journal::Moment, latency::pass};

/// No call times out before (`Limits::read_timeout`).
const TIMES_OUT: TimeDelta = TimeDelta::seconds(10);

/// A request whose sender waits for the reply.
pub(super) struct OnItsWay<'a> {
    shared: &'a Shared,
    api: &'static str,
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
        (api, identity): (&'static str, &'a Arc<Identity>),
        write: Option<&'a Write>,
        call: &'a Call,
        time: Duration,
    ) -> Self {
        let due = shared.clock.now() + time;
        Self { shared, api, identity, write, call, time, due, has_arrived: false }
    }

    /// Waits until the request arrives.
    pub(super) async fn arrives(mut self) {
        tokio::time::sleep(self.time).await;
        self.has_arrived = true;
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        if self.has_arrived {
            return;
        }
        self.shared.gives_up(self.api, self.due - self.time);
        // A read changes nothing; a receive hides messages.
        if self.write.is_none() && self.call.service != Service::Sqs {
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

/// A reply that is on its way.
pub(super) struct Reply<'a> {
    shared: &'a Shared,
    api: &'static str,
    sent: DateTime<Utc>,
    time: Duration,
    has_arrived: bool,
}

impl<'a> Reply<'a> {
    /// The reply to a call that was sent at a moment, which takes so long from now on.
    pub(super) fn new(shared: &'a Shared, api: &'static str, sent: DateTime<Utc>, time: Duration) -> Self {
        Self { shared, api, sent, time, has_arrived: false }
    }

    /// Waits until it arrives.
    pub(super) async fn arrives(mut self) {
        pass(self.time).await;
        self.has_arrived = true;
    }
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        if !self.has_arrived {
            self.shared.gives_up(self.api, self.sent);
        }
    }
}

impl Shared {
    /// Nobody waits any longer for the reply to a call that was sent at a moment: it timed out, unless the process died.
    fn gives_up(&self, api: &'static str, sent: DateTime<Utc>) {
        if self.clock.now() - sent >= TIMES_OUT {
            self.journal.tell(Moment::Failed { api, is_rejected: false, is_of_spec: false });
        }
    }

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
