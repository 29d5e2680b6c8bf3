//! What happens to the replicas of the extension while core calls them.

use std::time::Duration;

use anyhow::{Result, ensure};
use capasg_e2e::{Extension, Rig};
use capasg_environment::Passing;
use tokio::sync::mpsc::UnboundedReceiver;

/// A reconcile of core is complete if it requests nothing more for so long.
const IDLE: Duration = Duration::from_millis(250);

/// More requests than a reconcile of core makes.
const MOST: usize = 10;

/// What happens to the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// One ends while a request is on its way to it, and is started again.
    Ends,
    /// All are gone for so long while a user ends a block.
    Gone(Duration),
}

impl Trouble {
    /// A user ends a block by `open`. While all replicas are gone, that has no effect: `holds` is as before.
    pub async fn while_gone(
        self,
        extension: &Extension<'_>,
        open: impl Future<Output = Result<()>>,
        holds: impl AsyncFn() -> Result<bool>,
    ) -> Result<()> {
        let Self::Gone(time) = self else { return open.await };
        extension.vanish().await?;
        open.await?;
        tokio::time::sleep(time).await;
        ensure!(holds().await?, "it did not hold while the extension was gone");
        extension.come_back().await
    }

    /// Carries out `story`; for [`Trouble::Ends`], replicas end until it is over.
    pub async fn through(
        self,
        rig: &Rig<'_>,
        extension: &Extension<'_>,
        story: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        if self != Self::Ends {
            return story.await;
        }
        let mut ended = 0;
        let ends = end_at_each_request(extension, &mut ended);
        tokio::select! {
            told = story => told?,
            failed = ends => failed?,
        }
        let failed = super::failed_calls(rig, extension).await?;
        super::say(&format!("{ended} replicas ended; calls that failed: {failed:?}"))?;
        let met = |hook: &&str| failed.iter().any(|line| line.contains(&format!("hook=\"{hook}\"")));
        let (met, spared): (Vec<&str>, Vec<&str>) = super::known_hooks(rig)?.into_iter().partition(met);
        super::say(&format!("no replica ended at a call of {spared:?}"))?;
        // A hook that does not block is called once in a reconcile that may not be the one that is tried.
        ensure!(met.len() > spared.len(), "replicas ended at calls of {met:?} alone");
        Ok(())
    }
}

/// Ends a replica at each request of each reconcile of core: core repeats a reconcile that failed from its first request on,
/// and each try ends a replica one request later, until all pass.
async fn end_at_each_request(extension: &Extension<'_>, ended: &mut usize) -> Result<()> {
    let mut requests = extension.balancer.watch();
    let mut position = 0;
    while let Some(first) = requests.recv().await {
        if let Some(request) = request_at(position, first, &mut requests).await {
            extension.replace(request.endpoint).await?;
            *ended += 1;
            position = (position + 1) % MOST;
        } else {
            position = 0;
        }
    }
    Ok(())
}

/// Lets requests pass up to the one at a position; `None` if the reconcile is complete before.
async fn request_at(
    position: usize,
    first: Passing,
    requests: &mut UnboundedReceiver<Passing>,
) -> Option<Passing> {
    let mut request = first;
    for _ in 0..position {
        let _ = request.pass.send(());
        request = tokio::time::timeout(IDLE, requests.recv()).await.ok().flatten()?;
    }
    Some(request)
}
