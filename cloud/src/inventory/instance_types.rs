//! Instance types, read once for all pools that need them and kept: what is behind a name never changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

use crate::{
    Gateway, InstanceType, Known, Result,
    inventory::{cadence::Cadence, failed_read::FailedRead},
};

/// A filter of EC2 takes at most this many values.
const NAMES_AT_MOST: usize = 200;

/// What is known of the requested types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceTypes {
    /// Those that the region offers, in the order of the request.
    pub offered: Vec<Arc<InstanceType>>,
    /// The names that the region does not offer.
    pub unknown: BTreeSet<String>,
}

/// What was read, by name.
#[derive(Debug, Default)]
pub(super) struct InstanceTypesTable {
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Held while a call is under way: a caller that waits for it finds its own names read, or reads for all that wait.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Entry {
    /// Unknown until it was read without error.
    read: Known<Arc<InstanceType>>,
    /// The last read, if it failed.
    failed: Option<FailedRead>,
    /// When a read that succeeded is too old.
    until: Instant,
    /// Requested since it was read: the others are dropped when their time is over.
    requested: bool,
}

impl InstanceTypesTable {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads again what failed: AWS is reachable again.
    pub(super) fn retry(&self) {
        FailedRead::expire(self.lock().values_mut().map(|entry| &mut entry.failed));
    }

    pub(super) async fn get(
        &self,
        gateway: &Gateway,
        cadence: &Cadence,
        names: &[String],
    ) -> Result<InstanceTypes> {
        self.request(Instant::now(), names);
        if let Some(found) = self.found(Instant::now(), names) {
            return found;
        }
        let _turn = self.turn.lock().await;
        if let Some(found) = self.found(Instant::now(), names) {
            return found;
        }
        let due = self.due(Instant::now());
        for chunk in due.chunks(NAMES_AT_MOST) {
            let answer = gateway.instance_types(chunk).await;
            self.apply(Instant::now(), cadence, chunk, answer);
        }
        self.collect(names)
    }

    /// Records the names, so that the next caller that reads reads them too.
    fn request(&self, now: Instant, names: &[String]) {
        let mut entries = self.lock();
        for name in names {
            let new = Entry { read: Known::Unknown, failed: None, until: now, requested: true };
            entries.entry(name.clone()).or_insert(new).requested = true;
        }
    }

    /// The names whose answer is missing or too old.
    fn due(&self, now: Instant) -> Vec<String> {
        let mut entries = self.lock();
        entries.retain(|_, entry| entry.requested || entry.is_valid(now));
        entries.iter().filter(|(_, entry)| !entry.is_valid(now)).map(|(name, _)| name.clone()).collect()
    }

    /// The answer, if every name has one that is not too old.
    fn found(&self, now: Instant, names: &[String]) -> Option<Result<InstanceTypes>> {
        let valid = {
            let entries = self.lock();
            names.iter().all(|name| entries.get(name).is_some_and(|entry| entry.is_valid(now)))
        };
        valid.then(|| self.collect(names))
    }

    fn collect(&self, names: &[String]) -> Result<InstanceTypes> {
        let entries = self.lock();
        let mut found = InstanceTypes::default();
        for name in names {
            match entries.get(name).map(|entry| (&entry.read, &entry.failed)) {
                Some((Known::Present(kind), _)) => found.offered.push(kind.clone()),
                Some((Known::Unknown, Some(failed))) => return Err(failed.error().clone()),
                Some((Known::Unknown | Known::Absent, _)) | None => {
                    found.unknown.insert(name.clone());
                }
            }
        }
        Ok(found)
    }

    fn apply(&self, now: Instant, cadence: &Cadence, names: &[String], answer: Result<Vec<InstanceType>>) {
        let mut entries = self.lock();
        match answer {
            Ok(kinds) => {
                let mut kinds: BTreeMap<String, Arc<InstanceType>> =
                    kinds.into_iter().map(|kind| (kind.name.clone(), Arc::new(kind))).collect();
                for name in names {
                    let kind = kinds.remove(name);
                    let until = now + if kind.is_some() { cadence.instance_type } else { cadence.lookup };
                    let entry = Entry { read: kind.into(), failed: None, until, requested: false };
                    entries.insert(name.clone(), entry);
                }
            }
            Err(error) => {
                for name in names {
                    let Some(entry) = entries.get_mut(name) else { continue };
                    entry.failed =
                        Some(FailedRead::after(entry.failed.as_ref(), error.clone(), cadence, now));
                    entry.requested = false;
                }
            }
        }
    }
}

impl Entry {
    fn is_valid(&self, now: Instant) -> bool {
        now < self.until || self.failed.as_ref().is_some_and(|failed| failed.is_kept(now))
    }
}
