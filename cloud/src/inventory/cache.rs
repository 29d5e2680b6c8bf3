//! Answers kept for a stated time; callers who want the same thing at the same time share one call. The call is dropped with
//! its last caller: one that nobody polls would keep its place in the queue of the rate limit, and stall it.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use tokio::time::Instant;

use crate::Result;

/// How good an answer is, which decides how long it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It holds what was requested.
    Complete,
    /// It misses something, which a user may be about to create.
    Incomplete,
}

impl Answer {
    pub(super) fn complete_if(complete: bool) -> Self {
        if complete { Self::Complete } else { Self::Incomplete }
    }
}

/// A call under way, held by its callers.
type Flight<V> = Shared<BoxFuture<'static, Result<V>>>;
type WeakFlight<V> = WeakShared<BoxFuture<'static, Result<V>>>;

pub(super) struct Cache<K, V> {
    slots: Mutex<Slots<K, V>>,
    lifetime: Duration,
    negative: Duration,
    judge: fn(&K, &V) -> Answer,
}

struct Slots<K, V> {
    by_key: BTreeMap<K, Slot<V>>,
    flights: u64,
}

struct Slot<V> {
    kept: Option<Kept<V>>,
    flight: Option<(u64, WeakFlight<V>)>,
}

struct Kept<V> {
    answer: Result<V>,
    at: Instant,
    until: Instant,
}

impl<V> Default for Slot<V> {
    fn default() -> Self {
        Self { kept: None, flight: None }
    }
}

impl<V: Clone> Slot<V> {
    /// The call under way, as long as a caller waits for it.
    fn flight(&self) -> Option<(u64, Flight<V>)> {
        let (id, flight) = self.flight.as_ref()?;
        Some((*id, flight.upgrade()?))
    }
}

impl<K: Ord + Hash + Clone, V: Clone> Cache<K, V> {
    pub(super) fn new(lifetime: Duration, negative: Duration, judge: fn(&K, &V) -> Answer) -> Self {
        let slots = Slots { by_key: BTreeMap::new(), flights: 0 };
        Self { slots: Mutex::new(slots), lifetime, negative, judge }
    }

    fn lock(&self) -> MutexGuard<'_, Slots<K, V>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kept answer, or that of the call under way, or that of a new call.
    pub(super) async fn get(&self, key: &K, fetch: impl Fn() -> BoxFuture<'static, Result<V>>) -> Result<V> {
        self.get_after(key, |_| fetch()).await
    }

    /// The same. A new call is told the value that was kept until its time was over.
    pub(super) async fn get_after(
        &self,
        key: &K,
        fetch: impl Fn(Option<&V>) -> BoxFuture<'static, Result<V>>,
    ) -> Result<V> {
        loop {
            let (id, flight) = {
                let mut slots = self.lock();
                let Slots { by_key, flights } = &mut *slots;
                let slot = by_key.entry(key.clone()).or_default();
                if let Some(kept) = slot.kept.as_ref().filter(|kept| Instant::now() < kept.until) {
                    return kept.answer.clone();
                }
                if let Some(under_way) = slot.flight() {
                    under_way
                } else {
                    *flights += 1;
                    let before = slot.kept.as_ref().and_then(|kept| kept.answer.as_ref().ok());
                    let flight = fetch(before).shared();
                    slot.flight = flight.downgrade().map(|weak| (*flights, weak));
                    (*flights, flight)
                }
            };
            // Held until the answer is stored: a caller that comes in between shares it.
            let answer = flight.clone().await;
            let mut slots = self.lock();
            let Some(slot) = slots.by_key.get_mut(key) else { continue };
            // Another caller has stored the answer, or our own write made it stale: check again.
            if slot.flight.as_ref().is_some_and(|(current, _)| *current == id) {
                let at = Instant::now();
                let until = at + self.lifetime_of(key, &answer);
                *slot = Slot { kept: Some(Kept { answer: answer.clone(), at, until }), flight: None };
                return answer;
            }
        }
    }

    fn lifetime_of(&self, key: &K, answer: &Result<V>) -> Duration {
        match answer {
            Ok(value) if (self.judge)(key, value) == Answer::Complete => spread(key, self.lifetime),
            _ => self.negative,
        }
    }

    /// What is kept is no longer true, and neither is the answer of a call under way.
    pub(super) fn invalidate(&self, key: &K) {
        self.lock().by_key.remove(key);
    }

    /// What was kept at least this long ago may no longer be true. Returns whether it was.
    pub(super) fn invalidate_older(&self, key: &K, age: Duration) -> bool {
        let mut slots = self.lock();
        let kept = slots.by_key.get(key).and_then(|slot| slot.kept.as_ref());
        let is_older = kept.is_some_and(|kept| kept.at.elapsed() >= age);
        if is_older {
            slots.by_key.remove(key);
        }
        is_older
    }

    /// Replaces what is kept by what our own write made true.
    pub(super) fn put(&self, key: K, value: V) {
        let answer = Ok(value);
        let at = Instant::now();
        let until = at + self.lifetime_of(&key, &answer);
        self.lock().by_key.insert(key, Slot { kept: Some(Kept { answer, at, until }), flight: None });
    }

    /// What is kept, without a call.
    pub(super) fn kept(&self, key: &K) -> Option<V> {
        let slots = self.lock();
        let kept = slots.by_key.get(key)?.kept.as_ref().filter(|kept| Instant::now() < kept.until)?;
        kept.answer.clone().ok()
    }

    /// How long what is kept remains so; `None` if nothing is.
    pub(super) fn kept_for(&self, key: &K) -> Option<Duration> {
        let slots = self.lock();
        let until = slots.by_key.get(key)?.kept.as_ref()?.until;
        until.checked_duration_since(Instant::now())
    }

    /// Changes what is kept for a key. The answer of a call under way for that key is disregarded.
    pub(super) fn edit_one(&self, key: &K, edit: impl FnOnce(&V) -> V) {
        let mut slots = self.lock();
        let Some(slot) = slots.by_key.get_mut(key) else { return };
        slot.flight = None;
        if let Some(Kept { answer: Ok(value), .. }) = &mut slot.kept {
            *value = edit(value);
        }
    }

    /// Changes each kept value for which `edit` returns a new one. The answer of a call under way for it is disregarded, and
    /// so is one for a value not known yet: it may be the one that was changed.
    pub(super) fn edit(&self, edit: impl Fn(&K, &V) -> Option<V>) {
        for (key, slot) in &mut self.lock().by_key {
            let Some(Kept { answer: Ok(value), .. }) = &mut slot.kept else {
                slot.flight = None;
                continue;
            };
            if let Some(edited) = edit(key, value) {
                *value = edited;
                slot.flight = None;
            }
        }
    }

    /// Drops all whose key or kept value matches.
    pub(super) fn invalidate_where(&self, matches: impl Fn(&K, Option<&V>) -> bool) {
        self.lock().by_key.retain(|key, slot| {
            let value = slot.kept.as_ref().and_then(|kept| kept.answer.as_ref().ok());
            !matches(key, value)
        });
    }

    /// Drops what is out of date, and calls that no caller waits for.
    pub(super) fn prune(&self, now: Instant) {
        self.prune_except(now, |_| false);
    }

    /// The same, except values that [`Self::get_after`] is to tell.
    pub(super) fn prune_except(&self, now: Instant, stays: impl Fn(&V) -> bool) {
        self.lock().by_key.retain(|_, slot| {
            let is_kept = |kept: &Kept<V>| now < kept.until || kept.answer.as_ref().is_ok_and(&stays);
            slot.flight().is_some() || slot.kept.as_ref().is_some_and(is_kept)
        });
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().by_key.len()
    }
}

/// Nine to eleven tenths of a lifetime, by the key: what was read together is not read again together.
fn spread(key: &impl Hash, lifetime: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let tenth = lifetime / 10;
    let part = u32::try_from(hasher.finish() % 201).unwrap_or(100);
    tenth * 9 + tenth * part / 100
}
