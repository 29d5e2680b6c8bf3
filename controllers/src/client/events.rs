//! Events, through one recorder that folds repetitions into series.

use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use crate::kubernetes::{EventKind, KubeEvent};

/// The longest note that the API takes.
const NOTE_LIMIT: usize = 1024;

/// Publishes events.
pub(super) struct Publisher {
    recorder: Recorder,
}

impl Publisher {
    pub(super) fn new(client: Client) -> Self {
        let instance = std::env::var("POD_NAME").ok();
        let reporter = Reporter { controller: "capasg".into(), instance };
        Self { recorder: Recorder::new(client, reporter) }
    }

    /// Publishes; a failure is only logged, since nothing may depend on an event.
    pub(super) async fn publish(&self, event: KubeEvent) {
        let reference = event.about.object_ref(&());
        let mut note = event.message;
        note.truncate(note.floor_char_boundary(NOTE_LIMIT));
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
        if let Err(error) = self.recorder.publish(&event, &reference).await {
            tracing::debug!(%error, reason = event.reason, "an event could not be published");
        }
    }
}
