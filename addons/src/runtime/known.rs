//! What is known of the objects of one kind, from the events of a watch.

use std::collections::{BTreeMap, BTreeSet};

use kube::{ResourceExt, runtime::watcher::Event};

use crate::controller::ObjectKey;

/// A difference to what was known: a new, a changed or a deleted object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change<V> {
    pub key: ObjectKey,
    pub old: Option<V>,
    pub new: Option<V>,
}

impl<V> Change<V> {
    /// What was known and what is known.
    pub(super) fn views(&self) -> impl Iterator<Item = &V> {
        self.old.iter().chain(&self.new)
    }
}

/// Views of the objects of one kind.
#[derive(Debug)]
pub(super) struct Known<V> {
    all: BTreeMap<ObjectKey, V>,
    /// The objects of a listing in progress.
    listed: BTreeSet<ObjectKey>,
}

impl<V> Default for Known<V> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), listed: BTreeSet::new() }
    }
}

impl<V: Clone + PartialEq> Known<V> {
    /// The differences that an event makes. `view` is what matters of an object; objects without a view are left out.
    pub(super) fn take<K: ResourceExt>(
        &mut self,
        event: &Event<K>,
        view: impl Fn(&K) -> Option<V>,
    ) -> Vec<Change<V>> {
        match event {
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listed.insert(key_of(object));
                self.set(key_of(object), view(object))
            }
            Event::InitDone => {
                // Objects that were deleted while there was no watch are not in the listing.
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<ObjectKey> =
                    self.all.keys().filter(|key| !listed.contains(key)).cloned().collect();
                gone.into_iter().flat_map(|key| self.set(key, None)).collect()
            }
            Event::Apply(object) => self.set(key_of(object), view(object)),
            Event::Delete(object) => self.set(key_of(object), None),
        }
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&V> {
        self.all.get(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &V)> {
        self.all.iter()
    }

    fn set(&mut self, key: ObjectKey, new: Option<V>) -> Vec<Change<V>> {
        let old = match &new {
            Some(view) => self.all.insert(key.clone(), view.clone()),
            None => self.all.remove(&key),
        };
        if old == new { Vec::new() } else { vec![Change { key, old, new }] }
    }
}

fn key_of(object: &impl ResourceExt) -> ObjectKey {
    ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(name: &str, version: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        (object.metadata.name, object.metadata.namespace) = (Some(name.to_owned()), Some("teams".to_owned()));
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    #[test]
    fn differences_alone_are_changes_and_deletions_without_a_watch_are_found() {
        let mut known = Known::<String>::default();
        let mut take = |event: Event<ConfigMap>| {
            let changes = known.take(&event, |object| object.metadata.resource_version.clone());
            changes.into_iter().map(|change| (change.key.name, change.old, change.new)).collect::<Vec<_>>()
        };
        let one = |text: &str| Some(text.to_owned());
        assert_eq!(take(Event::Init), []);
        assert_eq!(take(Event::InitApply(object("a", "1"))), [("a".to_owned(), None, one("1"))]);
        assert_eq!(take(Event::InitApply(object("b", "2"))), [("b".to_owned(), None, one("2"))]);
        assert_eq!(take(Event::InitDone), []);
        assert_eq!(take(Event::Apply(object("a", "1"))), []);
        assert_eq!(take(Event::Apply(object("a", "3"))), [("a".to_owned(), one("1"), one("3"))]);
        take(Event::Init);
        assert_eq!(take(Event::InitApply(object("a", "3"))), []);
        assert_eq!(take(Event::InitDone), [("b".to_owned(), one("2"), None)]);
        assert_eq!(take(Event::Delete(object("a", "3"))), [("a".to_owned(), one("3"), None)]);
    }
}
