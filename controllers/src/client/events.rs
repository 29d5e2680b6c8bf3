//! Events: the same note about the same pool becomes a series, another note is another event.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use capasg_api::{errors, fit};
use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use crate::{
    ObjectKey,
    kubernetes::{self, KubeEvent},
};

/// The longest note that the API accepts.
const NOTE_LIMIT: usize = 1024;
/// A recorder makes a series of events that repeat within six minutes; one that was not used for longer is not needed.
const SERIES: Duration = Duration::from_mins(7);

/// What was published about which pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Published {
    regarding: ObjectKey,
    reason: &'static str,
    note: String,
}

/// Publishes events.
pub(super) struct Publisher {
    client: Client,
    reporter: Reporter,
    /// One for each note: a recorder makes a series by the reason alone, and keeps the first note.
    recorders: Mutex<HashMap<Published, (Recorder, Instant)>>,
}

impl Publisher {
    pub(super) fn new(client: Client) -> Self {
        let instance = std::env::var("POD_NAME").ok();
        let reporter = Reporter { controller: "capasg".into(), instance };
        Self { client, reporter, recorders: Mutex::default() }
    }

    /// Publishes; a failure is only logged, since nothing may depend on an event.
    pub(super) async fn publish(&self, event: KubeEvent) {
        let reference = event.regarding.object_ref(&());
        let note = fit::text(event.message, NOTE_LIMIT);
        let published = Published {
            regarding: ObjectKey::of(event.regarding.as_ref()),
            reason: event.reason,
            note: note.clone(),
        };
        let event = Event {
            type_: match event.event_type {
                kubernetes::EventType::Normal => EventType::Normal,
                kubernetes::EventType::Warning => EventType::Warning,
            },
            reason: event.reason.to_owned(),
            note: Some(note),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let reason = published.reason;
        if let Err(error) = self.recorder(published).publish(&event, &reference).await {
            let error = errors::of_request(&error);
            tracing::debug!(error, reason, "failed to publish an event");
        }
    }

    fn recorder(&self, published: Published) -> Recorder {
        let now = Instant::now();
        let mut recorders = self.recorders.lock().unwrap_or_else(PoisonError::into_inner);
        recorders.retain(|_, (_, used)| now.duration_since(*used) < SERIES);
        let new = || (Recorder::new(self.client.clone(), self.reporter.clone()), now);
        let (recorder, used) = recorders.entry(published).or_insert_with(new);
        *used = now;
        recorder.clone()
    }
}
