//! Events about Clusters. One event of each Cluster holds the record of what blocks it: its name follows from the Cluster, so
//! that all replicas find the same one, also after a restart.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use capasg_api::{errors, names::addons::NEXT_KUBERNETES_VERSION, time::to_kubernetes};
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
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tracing::warn;

use super::{
    addons,
    rate::{ALL, Bucket, Clusters, Empty},
};
use crate::{
    blocks::{Record, event_name},
    names::{annotations, events},
    ports::{Journal, Notice, ReleaseRequest},
    protocol::ClusterKey,
};

/// Who reports.
pub(super) const REPORTER: &str = "capasg-extension";
/// The longest note that the API accepts.
const LONGEST_NOTE: usize = 1024;
/// An event that repeats is written again after this time. The API server keeps an event for an hour after the last write.
const REPEAT: Duration = Duration::from_mins(10);
/// Writes at the same time. What concerns one Cluster is written in order.
const AT_ONCE: usize = 8;
/// What waits to be written, for each of these. More is dropped: no answer waits for an event.
const WAITING: usize = 128;
/// The most written events that one writer remembers.
const REMEMBERED: usize = 4096;
/// How long a write may take, so that an API server that does not respond delays no other event for longer.
const LONGEST_WRITE: Duration = Duration::from_secs(5);

/// What is written.
enum Item {
    Notice(Notice),
    Record(ClusterKey, Record),
    Request(ClusterKey, ReleaseRequest),
}

/// Hands notices, records and requests to a [`Publisher`].
#[derive(Debug, Clone)]
pub struct KubeJournal(Vec<mpsc::Sender<Item>>);

/// Writes notices and records as events, and requests.
pub struct Publisher(Vec<Arc<Mutex<Writer>>>);

/// Writes one item after another.
struct Writer {
    client: Client,
    instance: String,
    items: mpsc::Receiver<Item>,
    /// When events were last written, by namespace and name.
    published: HashMap<(String, String), Instant>,
    /// The bounds of Clusters. Each has one writer.
    clusters: Clusters,
    /// That of all writers.
    all: Arc<Mutex<Bucket>>,
}

impl KubeJournal {
    /// A journal, and the publisher that has to run. `instance` names this replica.
    #[must_use]
    pub fn new(client: &Client, instance: &str) -> (Self, Publisher) {
        let (mut queues, mut writers) = (Vec::new(), Vec::new());
        let all = Arc::new(Mutex::new(Bucket::new(ALL, Instant::now())));
        for _ in 0..AT_ONCE {
            let (hand_on, items) = mpsc::channel(WAITING);
            queues.push(hand_on);
            let (client, instance) = (client.clone(), instance.to_owned());
            let (published, clusters, all) = (HashMap::new(), Clusters::default(), Arc::clone(&all));
            writers.push(Arc::new(Mutex::new(Writer { client, instance, items, published, clusters, all })));
        }
        (Self(queues), Publisher(writers))
    }

    fn hand_on(&self, cluster: &ClusterKey, item: Item) {
        let mut hasher = DefaultHasher::new();
        cluster.hash(&mut hasher);
        let count = u64::try_from(self.0.len()).unwrap_or(1);
        let queue = usize::try_from(hasher.finish() % count).unwrap_or_default();
        if self.0[queue].try_send(item).is_err() {
            warn!("dropped an event or a request, since too many wait to be written");
        }
    }
}

impl Journal for KubeJournal {
    fn publish(&self, notice: Notice) {
        let cluster = notice.cluster.clone();
        self.hand_on(&cluster, Item::Notice(notice));
    }

    fn record(&self, cluster: &ClusterKey, record: &Record) {
        self.hand_on(cluster, Item::Record(cluster.clone(), record.clone()));
    }

    fn request(&self, cluster: &ClusterKey, request: ReleaseRequest) {
        self.hand_on(cluster, Item::Request(cluster.clone(), request));
    }
}

impl Publisher {
    /// Writes until the journal is dropped, or until a writer fails: it may run again then.
    pub async fn run(&self) {
        let mut writers = JoinSet::new();
        for writer in &self.0 {
            let writer = Arc::clone(writer);
            writers.spawn(async move { writer.lock().await.run().await });
        }
        while let Some(ended) = writers.join_next().await {
            if ended.is_err() {
                return;
            }
        }
    }
}

impl Writer {
    async fn run(&mut self) {
        while let Some(item) = self.items.recv().await {
            if !self.may_write(&item).await {
                continue;
            }
            let (what, written) = match &item {
                Item::Notice(notice) => (notice.reason, timeout(LONGEST_WRITE, self.publish(notice)).await),
                Item::Record(cluster, record) => {
                    (events::HOOK_RECORD, timeout(LONGEST_WRITE, self.record(cluster, record)).await)
                }
                Item::Request(_, request) => {
                    let written = addons::request(self.client.clone(), request);
                    (NEXT_KUBERNETES_VERSION, timeout(LONGEST_WRITE, written).await)
                }
            };
            match written {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    warn!(error = errors::of_request(&error), what, "failed to write an event or a status");
                }
                Err(_) => {
                    warn!(what, "failed to write an event or a status: the API server does not respond");
                }
            }
        }
    }

    /// Whether an item is new, and within the bounds of its Cluster. Waits for the bound of all Clusters.
    async fn may_write(&mut self, item: &Item) -> bool {
        let now = Instant::now();
        self.published.retain(|_, at| now.duration_since(*at) < REPEAT);
        let (cluster, bound) = match item {
            Item::Notice(notice) if !notice.is_change && self.published.contains_key(&key_of(notice)) => {
                return false;
            }
            Item::Notice(notice) => (&notice.cluster, self.clusters.event(&notice.cluster, now)),
            Item::Record(cluster, _) | Item::Request(cluster, _) => {
                (cluster, self.clusters.change(cluster, now))
            }
        };
        if let Err(Empty { is_new, .. }) = bound {
            if is_new {
                let ClusterKey { namespace, name, .. } = cluster;
                warn!(namespace, name, "dropped events or requests of a Cluster, since it has too many");
            }
            return false;
        }
        loop {
            let Err(Empty { next, .. }) = self.all.lock().await.take(Instant::now()) else { return true };
            sleep(next).await;
        }
    }

    /// Writes an event.
    async fn publish(&mut self, notice: &Notice) -> Result<(), kube::Error> {
        let name = name_of(notice);
        let api: Api<Event> = Api::namespaced(self.client.clone(), &notice.cluster.namespace);
        let event = event_of(&name, notice, &self.instance);
        match api.create(&PostParams::default(), &event).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let known = api.get(&name).await?;
                let count = known.series.map_or(1, |series| series.count).saturating_add(1);
                let repeated = Patch::Merge(json!({"series": series(count)}));
                api.patch(&name, &PatchParams::default(), &repeated).await?;
            }
            created => drop(created?),
        }
        // Forgotten ones are written once more when they repeat.
        if self.published.len() >= REMEMBERED {
            self.published.clear();
        }
        self.published.insert(key_of(notice), Instant::now());
        Ok(())
    }

    /// Writes the annotation that holds a record. The other fields of an event cannot change, except for its series: its time
    /// is that of the last write, and its count is not that of the calls.
    async fn record(&self, cluster: &ClusterKey, record: &Record) -> Result<(), kube::Error> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &cluster.namespace);
        let name = Record::event_name(cluster);
        let annotations = json!({annotations::HOOK_BLOCKS: record.to_json()});
        let written = Patch::Merge(json!({"metadata": {"annotations": annotations}, "series": series(2)}));
        match api.patch(&name, &PatchParams::default(), &written).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => return other.map(drop),
        }
        let note = "capasg why prints which hooks block this Cluster, and since when".to_owned();
        let notice = Notice::new(cluster.clone(), record.hook, events::HOOK_RECORD, note);
        let mut event = event_of(&name, &notice, &self.instance);
        event.metadata.annotations = Some([(annotations::HOOK_BLOCKS.to_owned(), record.to_json())].into());
        match api.create(&PostParams::default(), &event).await {
            // Another replica created it meanwhile: the next call finds that it holds another record, and writes it.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            created => created.map(drop),
        }
    }
}

/// The same notice has the same name, so that it is one event.
fn name_of(notice: &Notice) -> String {
    let ClusterKey { name, uid, .. } = &notice.cluster;
    event_name(name, ".", &[uid, notice.hook.name(), notice.reason, &notice.message])
}

fn key_of(notice: &Notice) -> (String, String) {
    (notice.cluster.namespace.clone(), name_of(notice))
}

fn event_of(name: &str, notice: &Notice, instance: &str) -> Event {
    let mut note = notice.message.clone();
    note.truncate(note.floor_char_boundary(LONGEST_NOTE));
    Event {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(notice.cluster.namespace.clone()),
            ..ObjectMeta::default()
        },
        action: Some(notice.hook.name().to_owned()),
        event_time: Some(micro_now()),
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

fn series(count: i32) -> EventSeries {
    EventSeries { count, last_observed_time: micro_now() }
}

fn micro_now() -> MicroTime {
    MicroTime(to_kubernetes(Utc::now()).0)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::{blocks::Cause, client::testing::ApiServer, protocol::Hook};

    fn cluster() -> ClusterKey {
        ClusterKey { namespace: "teams".into(), name: "prod".into(), uid: "1".into() }
    }

    fn notice(message: &str) -> Notice {
        Notice::new(cluster(), Hook::BeforeClusterUpgrade, events::HOOK_BLOCKED, message.into())
    }

    fn record(minute: i64, found: &[Cause]) -> Record {
        let now = DateTime::from_timestamp(1_800_000_000 + minute * 60, 0).unwrap();
        let found = found.iter().map(|cause| (*cause, "a".to_owned())).collect();
        Record::after(None, Hook::BeforeClusterUpgrade, "v1.36.3", now, found, |_, _| true)
    }

    /// Each replica has a publisher of its own.
    async fn replica(client: &Client, write: impl FnOnce(&KubeJournal)) {
        let (journal, publisher) = KubeJournal::new(client, "a replica");
        write(&journal);
        drop(journal);
        publisher.run().await;
    }

    #[test]
    fn events_have_the_bounds_of_the_api_and_equal_notices_are_one() {
        let event = event_of("a", &notice(&"x".repeat(2000)), "a replica");
        assert_eq!(event.note.unwrap().len(), LONGEST_NOTE);
        assert_eq!(name_of(&notice("a")), name_of(&notice("a")));
        assert_ne!(name_of(&notice("a")), name_of(&notice("b")));
        assert_ne!(name_of(&notice("a")), Record::event_name(&cluster()));
    }

    #[tokio::test]
    async fn an_event_is_written_once_and_again_if_it_reports_a_change() {
        let (api, client) = ApiServer::start();
        replica(&client, |journal| {
            for message in ["a", "a", "b", "b"] {
                journal.publish(notice(message));
            }
        })
        .await;
        let counts = || {
            let count = |event: serde_json::Value| event["series"]["count"].as_i64().unwrap_or(1);
            let mut counts: Vec<_> =
                api.events().into_values().map(|event| (event["note"].to_string(), count(event))).collect();
            counts.sort();
            counts
        };
        assert_eq!(counts(), [("\"a\"".to_owned(), 1), ("\"b\"".to_owned(), 1)]);
        // The same step of the next upgrade may block and end within minutes.
        replica(&client, |journal| {
            for is_change in [true, false, true] {
                journal.publish(notice("a").of_change(is_change));
            }
        })
        .await;
        assert_eq!(counts()[0], ("\"a\"".to_owned(), 3));
    }

    #[tokio::test]
    async fn the_record_of_a_cluster_is_one_event_that_holds_the_last_one() {
        let (api, client) = ApiServer::start();
        let (first, second) = (record(0, &[Cause::NotApproved]), record(1, &[]));
        // Two replicas, in order.
        replica(&client, |journal| journal.record(&cluster(), &first)).await;
        replica(&client, |journal| {
            journal.record(&cluster(), &first);
            journal.record(&cluster(), &second);
        })
        .await;
        let events = api.events();
        assert_eq!(events.keys().collect::<Vec<_>>(), [&Record::event_name(&cluster())]);
        let event = &events[&Record::event_name(&cluster())];
        let held = event["metadata"]["annotations"][annotations::HOOK_BLOCKS].as_str().unwrap();
        assert_eq!(Record::from_json(held), Some(second));
        assert_eq!((&event["reason"], &event["series"]["count"]), (&json!("HookRecord"), &json!(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_writes_of_one_cluster_and_of_all_together_are_bounded() {
        let (api, client) = ApiServer::start();
        replica(&client, |journal| {
            for number in 0..100 {
                journal.publish(notice(&number.to_string()));
            }
            journal.record(&cluster(), &record(0, &[]));
        })
        .await;
        assert_eq!(api.events().len(), 51, "its record is written");
        // Nothing of other Clusters is lost, but it takes its time.
        let started = Instant::now();
        replica(&client, |journal| {
            for number in 0..500 {
                let cluster = ClusterKey { name: number.to_string(), ..cluster() };
                journal.publish(Notice { cluster, ..notice("a") });
            }
        })
        .await;
        assert_eq!(api.events().len(), 551);
        let seconds = started.elapsed().as_secs();
        assert!((20..=21).contains(&seconds), "{seconds} s: 100 at once, and 20 more each second");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_hangs_does_not_stop_the_others() {
        let (api, client) = ApiServer::start();
        api.hang(1);
        let started = tokio::time::Instant::now();
        replica(&client, |journal| {
            journal.publish(notice("a"));
            journal.publish(notice("b"));
        })
        .await;
        assert_eq!(started.elapsed(), LONGEST_WRITE);
        assert_eq!(api.events().len(), 1);
    }
}
