//! Events about Clusters. The event of a block records when the block began: its name follows from the block, so that all
//! replicas find the same one, also after a restart.

use std::{
    collections::HashMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use capasg_api::time::to_kubernetes;
use chrono::Utc;
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use crate::ports::{Journal, Notice};

/// Who reports.
const REPORTER: &str = "capasg-extension";
/// The longest note that the API accepts.
const LONGEST_NOTE: usize = 1024;
/// An event that repeats is written again after this time. The API server keeps an event for an hour after the last write.
const REPEAT: Duration = Duration::from_mins(10);
/// Notices that wait to be published. More are dropped: no answer waits for an event.
const WAITING: usize = 256;

/// Hands notices to a [`Publisher`].
#[derive(Debug, Clone)]
pub struct KubeJournal(mpsc::Sender<Notice>);

/// Publishes notices as events.
pub struct Publisher {
    client: Client,
    instance: String,
    notices: mpsc::Receiver<Notice>,
    published: HashMap<(String, String), Instant>,
}

impl KubeJournal {
    /// A journal, and the publisher that has to run. `instance` names this replica.
    #[must_use]
    pub fn new(client: Client, instance: String) -> (Self, Publisher) {
        let (hand_on, notices) = mpsc::channel(WAITING);
        (Self(hand_on), Publisher { client, instance, notices, published: HashMap::new() })
    }
}

impl Journal for KubeJournal {
    fn publish(&self, notice: Notice) {
        if self.0.try_send(notice).is_err() {
            warn!("dropped an event, since too many wait to be published");
        }
    }
}

impl Publisher {
    /// Publishes until the journal is dropped.
    pub async fn run(mut self) {
        while let Some(notice) = self.notices.recv().await {
            let (name, namespace) = (name_of(&notice), notice.cluster.namespace.clone());
            let now = Instant::now();
            self.published.retain(|_, at| now.duration_since(*at) < REPEAT);
            if self.published.contains_key(&(namespace.clone(), name.clone())) {
                continue;
            }
            match self.write(&name, &notice).await {
                Ok(()) => {
                    self.published.insert((namespace, name), now);
                }
                Err(error) => debug!(%error, reason = notice.reason, "failed to publish an event"),
            }
        }
    }

    async fn write(&self, name: &str, notice: &Notice) -> Result<(), kube::Error> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &notice.cluster.namespace);
        let event = event_of(name, notice, &self.instance);
        match api.create(&PostParams::default(), &event).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            other => return other.map(drop),
        }
        let count = api.get(name).await?.series.map_or(1, |series| series.count);
        let series = EventSeries { count: count.saturating_add(1), last_observed_time: micro_now() };
        let changes = Patch::Merge(json!({
            "series": series, "note": event.note, "reason": event.reason, "type": event.type_,
        }));
        api.patch(name, &PatchParams::default(), &changes).await.map(drop)
    }
}

/// The same notice has the same name, so that it is one event.
fn name_of(notice: &Notice) -> String {
    if let Some((block, _)) = &notice.block {
        return block.event_name();
    }
    let mut hash = Sha256::new();
    for part in [&notice.cluster.uid, notice.hook.name(), notice.reason, &notice.message] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut name: String = notice.cluster.name.chars().take(200).collect();
    name.push('.');
    for byte in &hash.finalize()[..8] {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn event_of(name: &str, notice: &Notice, instance: &str) -> Event {
    let mut note = notice.message.clone();
    note.truncate(note.floor_char_boundary(LONGEST_NOTE));
    let began = notice.block.as_ref().map_or_else(Utc::now, |(_, since)| *since);
    Event {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(notice.cluster.namespace.clone()),
            ..ObjectMeta::default()
        },
        action: Some(notice.hook.name().to_owned()),
        event_time: Some(MicroTime(to_kubernetes(began).0)),
        note: Some(note),
        reason: Some(notice.reason.to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some("cluster.x-k8s.io/v1beta2".to_owned()),
            kind: Some("Cluster".to_owned()),
            name: Some(notice.cluster.name.clone()),
            namespace: Some(notice.cluster.namespace.clone()),
            uid: Some(notice.cluster.uid.clone()),
            ..ObjectReference::default()
        }),
        reporting_controller: Some(REPORTER.to_owned()),
        reporting_instance: Some(instance.chars().take(128).collect()),
        type_: Some(if notice.warning { "Warning" } else { "Normal" }.to_owned()),
        ..Event::default()
    }
}

fn micro_now() -> MicroTime {
    MicroTime(to_kubernetes(Utc::now()).0)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::{
        blocks::{Block, Cause},
        names::events,
        protocol::{ClusterKey, Hook},
    };

    #[test]
    fn the_event_of_a_block_has_its_name_and_its_beginning() {
        let cluster = ClusterKey { namespace: "teams".into(), name: "prod".into(), uid: "1".into() };
        let hook = Hook::BeforeClusterDelete;
        let block =
            Block { cluster: cluster.clone(), hook, version: String::new(), cause: Cause::DeletionProtected };
        let since = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let notice = Notice {
            cluster,
            hook,
            reason: events::HOOK_BLOCKED,
            message: "x".repeat(2000),
            warning: false,
            block: Some((block.clone(), since)),
        };
        let name = name_of(&notice);
        assert_eq!(name, block.event_name());
        let event = event_of(&name, &notice, "a replica");
        assert_eq!(event.event_time.unwrap().0.as_second(), 1_800_000_000);
        assert_eq!(event.note.unwrap().len(), LONGEST_NOTE);
        let other = Notice { block: None, message: "a".into(), ..notice.clone() };
        let same = Notice { block: None, message: "a".into(), ..notice };
        assert_eq!(name_of(&other), name_of(&same));
        assert_ne!(name_of(&other), name);
    }
}
