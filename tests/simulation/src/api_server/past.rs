//! What was there before: caches of an API server that is behind show it to a process that starts.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use capasg_controllers::ObjectKey;
use chrono::{DateTime, TimeDelta, Utc};

/// What happened is remembered for this long.
const REMEMBERED: TimeDelta = TimeDelta::minutes(1);

/// A cache that is behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stale {
    /// The moment that it shows.
    pub(crate) at: DateTime<Utc>,
    /// When it learns everything else.
    pub(crate) catches_up: DateTime<Utc>,
}

/// What became of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Became<T> {
    pub(super) key: ObjectKey,
    pub(super) object: Arc<T>,
    pub(super) is_gone: bool,
}

/// The past of the objects of one kind.
pub(super) struct Past<T> {
    /// What was there before the changes.
    begin: BTreeMap<ObjectKey, Arc<T>>,
    changes: VecDeque<(DateTime<Utc>, Became<T>)>,
}

impl<T> Past<T> {
    pub(super) fn new(there: &BTreeMap<ObjectKey, Arc<T>>) -> Self {
        Self { begin: there.clone(), changes: VecDeque::new() }
    }

    /// Keeps what became of an object.
    pub(super) fn keep(&mut self, now: DateTime<Utc>, became: Became<T>) {
        self.changes.push_back((now, became));
        while let Some((_, became)) = self.changes.pop_front_if(|(at, _)| now - *at > REMEMBERED) {
            became.apply(&mut self.begin);
        }
    }

    /// What was there at a moment, and what happened since.
    pub(super) fn at(&self, moment: DateTime<Utc>) -> (BTreeMap<ObjectKey, Arc<T>>, Vec<Became<T>>) {
        let mut there = self.begin.clone();
        let mut since = Vec::new();
        for (at, became) in &self.changes {
            if *at <= moment {
                became.apply(&mut there);
            } else {
                since.push(became.clone());
            }
        }
        (there, since)
    }
}

impl<T> Clone for Became<T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), object: Arc::clone(&self.object), is_gone: self.is_gone }
    }
}

impl<T> Became<T> {
    fn apply(&self, there: &mut BTreeMap<ObjectKey, Arc<T>>) {
        if self.is_gone {
            there.remove(&self.key);
        } else {
            there.insert(self.key.clone(), Arc::clone(&self.object));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_what_was_there_and_what_happened_since() {
        let key = |name: &str| ObjectKey::new("default", name);
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let became = |name: &str, object: i32, is_gone: bool| Became {
            key: key(name),
            object: Arc::new(object),
            is_gone,
        };
        let mut past = Past::new(&BTreeMap::from([(key("old"), Arc::new(1))]));
        past.keep(at(10), became("new", 2, false));
        past.keep(at(20), became("old", 1, true));
        past.keep(at(30), became("new", 3, false));
        let (there, since) = past.at(at(15));
        assert_eq!(there, BTreeMap::from([(key("new"), Arc::new(2)), (key("old"), Arc::new(1))]));
        assert_eq!(since, vec![became("old", 1, true), became("new", 3, false)]);
        past.keep(at(85), became("other", 4, false));
        let (there, since) = past.at(at(0));
        assert_eq!(there, BTreeMap::from([(key("new"), Arc::new(2))]), "older than a minute");
        assert_eq!(since.len(), 2);
    }
}
