//! What happens to the replicas of the extension while core calls them.

use std::time::Duration;

use anyhow::{Result, ensure};
use capasg_e2e::{Extension, Rig};

/// How many requests pass before a replica ends, again and again: a reconcile of core needs several in a row, and each of
/// them is to be the one that fails.
const GAPS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 8];

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
        let ends = async {
            let mut requests = extension.balancer.watch();
            for gap in GAPS.into_iter().cycle() {
                for _ in 0..gap {
                    let Some(request) = requests.recv().await else { return Ok(()) };
                    let _ = request.pass.send(());
                }
                let Some(request) = requests.recv().await else { return Ok(()) };
                extension.replace(request.endpoint).await?;
                ended += 1;
            }
            anyhow::Ok(())
        };
        tokio::select! {
            told = story => told?,
            failed = ends => failed?,
        }
        let failed = super::failed_calls(rig, extension).await?;
        super::say(&format!("{ended} replicas ended; calls that failed: {failed:?}"))?;
        ensure!(ended >= GAPS.len() && !failed.is_empty(), "{ended} replicas ended, {failed:?} failed");
        Ok(())
    }
}
