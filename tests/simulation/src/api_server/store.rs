//! The objects of one kind: as they are, and as a cache that lags behind shows them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use capasg_api::{
    ASGMachine, ASGMachinePool,
    capi::{Cluster, Machine, MachinePool},
    time::to_kubernetes,
};
use capasg_controllers::{
    ObjectKey,
    kubernetes::{KubeError, Result},
};
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource, ResourceExt, core::DynamicObject};

use super::past::{Became, Past, Stale};
use crate::Random;

/// What all kinds share: the counters of the API server and the time.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) now: DateTime<Utc>,
    pub(crate) random: Random,
    version: u64,
    uids: u64,
    /// Changes of what there is and of who owns what.
    pub(crate) kinship: u64,
    /// Namespaces that are being deleted: nothing is created in them.
    pub(crate) terminating: BTreeSet<String>,
}

/// How far a cache is behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lag {
    /// At most this many milliseconds; each event's own delay is drawn, their order kept.
    pub millis: u64,
    /// Nothing arrives at all.
    pub frozen: bool,
}

/// What must hold of an object for a write to go through.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expect<'a> {
    pub(crate) uid: Option<&'a str>,
    pub(crate) version: Option<&'a str>,
}

/// What a kind must be able to do.
pub(crate) trait Object: Resource + Clone + PartialEq {
    /// Whether the other one's spec says the same, so that the generation stays.
    fn has_spec_of(&self, other: &Self) -> bool;
}

macro_rules! objects_with_spec {
    ($($kind:ty),*) => {$(
        impl Object for $kind {
            fn has_spec_of(&self, other: &Self) -> bool {
                self.spec == other.spec
            }
        }
    )*};
}
objects_with_spec!(Cluster, MachinePool, Machine, ASGMachinePool, ASGMachine);

impl Object for Secret {
    fn has_spec_of(&self, _: &Self) -> bool {
        true
    }
}

impl Object for DynamicObject {
    fn has_spec_of(&self, other: &Self) -> bool {
        self.data.get("spec") == other.data.get("spec")
    }
}

/// The objects of one kind.
pub(crate) struct Store<T> {
    kind: &'static str,
    live: BTreeMap<ObjectKey, Arc<T>>,
    cache: BTreeMap<ObjectKey, Arc<T>>,
    under_way: VecDeque<Event<T>>,
    /// What was there before, if it is remembered.
    past: Option<Past<T>>,
    pub(crate) lag: Lag,
}

struct Event<T> {
    due: DateTime<Utc>,
    key: ObjectKey,
    object: Arc<T>,
    deleted: bool,
}

impl Ledger {
    pub(crate) fn new(now: DateTime<Utc>, random: Random) -> Self {
        Self { now, random, version: 0, uids: 0, kinship: 0, terminating: BTreeSet::new() }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// The newest resourceVersion.
    pub(crate) fn last_version(&self) -> u64 {
        self.version
    }

    fn next_uid(&mut self) -> String {
        self.uids += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.uids)
    }
}

impl<T: Object> Store<T> {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            live: BTreeMap::new(),
            cache: BTreeMap::new(),
            under_way: VecDeque::new(),
            past: None,
            lag: Lag::default(),
        }
    }

    fn what(&self, key: &ObjectKey) -> String {
        format!("{} {key}", self.kind)
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.live.get(key).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(ObjectKey, Arc<T>)> {
        self.live.iter().map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<T>)> {
        self.live.iter()
    }

    pub(crate) fn cached(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.cache.get(key).cloned()
    }

    pub(crate) fn all_cached(&self) -> impl Iterator<Item = &Arc<T>> {
        self.cache.values()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.live.keys()
    }

    /// Creates an object; the API server's part of its metadata is filled in.
    pub(crate) fn create(&mut self, ledger: &mut Ledger, mut object: T) -> Result<Arc<T>> {
        let key = ObjectKey::of(&object);
        if self.live.contains_key(&key) {
            return Err(KubeError::Other { what: self.what(&key), message: "already exists".to_owned() });
        }
        // The admission plugin NamespaceLifecycle.
        if ledger.terminating.contains(&key.namespace) {
            let namespace = &key.namespace;
            let message = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            return Err(KubeError::Forbidden { what: self.what(&key), message });
        }
        let meta = object.meta_mut();
        meta.uid = Some(ledger.next_uid());
        meta.resource_version = Some(ledger.next_version());
        meta.generation = Some(1);
        meta.creation_timestamp = Some(to_kubernetes(ledger.now));
        meta.deletion_timestamp = None;
        let object = Arc::new(object);
        ledger.kinship += 1;
        self.live.insert(key.clone(), Arc::clone(&object));
        self.send(ledger, key, Arc::clone(&object), false);
        Ok(object)
    }

    /// Puts an object in as another API server held it: what `clusterctl move` or a restored backup would do, but with
    /// its status and uid.
    pub(crate) fn restore(&mut self, ledger: &mut Ledger, mut object: T) {
        let key = ObjectKey::of(&object);
        object.meta_mut().resource_version = Some(ledger.next_version());
        let object = Arc::new(object);
        ledger.kinship += 1;
        self.live.insert(key.clone(), Arc::clone(&object));
        self.send(ledger, key, object, false);
    }

    /// Changes an object; tells whether anything became different. A change that leaves a deleted object without
    /// finalizers removes it.
    pub(crate) fn update(
        &mut self,
        ledger: &mut Ledger,
        key: &ObjectKey,
        expect: Expect<'_>,
        change: impl FnOnce(&mut T),
    ) -> Result<bool> {
        let before = self.expect(key, expect)?;
        let mut after = T::clone(&before);
        change(&mut after);
        if after == *before {
            return Ok(false);
        }
        if !after.has_spec_of(&before) {
            let generation = before.meta().generation.unwrap_or(1);
            after.meta_mut().generation = Some(generation + 1);
        }
        after.meta_mut().resource_version = Some(ledger.next_version());
        let gone = after.meta().deletion_timestamp.is_some() && after.finalizers().is_empty();
        if gone || after.owner_references() != before.owner_references() {
            ledger.kinship += 1;
        }
        let after = Arc::new(after);
        if gone {
            self.live.remove(key);
        } else {
            self.live.insert(key.clone(), Arc::clone(&after));
        }
        self.send(ledger, key.clone(), after, gone);
        Ok(true)
    }

    /// Deletes an object: at once if nothing holds it, else it is marked. Tells whether anything became different.
    pub(crate) fn delete(
        &mut self,
        ledger: &mut Ledger,
        key: &ObjectKey,
        expect: Expect<'_>,
    ) -> Result<bool> {
        let before = self.expect(key, expect)?;
        if before.finalizers().is_empty() {
            ledger.kinship += 1;
            self.live.remove(key);
            self.send(ledger, key.clone(), before, true);
            return Ok(true);
        }
        if before.meta().deletion_timestamp.is_some() {
            return Ok(false);
        }
        let now = ledger.now;
        self.update(ledger, key, Expect::default(), |object| {
            let meta = object.meta_mut();
            meta.deletion_timestamp = Some(to_kubernetes(now));
            meta.generation = meta.generation.map(|generation| generation + 1);
        })
    }

    fn expect(&self, key: &ObjectKey, expect: Expect<'_>) -> Result<Arc<T>> {
        let Some(object) = self.live.get(key) else {
            return Err(KubeError::NotFound { what: self.what(key) });
        };
        let meta = object.meta();
        let differs = |wanted: Option<&str>, found: Option<&String>| {
            wanted.is_some_and(|wanted| Some(wanted) != found.map(String::as_str))
        };
        if differs(expect.uid, meta.uid.as_ref()) || differs(expect.version, meta.resource_version.as_ref()) {
            return Err(KubeError::Conflict { what: self.what(key) });
        }
        Ok(Arc::clone(object))
    }

    fn send(&mut self, ledger: &Ledger, key: ObjectKey, object: Arc<T>, deleted: bool) {
        let delay = i64::try_from(ledger.random.below(self.lag.millis + 1)).unwrap_or(0);
        let due = ledger.now + TimeDelta::milliseconds(delay);
        let due = self.under_way.back().map_or(due, |last| due.max(last.due));
        if let Some(past) = &mut self.past {
            let became = Became { key: key.clone(), object: Arc::clone(&object), is_gone: deleted };
            past.keep(ledger.now, became);
        }
        self.under_way.push_back(Event { due, key, object, deleted });
    }

    /// Whether the cache does not show everything.
    pub(crate) fn is_behind(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// When the cache learns something next; `None` if it is up to date or frozen.
    pub(crate) fn next_delivery(&self) -> Option<DateTime<Utc>> {
        self.under_way.front().filter(|_| !self.lag.frozen).map(|event| event.due)
    }

    /// Lets the cache learn what is due; gives the objects concerned.
    pub(crate) fn deliver(&mut self, now: DateTime<Utc>) -> Vec<Arc<T>> {
        let mut delivered = Vec::new();
        while !self.lag.frozen && self.under_way.front().is_some_and(|event| event.due <= now) {
            let Some(event) = self.under_way.pop_front() else { break };
            if event.deleted {
                self.cache.remove(&event.key);
            } else {
                self.cache.insert(event.key, Arc::clone(&event.object));
            }
            delivered.push(event.object);
        }
        delivered
    }

    /// A new process lists before it watches: its cache begins with what is there.
    pub(crate) fn relist(&mut self) {
        self.cache = self.live.clone();
        self.under_way.clear();
    }

    /// Remembers from now on what was there.
    pub(crate) fn remember(&mut self) {
        self.past = Some(Past::new(&self.live));
    }

    /// A new process lists from a cache that is behind: it begins with what was there at a moment, and learns later what
    /// happened since.
    pub(crate) fn relist_old(&mut self, stale: Stale) {
        let Some(past) = &self.past else { return self.relist() };
        let (cache, since) = past.at(stale.at);
        self.cache = cache;
        let event = |Became { key, object, is_gone }: Became<T>| Event {
            due: stale.catches_up,
            key,
            object,
            deleted: is_gone,
        };
        self.under_way = since.into_iter().map(event).collect();
    }

    /// A watch that broke lists again: everything that is there is told as new, and nothing of what is gone.
    pub(crate) fn list_again(&mut self, now: DateTime<Utc>) {
        let live = &self.live;
        self.cache.retain(|key, _| live.contains_key(key));
        let event = |(key, object): (&ObjectKey, &Arc<T>)| Event {
            due: now,
            key: key.clone(),
            object: Arc::clone(object),
            deleted: false,
        };
        self.under_way = live.iter().map(event).collect();
    }
}
