//! How many processes of Helm begin at the same time. Helm first loads the chart and the schemas of the API server, which takes
//! processor time and most of its memory; more of them than the processors serve are no faster, and use more memory.

use std::{future::Future, num::NonZero, pin::pin, sync::Arc, thread::available_parallelism, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

/// How many processes begin at the same time on each processor: a part of the time, they wait for the API server.
const OF_PROCESSOR: usize = 2;
/// How long a process begins at most. One that still runs then waits, usually for resources to become ready.
const BEGINS: Duration = Duration::from_secs(3);

/// The processes that begin.
#[derive(Debug, Clone)]
pub(super) struct Starts(Arc<Semaphore>);

impl Default for Starts {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self::of(processors * OF_PROCESSOR)
    }
}

impl Starts {
    fn of(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// Runs a process once others have begun.
    pub(super) async fn run<T>(&self, process: impl Future<Output = T>) -> T {
        let mut process = pin!(process);
        // The semaphore is never closed.
        let permit = self.0.acquire().await;
        if let Ok(ended) = timeout(BEGINS, &mut process).await {
            return ended;
        }
        drop(permit);
        process.await
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_next_process_begins_once_another_one_ends_or_waits() {
        let (starts, begun) = (Starts::of(2), Instant::now());
        let waiting = || {
            let starts = starts.clone();
            tokio::spawn(async move { starts.run(pending::<()>()).await })
        };
        let short = {
            let starts = starts.clone();
            tokio::spawn(async move { starts.run(sleep(Duration::from_secs(1))).await })
        };
        let long = [waiting(), waiting()];
        tokio::task::yield_now().await;
        short.await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
        tokio::task::yield_now().await;
        // Both places are taken: by the first long one for three seconds, by the second one since the short one ended.
        let after = starts.run(async { begun.elapsed() }).await;
        assert_eq!(after, BEGINS);
        assert!(long.iter().all(|one| !one.is_finished()));
    }
}
