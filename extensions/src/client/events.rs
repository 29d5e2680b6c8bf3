//! Events about Clusters. The event of a block records when the block began: its name follows from the block, so that all
//! replicas find the same one, also after a restart.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use capasg_api::time::{from_kubernetes, to_kubernetes};
use chrono::{DateTime, Utc};
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::addons;
use crate::{
    blocks::event_name,
    names::annotations,
    ports::{Journal, Notice, ReleaseRequest},
    protocol::ClusterKey,
};

/// Who reports.
pub(super) const REPORTER: &str = "capasg-extension";
/// The longest note that the API accepts.
const LONGEST_NOTE: usize = 1024;
/// An event that repeats is written again after this time. The API server keeps an event for an hour after the last write.
const REPEAT: Duration = Duration::from_mins(10);
/// Notices that wait to be published. More are dropped: no answer waits for an event.
const WAITING: usize = 256;

/// The reason and the text of an event.
type Text = (&'static str, String);

/// What is written.
#[derive(Debug)]
enum Entry {
    Notice(Box<Notice>),
    Request(ReleaseRequest),
}

/// Hands notices and requests to a [`Publisher`].
#[derive(Debug, Clone)]
pub struct KubeJournal(mpsc::Sender<Entry>);

/// Publishes notices as events, and writes requests.
pub struct Publisher {
    client: Client,
    instance: String,
    entries: mpsc::Receiver<Entry>,
    /// When events were last written, by namespace and name.
    published: HashMap<(String, String), (Instant, Text)>,
}

impl KubeJournal {
    /// A journal, and the publisher that has to run. `instance` names this replica.
    #[must_use]
    pub fn new(client: Client, instance: String) -> (Self, Publisher) {
        let (hand_on, entries) = mpsc::channel(WAITING);
        (Self(hand_on), Publisher { client, instance, entries, published: HashMap::new() })
    }

    fn hand_on(&self, entry: Entry) {
        if self.0.try_send(entry).is_err() {
            warn!("dropped an event or a request, since too many wait to be written");
        }
    }
}

impl Journal for KubeJournal {
    fn publish(&self, notice: Notice) {
        self.hand_on(Entry::Notice(Box::new(notice)));
    }

    fn request(&self, request: ReleaseRequest) {
        self.hand_on(Entry::Request(request));
    }
}

impl Publisher {
    /// Writes until the journal is dropped.
    pub async fn run(mut self) {
        while let Some(entry) = self.entries.recv().await {
            let notice = match entry {
                Entry::Notice(notice) => notice,
                Entry::Request(request) => {
                    if let Err(error) = addons::request(self.client.clone(), &request).await {
                        warn!(%error, release = request.name, "failed to write the status of a HelmReleaseProxy");
                    }
                    continue;
                }
            };
            let message = name_of(&notice);
            let Some((block, _)) = &notice.block else {
                if self.is_due(&message, &notice).await {
                    self.write_once(&message, &notice).await;
                }
                continue;
            };
            // The API server accepts no other text for an event that exists: another one has another event.
            let record = block.event_name();
            if self.write_once(&record, &notice).await == Some(Written::Other) {
                self.write_once(&message, &notice).await;
            }
        }
    }

    /// Whether an event that reports the end of blocks has one to report: one that was reported after it.
    async fn is_due(&self, name: &str, notice: &Notice) -> bool {
        if notice.ends.is_empty() {
            return true;
        }
        let api: Api<Event> = Api::namespaced(self.client.clone(), &notice.cluster.namespace);
        let written =
            async |name: &str| api.get_opt(name).await.ok().flatten().and_then(|event| last_write(&event));
        let mut last = None;
        for block in &notice.ends {
            last = last.max(written(&block.event_name()).await);
        }
        // Mostly nothing was blocked.
        let Some(last) = last else { return false };
        written(name).await.is_none_or(|published| published < last)
    }

    /// Writes an event unless it was written shortly before; `None` if it failed.
    async fn write_once(&mut self, name: &str, notice: &Notice) -> Option<Written> {
        let now = Instant::now();
        self.published.retain(|_, (at, _)| now.duration_since(*at) < REPEAT);
        let key = (notice.cluster.namespace.clone(), name.to_owned());
        let text = (notice.reason, notice.message.clone());
        if let Some((_, published)) = self.published.get(&key) {
            return Some(if *published == text { Written::Same } else { Written::Other });
        }
        match self.write(name, notice).await {
            Ok(written) => {
                // Of an event with another text, only that is known.
                let published = if written == Written::Same { text } else { ("", String::new()) };
                self.published.insert(key, (now, published));
                Some(written)
            }
            Err(error) => {
                debug!(%error, reason = notice.reason, "failed to publish an event");
                None
            }
        }
    }

    async fn write(&self, name: &str, notice: &Notice) -> Result<Written, kube::Error> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &notice.cluster.namespace);
        let event = event_of(name, notice, &self.instance);
        match api.create(&PostParams::default(), &event).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            other => return other.map(|_| Written::Same),
        }
        let known = api.get(name).await?;
        let same = known.note == event.note && known.reason == event.reason;
        let count = known.series.map_or(1, |series| series.count).saturating_add(1);
        let series = EventSeries { count, last_observed_time: micro_now() };
        let repeated = Patch::Merge(json!({"series": series}));
        api.patch(name, &PatchParams::default(), &repeated).await?;
        Ok(if same { Written::Same } else { Written::Other })
    }
}

/// Whether the event of a name has the text of the notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Same,
    Other,
}

/// The same notice has the same name, so that it is one event.
fn name_of(notice: &Notice) -> String {
    let ClusterKey { name, uid, .. } = &notice.cluster;
    event_name(name, ".", &[uid, notice.hook.name(), notice.reason, &notice.message])
}

fn event_of(name: &str, notice: &Notice, instance: &str) -> Event {
    let mut note = notice.message.clone();
    note.truncate(note.floor_char_boundary(LONGEST_NOTE));
    let cause = notice.block.as_ref().map(|(block, _)| block.cause.as_str().to_owned());
    let began = notice.block.as_ref().map_or_else(Utc::now, |(_, since)| *since);
    Event {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(notice.cluster.namespace.clone()),
            annotations: cause.map(|cause| [(annotations::BLOCK_CAUSE.to_owned(), cause)].into()),
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

/// When an event was last written.
fn last_write(event: &Event) -> Option<DateTime<Utc>> {
    let repeated = event.series.as_ref().map(|series| from_kubernetes(&Time(series.last_observed_time.0)));
    repeated.or_else(|| event.metadata.creation_timestamp.as_ref().map(from_kubernetes))
}

fn micro_now() -> MicroTime {
    MicroTime(to_kubernetes(Utc::now()).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        blocks::{Block, Cause},
        client::testing::ApiServer,
        names::events,
        protocol::Hook,
    };

    #[test]
    fn the_event_of_a_block_has_its_name_and_its_beginning() {
        let cluster = ClusterKey { namespace: "teams".into(), name: "prod".into(), uid: "1".into() };
        let hook = Hook::BeforeClusterDelete;
        let block =
            Block { cluster: cluster.clone(), hook, version: String::new(), cause: Cause::DeletionProtected };
        let since = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let notice = Notice::new(cluster, hook, events::HOOK_BLOCKED, "x".repeat(2000));
        let notice = notice.of_block(block.clone(), since);
        let event = event_of(&block.event_name(), &notice, "a replica");
        assert_eq!(event.metadata.name, Some(block.event_name()));
        assert!(Block::is_event_name(&block.event_name()) && !Block::is_event_name(&name_of(&notice)));
        assert_eq!(event.metadata.annotations.unwrap()[annotations::BLOCK_CAUSE], "DeletionProtected");
        assert_eq!(event.event_time.unwrap().0.as_second(), 1_800_000_000);
        assert_eq!(event.note.unwrap().len(), LONGEST_NOTE);
        let other = Notice { message: "a".into(), ..notice.clone() };
        assert_eq!(name_of(&notice), name_of(&notice.clone()));
        assert_ne!(name_of(&other), name_of(&notice));
        assert_ne!(name_of(&notice), block.event_name());
    }

    fn block(cause: Cause) -> Block {
        let cluster = ClusterKey { namespace: "teams".into(), name: "prod".into(), uid: "1".into() };
        Block { cluster, hook: Hook::BeforeClusterUpgrade, version: "v1".into(), cause }
    }

    fn blocked(block: &Block, message: &str) -> Notice {
        let since = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        Notice::new(block.cluster.clone(), block.hook, events::HOOK_BLOCKED, message.into())
            .of_block(block.clone(), since)
    }

    /// Each replica has a publisher of its own.
    async fn replica<const N: usize>(client: &Client, notices: [Notice; N]) {
        let (journal, publisher) = KubeJournal::new(client.clone(), "a replica".to_owned());
        for notice in notices {
            journal.publish(notice);
        }
        drop(journal);
        publisher.run().await;
    }

    #[tokio::test]
    async fn a_block_is_one_event_and_another_text_is_another() {
        let (api, client) = ApiServer::start();
        let block = block(Cause::PoolNotReady);
        // Two replicas.
        for _ in 0..2 {
            replica(&client, ["a", "a", "b", "b"].map(|message| blocked(&block, message))).await;
        }
        let events = api.events();
        assert_eq!(events.len(), 2, "{events:?}");
        let record = &events[&block.event_name()];
        assert_eq!((&record["note"], &record["series"]["count"]), (&json!("a"), &json!(2)));
        assert_eq!(record["eventTime"], "2027-01-15T08:00:00.000000Z");
    }

    #[tokio::test]
    async fn the_end_of_a_block_that_another_replica_reported_is_published_once() {
        let (api, client) = ApiServer::start();
        let end = || Notice {
            reason: events::HOOK_UNBLOCKED,
            block: None,
            ends: Cause::ALL.map(block).into(),
            ..blocked(&block(Cause::NotApproved), "a")
        };
        replica(&client, [end()]).await;
        assert!(api.events().is_empty(), "nothing was blocked");
        replica(&client, [blocked(&block(Cause::NotApproved), "a")]).await;
        for _ in 0..2 {
            replica(&client, [end()]).await;
        }
        let events = api.events();
        let ends: Vec<_> = events.values().filter(|event| event["reason"] == "HookUnblocked").collect();
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0].get("series"), None, "it is not repeated");
    }
}
