//! What happens to the replicas of the extension while core calls them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Result, ensure};
use capasg_e2e::{Extension, Rig};
use capasg_environment::{Answer, Verdict};

/// How often a replica ends at a call of each hook.
const TIMES: usize = 2;

/// What happens to the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// One ends before core receives its answer, and is started again.
    Ends,
    /// All are gone for so long while a user ends a block.
    Gone(Duration),
}

impl Trouble {
    /// A user acts, for example ends a block. While all replicas are gone, that has no effect: `holds` is as before. An action
    /// may wait for them to run again.
    pub async fn while_gone<T>(
        self,
        extension: &Extension<'_>,
        action: impl Future<Output = Result<T>>,
        holds: impl AsyncFn() -> Result<bool>,
    ) -> Result<T> {
        let Self::Gone(time) = self else { return action.await };
        extension.vanish().await?;
        let back = async {
            tokio::time::sleep(time).await;
            ensure!(holds().await?, "it did not hold while the extension was gone");
            extension.come_back().await
        };
        let (outcome, ()) = tokio::try_join!(action, back)?;
        Ok(outcome)
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
        let mut ended = BTreeMap::new();
        let ends = end_at_each_hook(extension, &mut ended);
        tokio::select! {
            told = story => told?,
            failed = ends => failed?,
        }
        super::say(&format!("replicas ended at calls of {ended:?}"))?;
        let failed = super::failed_calls(rig, extension).await?;
        for hook in super::known_hooks(rig)? {
            let has_failed = failed.iter().any(|line| line.contains(&format!("hook=\"{hook}\"")));
            ensure!(ended.contains_key(hook) && has_failed, "no call of {hook} failed: {failed:?}");
        }
        Ok(())
    }
}

/// Ends a replica when it has answered a call and core has not received the answer, a few times for each hook.
async fn end_at_each_hook(extension: &Extension<'_>, ended: &mut BTreeMap<String, usize>) -> Result<()> {
    let mut answers = extension.balancer.watch();
    let mut counted: BTreeMap<u16, BTreeMap<(String, String), u64>> = BTreeMap::new();
    while let Some(Answer { endpoint, verdict }) = answers.recv().await {
        let calls = extension.calls_of(endpoint).await?;
        let before = counted.insert(endpoint, calls.clone()).unwrap_or_default();
        let is_new = |(call, count): &(&(String, String), &u64)| before.get(*call) != Some(*count);
        let called: BTreeSet<&String> = calls.iter().filter(is_new).map(|((hook, _), _)| hook).collect();
        let Some(hook) = called.into_iter().next() else {
            let _ = verdict.send(Verdict::IsNotTheResponse);
            continue;
        };
        let times: &mut usize = ended.entry(hook.clone()).or_default();
        if *times == TIMES {
            let _ = verdict.send(Verdict::Passes);
            continue;
        }
        *times += 1;
        counted.remove(&endpoint);
        let _ = verdict.send(Verdict::IsLost);
        extension.replace(endpoint).await?;
    }
    Ok(())
}
