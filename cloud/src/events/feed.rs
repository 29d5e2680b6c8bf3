//! Feeds the inventory of one region from its queue: receives, passes on, and deletes a message once the pool that it
//! concerns has seen it. A queue that fails is told once and tried again after a growing pause; polling goes on meanwhile.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use super::{CloudEvent, EventKind, EventOutcome, Queue, QueueMessage, QueueName, Ticket};
use crate::{Clock, CloudError, ErrorClass, Inventory, Result, gateway::Gateway, inventory::Passed};

/// How long a receive waits for a message: the longest that SQS offers.
const LONG_POLL: Duration = Duration::from_secs(20);
/// For this long a message that was received is hidden from others. Short, since one that a killed process had in hand
/// is hidden as long from its successor, and a Spot interruption takes two minutes.
const HIDDEN: Duration = Duration::from_secs(30);
/// A full batch of messages tells that more wait.
const BATCH: usize = 10;
/// Receives at the same time while the queue is busy.
const MOST_LANES: usize = 8;
/// A message that no pool took note of is given up when it came this often.
const MOST_DELIVERIES: u32 = 10;
/// Without a successful receive for this long the queue counts as broken, and groups are polled as without.
const BROKEN_AFTER: Duration = Duration::from_mins(1);
const FIRST_BACKOFF: Duration = Duration::from_secs(2);
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// The feed of one region.
pub(crate) struct Feed {
    region: String,
    queue: Arc<dyn Queue>,
    name: QueueName,
    inventory: Arc<Inventory>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    url: Option<String>,
    waiting: Vec<Waiting>,
    /// Since when receives fail: their number, the first one's time and when the next is due.
    failing: Option<Failing>,
    /// Messages can be received and not deleted: they come again and again.
    undeletable: bool,
    up: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    in_a_row: u32,
    last_success: DateTime<Utc>,
    not_before: DateTime<Utc>,
}

/// A message that is deleted once what it waits for has come.
#[derive(Debug)]
struct Waiting {
    receipt: String,
    until: Until,
    /// Then it comes again by itself.
    visible_at: DateTime<Utc>,
    /// What is told of it once it is deleted.
    epitaph: Option<Epitaph>,
}

/// What is told of a message that is deleted although nobody took note of it.
#[derive(Debug)]
struct Epitaph {
    message: String,
    kind: EventKind,
    outcome: EventOutcome,
    why: &'static str,
}

#[derive(Debug)]
enum Until {
    /// Nothing.
    Now,
    /// A read of each group that began after this.
    Read(BTreeSet<String>, DateTime<Utc>),
    /// A reconcile of each group's pool that began when this was known.
    Pools(BTreeSet<String>, Ticket),
}

impl Feed {
    pub(crate) fn new(
        region: &str,
        queue: Arc<dyn Queue>,
        name: QueueName,
        inventory: Arc<Inventory>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let url = match &name {
            QueueName::Url(url) => Some(url.clone()),
            QueueName::Name(_) => None,
        };
        let state = Mutex::new(State { url, ..State::default() });
        Self { region: region.to_owned(), queue, name, inventory, clock, state }
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
            let mut lanes = 1;
            loop {
                self.pause().await;
                let full = join_all((0..lanes).map(|_| self.receive(LONG_POLL))).await;
                let busy = full.iter().all(|full| *full);
                lanes = if busy { (lanes * 2).min(MOST_LANES) } else { 1 };
            }
        };
        let delete = async {
            loop {
                // What was missed is seen a moment later, and what cannot be deleted is tried again.
                let _ = tokio::time::timeout(Duration::from_secs(2), self.inventory.fed()).await;
                self.delete_seen().await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = receive => {}
            () = delete => {}
        }
    }

    /// Receives what is there and deletes what was seen, once: a single step for those who drive time themselves.
    pub(crate) async fn step(&self) {
        let due = self.state().failing.is_none_or(|failing| failing.not_before <= self.clock.now());
        while due && self.receive(Duration::ZERO).await {}
        self.delete_seen().await;
    }

    /// When [`Self::step`] may receive again.
    pub(crate) fn next(&self) -> DateTime<Utc> {
        let now = self.clock.now();
        self.state().failing.map_or(now, |failing| failing.not_before.max(now))
    }

    /// Whether [`Self::step`] would delete something.
    pub(crate) fn has_seen(&self) -> bool {
        let state = self.state();
        state.url.is_some() && state.waiting.iter().any(|waiting| self.is_over(waiting))
    }

    async fn pause(&self) {
        let not_before = self.state().failing.map(|failing| failing.not_before);
        if let Some(wait) = not_before.and_then(|at| (at - self.clock.now()).to_std().ok()) {
            tokio::time::sleep(wait).await;
        }
    }

    /// One receive; tells whether more messages are likely to wait.
    async fn receive(&self, wait: Duration) -> bool {
        match self.try_receive(wait).await {
            Ok(messages) => {
                self.works();
                let full = messages.len() >= BATCH;
                for message in messages {
                    self.take(message);
                }
                full
            }
            Err(error) => {
                self.fails(&error);
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

    fn works(&self) {
        let mut state = self.state();
        if state.undeletable {
            // Whether that is mended, a message tells that is deleted.
            return;
        }
        state.failing = None;
        let turned = state.up.replace(true) != Some(true);
        drop(state);
        if turned {
            tracing::info!(region = self.region, "the queue of events answers");
            self.gateway().observer().queue_up(&self.region, true);
        }
        self.inventory.set_fed(true);
    }

    fn fails(&self, error: &CloudError) {
        let now = self.clock.now();
        let mut state = self.state();
        let before = state.failing;
        if before.is_some_and(|failing| now < failing.not_before) {
            // It was under way when another one failed: the two tell one thing.
            return;
        }
        let in_a_row = before.map_or(1, |failing| failing.in_a_row.saturating_add(1));
        let slow = if error.class.is_permanent() || error.class == ErrorClass::NotFound { 4 } else { 0 };
        let pause = FIRST_BACKOFF.saturating_mul(1 << (in_a_row - 1 + slow).min(10)).min(LONGEST_BACKOFF);
        let last_success = before.map_or(now, |failing| failing.last_success);
        state.failing = Some(Failing { in_a_row, last_success, not_before: now + pause });
        let turned = state.up.replace(false) != Some(false);
        if let QueueName::Name(_) = self.name {
            // It may have been deleted and made anew.
            state.url = None;
        }
        drop(state);
        if turned {
            tracing::warn!(
                region = self.region,
                %error,
                "the queue of events cannot be used; groups are polled, and it is tried again"
            );
            self.gateway().observer().queue_up(&self.region, false);
        }
        if now - last_success >= chrono::TimeDelta::from_std(BROKEN_AFTER).unwrap_or_default()
            || error.class.is_permanent()
            || error.class == ErrorClass::NotFound
        {
            self.inventory.set_fed(false);
        }
    }

    /// Passes one message on, and notes when it may be deleted.
    fn take(&self, message: QueueMessage) {
        let now = self.clock.now();
        let QueueMessage { id, receipt, received, body } = message;
        let (kind, passed) = match CloudEvent::parse(&body) {
            Err(why) => (EventKind::Unknown, Err((EventOutcome::Unreadable, why.0))),
            Ok(event) if event.region != self.region => {
                (event.kind, Ok((EventOutcome::Foreign, Some(Until::Now))))
            }
            Ok(event) if received > MOST_DELIVERIES => {
                (event.kind, Err((EventOutcome::GivenUp, "no pool took note of it")))
            }
            Ok(event) => (event.kind, Ok(self.pass(&event, received, now))),
        };
        let (until, epitaph) = match passed {
            Ok((outcome, until)) => {
                self.gateway().observer().event(kind, outcome);
                (until, None)
            }
            Err((outcome, why)) => (Some(Until::Now), Some(Epitaph { message: id, kind, outcome, why })),
        };
        if let Some(until) = until {
            let visible_at = now + HIDDEN;
            self.state().waiting.push(Waiting { receipt, until, visible_at, epitaph });
            self.inventory.feed_progress();
        }
    }

    fn pass(&self, event: &CloudEvent, received: u32, now: DateTime<Utc>) -> (EventOutcome, Option<Until>) {
        match self.inventory.pass(event) {
            Passed::Foreign => (EventOutcome::Foreign, Some(Until::Now)),
            // Whose instance it is may be known in a moment: a process that just began has not read all groups.
            Passed::Stranger => (EventOutcome::NotOurs, (received > 1).then_some(Until::Now)),
            Passed::NotOurs => (EventOutcome::NotOurs, Some(Until::Now)),
            Passed::Hint(groups) => (EventOutcome::Taken, Some(Until::Read(groups, now))),
            Passed::Notice(groups, ticket) => (EventOutcome::Taken, Some(Until::Pools(groups, ticket))),
        }
    }

    fn is_over(&self, waiting: &Waiting) -> bool {
        match &waiting.until {
            Until::Now => true,
            // Nobody looks at a group that is gone.
            Until::Read(groups, since) => groups
                .iter()
                .all(|group| self.inventory.view(group).as_of().is_none_or(|as_of| as_of >= *since)),
            Until::Pools(groups, ticket) => {
                groups.iter().all(|group| self.inventory.has_seen(group, *ticket))
            }
        }
    }

    async fn delete_seen(&self) {
        let now = self.clock.now();
        let (over, url) = {
            let mut state = self.state();
            // One that is visible again is another receipt's now.
            state.waiting.retain(|waiting| now < waiting.visible_at);
            let Some(url) = state.url.clone() else { return };
            let (over, waiting) =
                std::mem::take(&mut state.waiting).into_iter().partition(|waiting| self.is_over(waiting));
            state.waiting = waiting;
            let over: Vec<Waiting> = over;
            (over, url)
        };
        for batch in over.chunks(BATCH) {
            let receipts: Vec<String> = batch.iter().map(|waiting| waiting.receipt.clone()).collect();
            match self.gateway().delete_messages(&*self.queue, &url, &receipts).await {
                Ok(()) => {
                    if std::mem::take(&mut self.state().undeletable) {
                        self.works();
                    }
                    batch
                        .iter()
                        .filter_map(|waiting| waiting.epitaph.as_ref())
                        .for_each(|one| self.bury(one));
                }
                // They come again, and are deleted then.
                Err(error) if is_passing(&error) => {
                    tracing::debug!(region = self.region, %error, "messages were not deleted");
                }
                Err(error) => {
                    self.state().undeletable = true;
                    self.fails(&error);
                }
            }
        }
    }

    fn bury(&self, Epitaph { message, kind, outcome, why }: &Epitaph) {
        self.gateway().observer().event(*kind, *outcome);
        let (region, kind) = (&self.region, kind.as_str());
        tracing::warn!(region, message, kind, why, "deleted a message without effect");
    }
}

/// Whether a delete that failed says nothing of the next one. A receipt may be too old by then.
fn is_passing(error: &CloudError) -> bool {
    let lasts = error.class.is_permanent() || error.class == ErrorClass::NotFound;
    !lasts || error.code == "ReceiptHandleIsInvalid"
}
