//! One token bucket: which calls wait, which goes next, and how fast tokens arrive.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::limits::Rate;
use crate::Priority;

/// Throttled answers to calls that were in flight together count once.
const ONE_CUT_PER: Duration = Duration::from_secs(1);
/// The rate never falls below this part of the limit, so that recovery is noticed.
const LOWEST_PART: f64 = 1.0 / 16.0;
/// Seconds in which a rate of zero would recover to the limit; a halved one takes half of it.
const RECOVERY_SECONDS: f64 = 60.0;

/// After this many calls in a row that overtook an older one, the one that has waited longest goes: under any load of
/// terminations, a fifth of the rate is left for other calls, and none starves.
const MAX_OVERTAKES: u32 = 4;

/// Priority, then order of arrival.
type Rank = (Priority, u64);

#[derive(Debug)]
pub(super) struct Bucket {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: Rate,
    /// Tokens per second now: below the limit for a while after AWS throttled.
    rate: f64,
    tokens: f64,
    refilled: Instant,
    cut: Option<Instant>,
    arrivals: u64,
    /// How many calls in a row overtook an older one.
    overtakes: u32,
    waiting: BTreeMap<Rank, Arc<Notify>>,
}

enum Turn {
    Mine,
    In(Duration),
    Behind,
}

impl Bucket {
    pub(super) fn new(limit: Rate) -> Self {
        Self {
            state: Mutex::new(State {
                limit,
                rate: limit.per_second,
                tokens: limit.burst,
                refilled: Instant::now(),
                cut: None,
                arrivals: 0,
                overtakes: 0,
                waiting: BTreeMap::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a token. Dropping the future gives the place in the queue up.
    pub(super) async fn acquire(&self, priority: Priority) {
        let wake = Arc::new(Notify::new());
        let place = Place { bucket: self, rank: self.lock().enqueue(priority, wake.clone()) };
        loop {
            let turn = self.lock().turn(place.rank);
            match turn {
                Turn::Mine => return,
                Turn::In(wait) => {
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = wake.notified() => {}
                    }
                }
                Turn::Behind => wake.notified().await,
            }
        }
    }

    /// AWS throttled a call: half the rate, and the burst is spent.
    pub(super) fn throttled(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        state.refill(now);
        state.tokens = 0.0;
        if state.cut.is_none_or(|cut| now.duration_since(cut) >= ONE_CUT_PER) {
            state.cut = Some(now);
            state.rate = (state.rate / 2.0).max(state.limit.per_second * LOWEST_PART);
        }
    }

    #[cfg(test)]
    pub(super) fn rate(&self) -> f64 {
        let mut state = self.lock();
        state.refill(Instant::now());
        state.rate
    }
}

impl State {
    fn enqueue(&mut self, priority: Priority, wake: Arc<Notify>) -> Rank {
        self.arrivals += 1;
        let rank = (priority, self.arrivals);
        self.waiting.insert(rank, wake);
        rank
    }

    fn refill(&mut self, now: Instant) {
        let seconds = now.duration_since(self.refilled).as_secs_f64();
        self.refilled = now;
        self.tokens = (self.tokens + seconds * self.rate).min(self.limit.burst);
        let recovered = seconds * self.limit.per_second / RECOVERY_SECONDS;
        self.rate = (self.rate + recovered).min(self.limit.per_second);
    }

    /// Whose turn it is.
    fn next(&self) -> Option<Rank> {
        if self.overtakes < MAX_OVERTAKES {
            self.waiting.keys().next().copied()
        } else {
            self.waiting.keys().min_by_key(|(_, arrival)| *arrival).copied()
        }
    }

    fn turn(&mut self, rank: Rank) -> Turn {
        self.refill(Instant::now());
        if self.next() != Some(rank) {
            return Turn::Behind;
        }
        // Timers are exact to the millisecond: a token that is all but there counts.
        let missing = 1.0 - self.tokens;
        if missing <= 1e-6 {
            self.tokens -= 1.0;
            let overtook = self.waiting.keys().any(|(_, arrival)| *arrival < rank.1);
            self.overtakes = if overtook { self.overtakes + 1 } else { 0 };
            return Turn::Mine;
        }
        Turn::In(Duration::from_secs_f64(missing / self.rate).max(Duration::from_millis(1)))
    }
}

/// A place in the queue; leaving it, served or not, wakes the next one.
struct Place<'a> {
    bucket: &'a Bucket,
    rank: Rank,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.bucket.lock();
        state.waiting.remove(&self.rank);
        if let Some(next) = state.next().and_then(|rank| state.waiting.get(&rank)) {
            next.notify_one();
        }
    }
}
