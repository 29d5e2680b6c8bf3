//! Feeds the inventory of one region from its queue: receives, passes events on, and deletes a message once the pools that
//! it concerns have seen it. A queue that fails is reported once and retried with backoff; polling goes on meanwhile.

#[cfg(test)]
mod tests;
mod undeleted;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use undeleted::{DeleteAfter, Discarded, Undeleted};

use crate::{
    CloudError, CloudEvent, ErrorClass, EventKind, EventOutcome, Gateway, Inventory, Queue, QueueMessage,
    QueueName, QueueState, Result, inventory::Intake,
};

/// How long a receive waits for a message: the longest that SQS offers.
const LONG_POLL: Duration = Duration::from_secs(20);
/// How long a received message is hidden from others. Short, since a message that a killed process held stays hidden from
/// its successor as long, and a Spot interruption takes two minutes.
const HIDDEN: Duration = Duration::from_secs(30);
/// A full batch of messages means that more are waiting.
const BATCH: usize = 10;
/// Receives at the same time while the queue is busy.
const MAX_RECEIVERS: usize = 8;
/// A message that no pool acknowledged is discarded after this many deliveries.
const MAX_DELIVERIES: u32 = 10;
/// Without a successful receive for this long the queue counts as failed, and groups are polled as without it.
const FAILED_AFTER: Duration = Duration::from_mins(1);
const FIRST_BACKOFF: Duration = Duration::from_secs(2);
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// The feed of one region.
pub(crate) struct Feed {
    region: String,
    queue: Arc<dyn Queue>,
    name: QueueName,
    inventory: Arc<Inventory>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    url: Option<String>,
    undeleted: Vec<Undeleted>,
    /// Set while receives fail.
    failing: Option<Failing>,
    /// Messages can be received and not deleted: each is delivered again and again.
    deletes_fail: bool,
    /// What was last reported of the queue.
    available: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    in_a_row: u32,
    last_success: Instant,
    not_before: Instant,
}

impl Feed {
    pub(crate) fn new(
        region: &str,
        queue: Arc<dyn Queue>,
        name: QueueName,
        inventory: Arc<Inventory>,
    ) -> Self {
        let url = match &name {
            QueueName::Url(url) => Some(url.clone()),
            QueueName::Name(_) => None,
        };
        inventory.set_queue(QueueState::Unread);
        let state = Mutex::new(State { url, ..State::default() });
        Self { region: region.to_owned(), queue, name, inventory, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gateway(&self) -> &Gateway {
        self.inventory.gateway()
    }

    /// Feeds until `shutdown`.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        let receive = async {
            let mut receivers = 1;
            loop {
                self.back_off().await;
                let full = join_all((0..receivers).map(|_| self.receive(LONG_POLL))).await;
                let busy = full.iter().all(|full| *full);
                receivers = if busy { (receivers * 2).min(MAX_RECEIVERS) } else { 1 };
            }
        };
        let delete = async {
            loop {
                // A missed wake-up costs two seconds, and so does a failed delete.
                let _ = tokio::time::timeout(Duration::from_secs(2), self.inventory.feed_progressed()).await;
                self.delete_processed().await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = receive => {}
            () = delete => {}
        }
    }

    /// Receives the waiting messages and deletes the processed ones, once: a single step for callers that drive time
    /// themselves.
    pub(crate) async fn step(&self) {
        let due = self.state().failing.is_none_or(|failing| failing.not_before <= Instant::now());
        while due && self.receive(Duration::ZERO).await {}
        self.delete_processed().await;
    }

    /// When [`Self::step`] may receive again.
    pub(crate) fn next(&self) -> Instant {
        let now = Instant::now();
        self.state().failing.map_or(now, |failing| failing.not_before.max(now))
    }

    /// Whether [`Self::step`] would delete something.
    pub(crate) fn has_processed(&self) -> bool {
        let state = self.state();
        state.url.is_some() && state.undeleted.iter().any(|message| message.is_processed(&self.inventory))
    }

    async fn back_off(&self) {
        let not_before = self.state().failing.map(|failing| failing.not_before);
        if let Some(at) = not_before {
            tokio::time::sleep_until(at).await;
        }
    }

    /// One receive; returns whether more messages are likely to wait.
    async fn receive(&self, wait: Duration) -> bool {
        match self.try_receive(wait).await {
            Ok(messages) => {
                self.succeeded();
                let full = messages.len() >= BATCH;
                for message in messages {
                    self.take(message);
                }
                full
            }
            Err(error) => {
                self.failed(&error);
                false
            }
        }
    }

    async fn try_receive(&self, wait: Duration) -> Result<Vec<QueueMessage>> {
        let url = self.url().await?;
        self.gateway().receive(&*self.queue, &url, wait, HIDDEN).await
    }

    async fn url(&self) -> Result<String> {
        if let Some(url) = self.state().url.clone() {
            return Ok(url);
        }
        let QueueName::Name(name) = &self.name else { return Ok(String::new()) };
        let url = self.gateway().queue_url(&*self.queue, name).await?;
        self.state().url = Some(url.clone());
        Ok(url)
    }

    fn succeeded(&self) {
        let mut state = self.state();
        if state.deletes_fail {
            // A successful delete shows when this is over, not a receive.
            return;
        }
        state.failing = None;
        let changed = state.available.replace(true) != Some(true);
        drop(state);
        if changed {
            tracing::info!(region = self.region, "the event queue is available");
            self.gateway().observer().queue_available(self.gateway().identity(), &self.region, true);
        }
        self.inventory.set_queue(QueueState::Available);
    }

    fn failed(&self, error: &CloudError) {
        let now = Instant::now();
        let mut state = self.state();
        let before = state.failing;
        if before.is_some_and(|failing| now < failing.not_before) {
            // It was under way when another one failed: both failures count as one.
            return;
        }
        let in_a_row = before.map_or(1, |failing| failing.in_a_row.saturating_add(1));
        let is_lasting = error.class.is_permanent() || error.class == ErrorClass::NotFound;
        let doublings = in_a_row - 1 + if is_lasting { 4 } else { 0 };
        let backoff = FIRST_BACKOFF.saturating_mul(1 << doublings.min(10)).min(LONGEST_BACKOFF);
        let last_success = before.map_or(now, |failing| failing.last_success);
        state.failing = Some(Failing { in_a_row, last_success, not_before: now + backoff });
        let changed = state.available.replace(false) != Some(false);
        if let QueueName::Name(_) = self.name {
            // The queue may have been deleted and created again, with another URL.
            state.url = None;
        }
        drop(state);
        if changed {
            tracing::warn!(
                region = self.region,
                %error,
                "the event queue is not available; groups are polled, and the queue is retried"
            );
            self.gateway().observer().queue_available(self.gateway().identity(), &self.region, false);
        }
        let failed_for = now - last_success;
        if failed_for >= FAILED_AFTER || is_lasting {
            self.inventory.set_queue(QueueState::Unavailable);
        }
    }

    /// Passes one message on, and records when it may be deleted. One that panics is discarded: delivered again, it would
    /// panic again.
    fn take(&self, message: QueueMessage) {
        let now = Instant::now();
        let read = catch_unwind(AssertUnwindSafe(|| self.read(&message, now)));
        let (delete_after, discarded) = read.unwrap_or_else(|_| {
            discard(&message, EventKind::Unknown, EventOutcome::Panicked, "processing it panicked")
        });
        if let Some(delete_after) = delete_after {
            let (receipt, visible_at) = (message.receipt, now + HIDDEN);
            self.state().undeleted.push(Undeleted { receipt, delete_after, visible_at, discarded });
            self.inventory.notify_feed();
        }
    }

    fn read(&self, message: &QueueMessage, now: Instant) -> (Option<DeleteAfter>, Option<Discarded>) {
        match CloudEvent::parse(&message.body) {
            Err(unreadable) => discard(message, EventKind::Unknown, EventOutcome::Unreadable, unreadable.0),
            Ok(event) if event.region == self.region && message.receive_count > MAX_DELIVERIES => discard(
                message,
                event.kind,
                EventOutcome::Discarded,
                "no reconcile processed it within the maximum number of deliveries",
            ),
            Ok(event) => {
                let (outcome, delete_after) = self.pass(&event, message.receive_count, now);
                self.gateway().observer().event(event.kind, outcome);
                (delete_after, None)
            }
        }
    }

    fn pass(
        &self,
        event: &CloudEvent,
        receive_count: u32,
        now: Instant,
    ) -> (EventOutcome, Option<DeleteAfter>) {
        if event.region != self.region {
            return (EventOutcome::OtherSource, Some(DeleteAfter::Now));
        }
        match self.inventory.take_event(event) {
            Intake::OtherAccount => (EventOutcome::OtherSource, Some(DeleteAfter::Now)),
            // A process that has just started has not read all groups: the next delivery may find the instance's group.
            Intake::UnlistedInstance => {
                (EventOutcome::NotManaged, (receive_count > 1).then_some(DeleteAfter::Now))
            }
            Intake::NotOurs => (EventOutcome::NotManaged, Some(DeleteAfter::Now)),
            Intake::ReadRequested(groups) => (EventOutcome::Processed, Some(DeleteAfter::Read(groups, now))),
            Intake::PoolsWoken(groups, revision) => {
                (EventOutcome::Processed, Some(DeleteAfter::Acknowledged(groups, revision)))
            }
        }
    }

    async fn delete_processed(&self) {
        let now = Instant::now();
        let (processed, url) = {
            let mut state = self.state();
            // A message that is visible again has another receipt.
            state.undeleted.retain(|message| now < message.visible_at);
            let Some(url) = state.url.clone() else { return };
            let (processed, undeleted): (Vec<Undeleted>, Vec<Undeleted>) =
                std::mem::take(&mut state.undeleted)
                    .into_iter()
                    .partition(|message| message.is_processed(&self.inventory));
            state.undeleted = undeleted;
            (processed, url)
        };
        for batch in processed.chunks(BATCH) {
            let receipts: Vec<String> = batch.iter().map(|message| message.receipt.clone()).collect();
            match self.gateway().delete_messages(&*self.queue, &url, &receipts).await {
                Ok(()) => {
                    if std::mem::take(&mut self.state().deletes_fail) {
                        self.succeeded();
                    }
                    for discarded in batch.iter().filter_map(|message| message.discarded.as_ref()) {
                        self.report_discarded(discarded);
                    }
                }
                // The messages are delivered again, and deleted then.
                Err(error) if is_passing(&error) => {
                    tracing::debug!(region = self.region, %error, "failed to delete messages");
                }
                Err(error) => {
                    self.state().deletes_fail = true;
                    self.failed(&error);
                }
            }
        }
    }

    fn report_discarded(&self, Discarded { message, kind, outcome, reason }: &Discarded) {
        self.gateway().observer().event(*kind, *outcome);
        let (region, kind) = (&self.region, kind.as_str());
        tracing::warn!(
            region,
            message_id = message,
            kind,
            reason,
            "deleted an SQS message without processing it"
        );
    }
}

/// A message that is deleted without any effect.
fn discard(
    message: &QueueMessage,
    kind: EventKind,
    outcome: EventOutcome,
    reason: &'static str,
) -> (Option<DeleteAfter>, Option<Discarded>) {
    let discarded = Discarded { message: message.id.clone(), kind, outcome, reason };
    (Some(DeleteAfter::Now), Some(discarded))
}

/// Whether a delete that failed says nothing about the next one. A receipt may be too old by then.
fn is_passing(error: &CloudError) -> bool {
    let lasts = error.class.is_permanent() || error.class == ErrorClass::NotFound;
    !lasts || error.code == "ReceiptHandleIsInvalid"
}
