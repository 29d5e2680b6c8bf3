//! How long calls through a port take: drawn for each, and split between the way there and the way back, so that the world
//! changes before the effect and between the effect and the reply.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{Port, Random};

/// How long the calls of a run take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// What a call to AWS takes at most unless it is slow, in milliseconds. One to the API server takes a quarter of that.
    pub typical_millis: u64,
    /// How many of 1,000 calls are slow.
    pub slow_per_thousand: u64,
    /// What a slow call takes at most, in milliseconds.
    pub slow_millis: u64,
}

/// Draws how long calls take, from a sequence of its own: whatever else a seed draws stays the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delays(Option<Drawn>);

/// What delays are drawn from.
#[derive(Debug, Clone)]
struct Drawn {
    latency: Latency,
    random: Random,
    /// No call takes longer than so many milliseconds from now on.
    most: Arc<AtomicU64>,
}

/// How long one call takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Delay {
    /// Until it has its effect.
    pub(crate) there: Duration,
    /// From then until its reply arrives.
    pub(crate) back: Duration,
}

impl Delays {
    /// The delays of a run; without a latency there are none, and nothing is drawn.
    pub(crate) fn new(seed: u64, latency: Option<Latency>) -> Self {
        let random = Random::new(seed ^ 0x006c_6174_656e_6379);
        let most = Arc::new(AtomicU64::new(u64::MAX));
        Self(latency.map(|latency| Drawn { latency, random, most }))
    }

    /// From now on no call takes longer than this.
    pub(crate) fn keep_within(&self, most: Duration) {
        if let Some(drawn) = &self.0 {
            drawn.most.store(u64::try_from(most.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
        }
    }

    /// Whether calls take time.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// How long the next call takes.
    pub(crate) fn draw(&self, port: Port) -> Delay {
        let Some(Drawn { latency, random, most }) = &self.0 else { return Delay::default() };
        let limit = most.load(Ordering::SeqCst);
        let is_slow = random.below(1000) < latency.slow_per_thousand;
        let most = if is_slow { latency.slow_millis } else { latency.typical_millis };
        let most = match port {
            Port::Cloud => most.min(limit),
            Port::Kubernetes => most.min(limit) / 4,
        };
        let least = most / 4;
        let all = least + random.below(most - least + 1);
        let there = random.below(all + 1);
        Delay { there: Duration::from_millis(there), back: Duration::from_millis(all - there) }
    }

    /// How long a reply that never arrives is waited for: in half of all cases the connection is closed at once, otherwise
    /// the caller waits until its time-out.
    pub(crate) fn lost(&self, timeout: Duration) -> Duration {
        let waits = self.0.as_ref().is_some_and(|drawn| drawn.random.chance(50));
        if waits { timeout } else { Duration::ZERO }
    }
}

/// Lets this much time pass.
pub(crate) async fn pass(time: Duration) {
    // A sleep of no time would still be a turn of the runtime.
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_latency_calls_take_no_time_and_with_one_they_keep_to_it() {
        let none = Delays::new(1, None);
        assert_eq!(none.draw(Port::Cloud), Delay::default());
        assert_eq!(none.lost(Duration::from_secs(20)), Duration::ZERO);
        let latency = Latency { typical_millis: 100, slow_per_thousand: 500, slow_millis: 4_000 };
        let delays = Delays::new(1, Some(latency));
        let drawn: Vec<Duration> =
            (0..1000).map(|_| delays.draw(Port::Cloud)).map(|delay| delay.there + delay.back).collect();
        let millis = Duration::from_millis;
        assert!(drawn.iter().all(|all| (millis(25)..=millis(4_000)).contains(all)));
        let slow = drawn.iter().filter(|all| **all > millis(100)).count();
        assert!((400..600).contains(&slow), "{slow} of 1000 are slow");
        let kubernetes = delays.draw(Port::Kubernetes);
        assert!(kubernetes.there + kubernetes.back <= millis(1_000));
        delays.clone().keep_within(millis(200));
        let drawn = (0..1000).map(|_| delays.draw(Port::Cloud));
        assert!(drawn.map(|delay| delay.there + delay.back).all(|all| all <= millis(200)));
    }
}
