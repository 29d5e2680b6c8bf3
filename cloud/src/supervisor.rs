//! Keeps background tasks running: one that ends or panics is started again after a pause, and one that does so repeatedly
//! makes the process unhealthy, so that it is restarted as a whole.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// A task that stops this often within [`WITHIN`] makes the process unhealthy.
const TOO_OFTEN: usize = 5;
const WITHIN: Duration = Duration::from_mins(10);
/// The pause before a task is started again, doubled for each time that it stopped within [`WITHIN`]; 16 s at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The background tasks of the process, by name.
#[derive(Debug, Clone, Default)]
pub struct Supervisor(Arc<Mutex<BTreeMap<String, VecDeque<Instant>>>>);

impl Supervisor {
    /// Runs `task` until `shutdown`, for which it watches by itself. If it ends or panics before, it is started again.
    pub fn keep<T, F>(
        &self,
        name: &str,
        shutdown: &CancellationToken,
        task: T,
    ) -> impl Future<Output = ()> + use<T, F>
    where
        T: Fn() -> F,
        F: Future<Output = ()>,
    {
        let (stops, name, shutdown) = (self.clone(), name.to_owned(), shutdown.clone());
        async move {
            loop {
                // What is done before the first await may panic as well.
                let ended = AssertUnwindSafe(async { task().await }).catch_unwind().await;
                if shutdown.is_cancelled() {
                    return;
                }
                let pause = stops.stopped(&name);
                let panicked = ended.is_err();
                tracing::error!(
                    task = name,
                    panicked,
                    ?pause,
                    "a background task stopped; it is started again"
                );
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = sleep(pause) => {}
                }
            }
        }
    }

    /// The tasks that stop repeatedly; `None` if there are none.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let now = Instant::now();
        let stops = self.lock();
        let failing = stops.iter().filter(|(_, times)| recent(times, now) >= TOO_OFTEN);
        let names: Vec<&str> = failing.map(|(name, _)| name.as_str()).collect();
        let minutes = WITHIN.as_secs() / 60;
        (!names.is_empty()).then(|| {
            let names = names.join(", ");
            format!("background tasks stopped {TOO_OFTEN} times within {minutes} minutes: {names}")
        })
    }

    /// Records that a task stopped, and returns the pause before its next start.
    fn stopped(&self, name: &str) -> Duration {
        let now = Instant::now();
        let mut stops = self.lock();
        let times = stops.entry(name.to_owned()).or_default();
        times.push_back(now);
        while times.len() > TOO_OFTEN {
            times.pop_front();
        }
        let repeated = u32::try_from(recent(times, now)).unwrap_or(u32::MAX).saturating_sub(1);
        FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(repeated))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, VecDeque<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn recent(times: &VecDeque<Instant>, now: Instant) -> usize {
    times.iter().filter(|at| now.duration_since(**at) < WITHIN).count()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Starts a task that stops as long as it was started at most `bad` times, and then runs until `shutdown`.
    fn start(
        supervisor: &Supervisor,
        shutdown: &CancellationToken,
        bad: usize,
        stop: fn(),
    ) -> (Arc<AtomicUsize>, tokio::task::JoinHandle<()>) {
        let starts = Arc::new(AtomicUsize::new(0));
        let (counted, until) = (Arc::clone(&starts), shutdown.clone());
        let task = move || {
            let is_bad = counted.fetch_add(1, Ordering::SeqCst) < bad;
            let until = until.clone();
            async move { if is_bad { stop() } else { until.cancelled().await } }
        };
        (starts, tokio::spawn(supervisor.keep("poll", shutdown, task)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_or_panics_is_started_again_with_pauses() {
        for stop in [(|| {}) as fn(), || panic!("as planned")] {
            let (supervisor, shutdown) = (Supervisor::default(), CancellationToken::new());
            let (starts, running) = start(&supervisor, &shutdown, 3, stop);
            for (seconds, expected) in [(0, 1), (1, 2), (2, 3), (4, 4), (600, 4)] {
                sleep(Duration::from_secs(seconds) + Duration::from_millis(1)).await;
                assert_eq!(starts.load(Ordering::SeqCst), expected);
            }
            assert_eq!(supervisor.problem(), None, "three times are no problem");
            shutdown.cancel();
            running.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_stops_five_times_in_ten_minutes_is_a_problem() {
        let (supervisor, shutdown) = (Supervisor::default(), CancellationToken::new());
        start(&supervisor, &shutdown, 5, || panic!("as planned"));
        sleep(Duration::from_secs(14)).await;
        assert_eq!(supervisor.problem(), None);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(
            supervisor.problem().as_deref(),
            Some("background tasks stopped 5 times within 10 minutes: poll")
        );
        sleep(WITHIN).await;
        assert_eq!(supervisor.problem(), None, "it runs again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_is_not_started_again_after_shutdown() {
        let (supervisor, shutdown) = (Supervisor::default(), CancellationToken::new());
        let (starts, running) = start(&supervisor, &shutdown, usize::MAX, || {});
        sleep(Duration::from_millis(1)).await;
        shutdown.cancel();
        running.await.unwrap();
        assert_eq!(starts.load(Ordering::SeqCst), 1);
    }
}
