//! Events: the same words about the same pool are folded into a series, other words are another event.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use crate::{
    ObjectKey,
    kubernetes::{EventKind, KubeEvent},
};

/// The longest note that the API takes.
const NOTE_LIMIT: usize = 1024;
/// A recorder folds what comes again within six minutes; one that was not used for longer has nothing to fold.
const FOLDS: Duration = Duration::from_mins(7);

/// What was said of which pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Said {
    about: ObjectKey,
    reason: &'static str,
    note: String,
}

/// Publishes events.
pub(super) struct Publisher {
    client: Client,
    reporter: Reporter,
    /// One for each thing said: a recorder folds by the reason alone, and keeps the words that came first.
    recorders: Mutex<HashMap<Said, (Recorder, Instant)>>,
}

impl Publisher {
    pub(super) fn new(client: Client) -> Self {
        let instance = std::env::var("POD_NAME").ok();
        let reporter = Reporter { controller: "capasg".into(), instance };
        Self { client, reporter, recorders: Mutex::default() }
    }

    /// Publishes; a failure is only logged, since nothing may depend on an event.
    pub(super) async fn publish(&self, event: KubeEvent) {
        let reference = event.about.object_ref(&());
        let mut note = event.message;
        note.truncate(note.floor_char_boundary(NOTE_LIMIT));
        let said =
            Said { about: ObjectKey::of(event.about.as_ref()), reason: event.reason, note: note.clone() };
        let event = Event {
            type_: match event.kind {
                EventKind::Normal => EventType::Normal,
                EventKind::Warning => EventType::Warning,
            },
            reason: event.reason.to_owned(),
            note: Some(note),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let reason = said.reason;
        if let Err(error) = self.recorder(said).publish(&event, &reference).await {
            tracing::debug!(%error, reason, "an event could not be published");
        }
    }

    fn recorder(&self, said: Said) -> Recorder {
        let now = Instant::now();
        let mut recorders = self.recorders.lock().unwrap_or_else(PoisonError::into_inner);
        recorders.retain(|_, (_, used)| now.duration_since(*used) < FOLDS);
        let new = || (Recorder::new(self.client.clone(), self.reporter.clone()), now);
        let (recorder, used) = recorders.entry(said).or_insert_with(new);
        *used = now;
        recorder.clone()
    }
}
