//! Which objects of a cache belong to which pool, so that a reconcile reads only its own, however many there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Resource, runtime::watcher::Event};

use crate::ObjectKey;

/// Objects by what they belong to.
///
/// It receives an event before the cache does, and keeps what an object belonged to until the object is deleted: so it
/// never misses an object that the cache has. Callers check each object again.
#[derive(Debug, Clone, Default)]
pub struct Index(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    objects: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    groups: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// What a list in progress has named so far.
    listed: Option<BTreeSet<ObjectKey>>,
}

impl Index {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects that belong, or belonged, to `group`.
    #[must_use]
    pub fn objects_of(&self, group: &ObjectKey) -> Vec<ObjectKey> {
        self.lock().objects.get(group).into_iter().flatten().cloned().collect()
    }

    /// Takes in an event of a watch; `group_of` returns what an object belongs to.
    pub fn record<K>(&self, event: &Event<K>, group_of: impl Fn(&K) -> Option<ObjectKey>)
    where
        K: Resource<DynamicType = ()>,
    {
        let mut entries = self.lock();
        match event {
            Event::Init => entries.listed = Some(BTreeSet::new()),
            Event::InitApply(object) => {
                let key = ObjectKey::of(object);
                entries.add(&key, group_of(object));
                if let Some(listed) = &mut entries.listed {
                    listed.insert(key);
                }
            }
            Event::InitDone => entries.keep_listed(),
            Event::Apply(object) => entries.add(&ObjectKey::of(object), group_of(object)),
            Event::Delete(object) => entries.remove(&ObjectKey::of(object)),
        }
    }
}

impl Entries {
    fn add(&mut self, object: &ObjectKey, group: Option<ObjectKey>) {
        if let Some(group) = group {
            self.objects.entry(group.clone()).or_default().insert(object.clone());
            self.groups.entry(object.clone()).or_default().insert(group);
        }
    }

    fn remove(&mut self, object: &ObjectKey) {
        for group in self.groups.remove(object).unwrap_or_default() {
            if let Some(objects) = self.objects.get_mut(&group) {
                objects.remove(object);
                if objects.is_empty() {
                    self.objects.remove(&group);
                }
            }
        }
    }

    /// What a complete list does not name was deleted while the watch was down.
    fn keep_listed(&mut self) {
        let Some(listed) = self.listed.take() else { return };
        let deleted: Vec<ObjectKey> =
            self.groups.keys().filter(|object| !listed.contains(*object)).cloned().collect();
        for object in deleted {
            self.remove(&object);
        }
    }
}

#[cfg(test)]
mod tests {
    use capasg_api::{ASGMachine, ASGMachineSpec};

    use super::*;

    fn machine(name: &str) -> ASGMachine {
        let spec = ASGMachineSpec { provider_id: String::new(), instance_id: String::new() };
        let mut machine = ASGMachine::new(name, spec);
        machine.metadata.namespace = Some("ns".into());
        machine
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    /// Belongs to the pool that the name begins with.
    fn pool_of(machine: &ASGMachine) -> Option<ObjectKey> {
        let name = machine.metadata.name.as_deref()?;
        Some(key(name.split_once('-')?.0))
    }

    fn index(events: impl IntoIterator<Item = Event<ASGMachine>>) -> Index {
        let index = Index::default();
        for event in events {
            index.record(&event, pool_of);
        }
        index
    }

    #[test]
    fn objects_are_found_by_their_pool_until_they_are_deleted() {
        let index = index([
            Event::Init,
            Event::InitApply(machine("a-1")),
            Event::InitApply(machine("b-1")),
            Event::InitApply(machine("unowned")),
            Event::InitDone,
            Event::Apply(machine("a-2")),
        ]);
        assert_eq!(index.objects_of(&key("a")), [key("a-1"), key("a-2")]);
        assert_eq!(index.objects_of(&key("b")), [key("b-1")]);
        index.record(&Event::Delete(machine("a-1")), pool_of);
        index.record(&Event::Delete(machine("b-1")), pool_of);
        assert_eq!(index.objects_of(&key("a")), [key("a-2")]);
        assert!(index.objects_of(&key("b")).is_empty());
        assert_eq!(index.lock().objects.len(), 1, "nothing is kept of deleted objects");
    }

    #[test]
    fn only_a_complete_list_removes_objects_deleted_while_not_watching() {
        let index = index([
            Event::Init,
            Event::InitApply(machine("a-1")),
            Event::InitApply(machine("a-2")),
            Event::InitDone,
        ]);
        index.record(&Event::Init, pool_of);
        index.record(&Event::InitApply(machine("a-2")), pool_of);
        assert_eq!(index.objects_of(&key("a")), [key("a-1"), key("a-2")], "the cache still has both");
        index.record(&Event::InitDone, pool_of);
        assert_eq!(index.objects_of(&key("a")), [key("a-2")]);
    }

    #[test]
    fn an_object_that_moves_is_found_in_both_places() {
        let index = Index::default();
        let object = machine("a-1");
        index.record(&Event::Apply(object.clone()), |_| Some(key("old")));
        index.record(&Event::Apply(object.clone()), |_| Some(key("new")));
        assert_eq!(index.objects_of(&key("old")), [key("a-1")]);
        assert_eq!(index.objects_of(&key("new")), [key("a-1")]);
        index.record(&Event::Delete(object), |_: &ASGMachine| None);
        assert!(index.objects_of(&key("old")).is_empty() && index.objects_of(&key("new")).is_empty());
    }
}
