//! From standby to leader to shutdown: when the controllers run, and what happens at a signal or a lost lease.

use std::{pin::pin, time::Duration};

use anyhow::{Result, bail};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::leadership::{Election, LeaseStore};

/// Wins the election (if there is one), works until `stop`, and releases the lease at the end.
///
/// `work` is started once this replica leads, with a token that requests it to finish; it then has `grace` to do so, during which
/// the lease is still renewed. Work that does not finish in time keeps the lease from being released: a call that is
/// in flight to AWS must not interleave with those of a successor, so the successor waits until the lease has expired.
///
/// # Errors
/// If the lease is lost or the work stops by itself: the process must exit, and a new one starts clean.
pub async fn lead<S: LeaseStore, W: Future<Output = Result<()>>>(
    mut election: Option<Election<S>>,
    stop: &CancellationToken,
    grace: Duration,
    work: impl FnOnce(CancellationToken) -> W,
) -> Result<()> {
    let Some(election) = &mut election else {
        return finish(work(stop.child_token()), stop, grace).await.map(drop);
    };
    if !election.acquire(stop).await {
        return Ok(());
    }
    let end = tokio::select! {
        // Polled first: work must not take one more step without the lease.
        biased;
        () = election.hold() => bail!("lost the leader lease"),
        end = finish(work(stop.child_token()), stop, grace) => end,
    };
    if matches!(end, Ok(End::Unfinished)) {
        return Ok(());
    }
    election.release().await;
    end.map(drop)
}

/// How work stopped after it was requested to.
enum End {
    Finished,
    /// Calls may still be in flight.
    Unfinished,
}

async fn finish(
    work: impl Future<Output = Result<()>>,
    stop: &CancellationToken,
    grace: Duration,
) -> Result<End> {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        result = &mut work => {
            result?;
            if !stop.is_cancelled() {
                bail!("the controllers stopped unexpectedly");
            }
            return Ok(End::Finished);
        }
    }
    if let Ok(result) = timeout(grace, work).await {
        info!("all running work has finished");
        return result.map(|()| End::Finished);
    }
    warn!(grace = ?grace, "running work did not finish in time; the lease is not released");
    Ok(End::Unfinished)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::leadership::{
        Seat,
        testing::{FakeLeases, Link, contender},
    };

    const GRACE: Duration = Duration::from_secs(8);

    // Rules: N2
    #[tokio::test(start_paused = true)]
    async fn running_work_finishes_under_the_lease_which_is_then_released() {
        let leases = Arc::new(FakeLeases::default());
        let (election, seat) = contender("a", &Link::to(&leases));
        let stop = CancellationToken::new();
        let finished = Arc::new(AtomicBool::new(false));
        let working = {
            let (finished, seat) = (Arc::clone(&finished), Arc::clone(&seat));
            move |asked: CancellationToken| async move {
                asked.cancelled().await;
                sleep(Duration::from_secs(5)).await;
                assert!(seat.is_held(), "work must end under the lease");
                finished.store(true, Ordering::SeqCst);
                Ok(())
            }
        };
        let leading = tokio::spawn({
            let stop = stop.clone();
            async move { lead(Some(election), &stop, GRACE, working).await }
        });
        sleep(Duration::from_mins(1)).await;
        assert_eq!(leases.holder(), "a");
        stop.cancel();
        leading.await.unwrap().unwrap();
        assert!(finished.load(Ordering::SeqCst));
        assert!(!seat.is_held());
        assert_eq!(leases.holder(), "");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_finish_is_left_behind_after_the_grace() {
        let leases = Arc::new(FakeLeases::default());
        let (election, _) = contender("a", &Link::to(&leases));
        let stop = CancellationToken::new();
        stop.clone().cancel();
        // Even with an early stop: nothing was acquired, nothing is worked on.
        lead(Some(election), &stop, GRACE, |_| async { panic!("must not start") }).await.unwrap();

        let (election, _) = contender("a", &Link::to(&leases));
        let stop = CancellationToken::new();
        let start = Instant::now();
        let ask = stop.clone();
        lead(Some(election), &stop, GRACE, |_| async move {
            ask.cancel();
            std::future::pending().await
        })
        .await
        .unwrap();
        assert_eq!(start.elapsed(), GRACE);
        assert_eq!(leases.holder(), "a", "what is on its way must not meet a successor's calls");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_lease_ends_the_work_at_once_with_an_error() {
        let leases = Arc::new(FakeLeases::default());
        let link = Link::to(&leases);
        let (election, seat) = contender("a", &link);
        let stop = CancellationToken::new();
        let result = lead(Some(election), &stop, GRACE, |_| async move {
            link.cut(true);
            std::future::pending().await
        })
        .await;
        assert_eq!(result.unwrap_err().to_string(), "lost the leader lease");
        assert!(!seat.is_held());
        assert_eq!(leases.holder(), "a", "a lease that is lost is not touched any more");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_ends_by_itself_is_an_error() {
        let stop = CancellationToken::new();
        let result = lead(None::<Election<Link>>, &stop, GRACE, |_| async { Ok(()) }).await;
        assert_eq!(result.unwrap_err().to_string(), "the controllers stopped unexpectedly");
        assert!(Seat::always().is_held());
    }
}
