//! A new release takes over what an earlier one left: nothing becomes outdated, nothing is made anew.

use anyhow::{Context as _, Result, ensure};
use capasg_fake_aws::Recording;
use capasg_simulation::{Setup, World};
use chrono::TimeDelta;

use crate::reach;

/// What release 0.3.0 wrote, recorded from its program.
const RECORDINGS: [(&str, &str); 2] = [
    ("a Secret", include_str!("../../../fixtures/recordings/v0.3.0/secret.json")),
    ("kubeadm", include_str!("../../../fixtures/recordings/v0.3.0/kubeadm.json")),
];

async fn restored(text: &str) -> Result<(World, Vec<capasg_simulation::Pool>)> {
    let recording: Recording = serde_json::from_str(text)?;
    let mut world = World::new(Setup { region: recording.region.clone(), ..Setup::default() });
    let pools = world.restore(&recording).await?;
    ensure!(!pools.is_empty(), "an empty recording");
    Ok((world, pools))
}

/// An upgrade of our own makes 0 instances outdated and no template version.
#[tokio::test(start_paused = true)]
async fn pools_of_release_0_3_0_are_not_changed() -> Result<()> {
    for (name, text) in RECORDINGS {
        let (mut world, pools) = restored(text).await.with_context(|| name.to_owned())?;
        let (mark, before) = (world.mark(), world.dump());
        world.run_for(TimeDelta::hours(2)).await?;
        let calls: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
        ensure!(calls.is_empty(), "{name}: asked for {calls:?}\n{}", world.describe());
        let after = world.dump();
        ensure!(
            after.templates == before.templates && after.groups == before.groups,
            "{name}: the cloud differs"
        );
        for pool in &pools {
            let status = world.pool(pool).and_then(|pool| pool.status.clone()).context("a status")?;
            let running = world.instances(pool).len();
            ensure!(running > 0 && usize::try_from(status.replicas) == Ok(running), "{name}: {status:?}");
            ensure!(status.up_to_date_replicas == status.replicas, "{name}: {status:?}");
            ensure!(world.is_running(pool, running), "{name}: {}\n{}", pool.key, world.describe());
        }
        world.finish()?;
    }
    Ok(())
}

/// And they are this release's from there on.
#[tokio::test(start_paused = true)]
async fn pools_of_release_0_3_0_keep_working() -> Result<()> {
    for (name, text) in RECORDINGS {
        let (mut world, pools) = restored(text).await.with_context(|| name.to_owned())?;
        for pool in &pools {
            world.scale(pool, 5);
            reach(&mut world, pool, 5).await.with_context(|| name.to_owned())?;
            world.scale(pool, 1);
            reach(&mut world, pool, 1).await.with_context(|| name.to_owned())?;
            world.delete_machine_pool(pool);
        }
        for pool in &pools {
            world
                .run_until("it is gone", TimeDelta::hours(1), |world| world.is_gone(pool))
                .await
                .with_context(|| name.to_owned())?;
        }
        world.finish()?;
    }
    Ok(())
}
