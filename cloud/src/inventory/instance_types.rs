//! Instance types, read once for all pools that need them and kept: the machines behind a name never change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};

use crate::{Clock, CloudError, Gateway, InstanceType, Result, inventory::Cadence};

/// A filter of EC2 takes at most this many values.
const NAMES_AT_MOST: usize = 200;

/// What is known of the types that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceTypes {
    /// Those that the region offers, in the order in which they were asked for.
    pub offered: Vec<Arc<InstanceType>>,
    /// The names that the region does not offer.
    pub unknown: BTreeSet<String>,
}

/// What was read, by name.
#[derive(Debug, Default)]
pub(super) struct InstanceTypesTable {
    known: Mutex<BTreeMap<String, Known>>,
    /// Held while a call is under way: who waits for it finds its own names read, or reads for all that wait.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Known {
    /// `None` until it was read.
    answer: Option<Result<Option<Arc<InstanceType>>>>,
    until: DateTime<Utc>,
    /// Asked for since it was read: the others are dropped when their time is over.
    wanted: bool,
}

impl InstanceTypesTable {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn get(
        &self,
        clock: &dyn Clock,
        gateway: &Gateway,
        cadence: &Cadence,
        names: &[String],
    ) -> Result<InstanceTypes> {
        self.want(clock.now(), names);
        if let Some(found) = self.found(clock.now(), names) {
            return found;
        }
        let _turn = self.turn.lock().await;
        if let Some(found) = self.found(clock.now(), names) {
            return found;
        }
        let due = self.due(clock.now());
        for chunk in due.chunks(NAMES_AT_MOST) {
            let answer = gateway.instance_types(chunk).await;
            self.learn(clock.now(), cadence, chunk, answer);
        }
        self.collect(names)
    }

    /// Notes the names, so that whoever reads next reads them too.
    fn want(&self, now: DateTime<Utc>, names: &[String]) {
        let mut known = self.lock();
        for name in names {
            let new = Known { answer: None, until: now, wanted: true };
            known.entry(name.clone()).or_insert(new).wanted = true;
        }
    }

    /// The names whose answer is missing or too old.
    fn due(&self, now: DateTime<Utc>) -> Vec<String> {
        let mut known = self.lock();
        known.retain(|_, known| known.wanted || known.is_valid(now));
        known.iter().filter(|(_, known)| !known.is_valid(now)).map(|(name, _)| name.clone()).collect()
    }

    /// The answer, if every name has one that is not too old.
    fn found(&self, now: DateTime<Utc>, names: &[String]) -> Option<Result<InstanceTypes>> {
        let valid = {
            let known = self.lock();
            names.iter().all(|name| known.get(name).is_some_and(|known| known.is_valid(now)))
        };
        valid.then(|| self.collect(names))
    }

    fn collect(&self, names: &[String]) -> Result<InstanceTypes> {
        let known = self.lock();
        let mut found = InstanceTypes::default();
        for name in names {
            match known.get(name).and_then(|known| known.answer.clone()) {
                Some(Ok(Some(kind))) => found.offered.push(kind),
                Some(Ok(None)) | None => {
                    found.unknown.insert(name.clone());
                }
                Some(Err(error)) => return Err(error),
            }
        }
        Ok(found)
    }

    fn learn(
        &self,
        now: DateTime<Utc>,
        cadence: &Cadence,
        asked: &[String],
        answer: Result<Vec<InstanceType>>,
    ) {
        let mut known = self.lock();
        match answer {
            Ok(kinds) => {
                let mut kinds: BTreeMap<String, Arc<InstanceType>> =
                    kinds.into_iter().map(|kind| (kind.name.clone(), Arc::new(kind))).collect();
                for name in asked {
                    let kind = kinds.remove(name);
                    let lifetime = if kind.is_some() { cadence.instance_type } else { cadence.lookup };
                    let until = now + lifetime;
                    known.insert(name.clone(), Known { answer: Some(Ok(kind)), until, wanted: false });
                }
            }
            Err(error) => {
                let until = now + lifetime(&error, cadence);
                for name in asked {
                    // What was known once stays true.
                    let before = known.remove(name).and_then(|before| before.answer);
                    let answer = before.filter(Result::is_ok).unwrap_or_else(|| Err(error.clone()));
                    known.insert(name.clone(), Known { answer: Some(answer), until, wanted: false });
                }
            }
        }
    }
}

impl Known {
    fn is_valid(&self, now: DateTime<Utc>) -> bool {
        self.answer.is_some() && now < self.until
    }
}

fn lifetime(error: &CloudError, cadence: &Cadence) -> Duration {
    if error.class.is_permanent() { cadence.lookup } else { cadence.negative }
}
