//! A pool that AWS cannot launch for says why and what to do, and heals without a trace, however often the manager dies.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use capasg_api::{ASGMachinePool, conditions::SCALING_HEALTHY, pool::LaunchFailureStatus};
use capasg_e2e::{END, Rig, Setup, condition, rule};
use capasg_environment::Look;

/// Launches fail at once, but why is read only after instances have lacked for a while.
const TOLD: Duration = Duration::from_mins(2);

fn told(pool: &ASGMachinePool) -> (String, String) {
    let all = pool.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let message = all.iter().find(|one| one.type_ == SCALING_HEALTHY).map(|one| one.message.clone());
    (condition(all, SCALING_HEALTHY), message.unwrap_or_default())
}

/// Waits until the pool tells that some of `all` lack, and why.
async fn failing(rig: &Rig<'_>, running: usize, all: usize) -> Result<LaunchFailureStatus> {
    let begins = format!(
        "{running} of {all} instances are in service; AWS reports \"We currently do not have sufficient \
         m7i.large capacity"
    );
    rig.pool_until("workers", TOLD, |pool| {
        let (state, message) = told(pool);
        let last = pool.status.as_ref().and_then(|status| status.last_launch_failure.clone());
        let here = state == "False/InsufficientCapacity"
            && message.starts_with(&begins)
            && message.contains("(m7i.large in ")
            && message.ends_with("Add an instance type or a subnet, or wait for capacity.");
        Look::from_option(last.filter(|_| here), format!("{state} {message}"))
    })
    .await
}

async fn healed(rig: &Rig<'_>) -> Result<()> {
    rig.pool_until("workers", TOLD, |pool| {
        let (state, message) = told(pool);
        Look::when(state == "True/ScalingHealthy" && message.is_empty(), format!("{state} {message}"))
    })
    .await
}

// Pains: P46, W23
#[tokio::test]
#[ignore = "long form: the simulation shows it as well"]
async fn a_launch_failure_is_reported_and_recovers_through_kills() -> Result<()> {
    rule("launch-failure", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        let simulator = rig.scenario.simulator();
        let scope = rig.scenario.scope();
        rig.through_kills("launch-failure", 3, async {
            for (running, all) in [(2, 4), (4, 6)] {
                simulator.set_capacity(&scope, "m7i.large", "*", Some(running));
                rig.scale("workers", all).await?;
                let last = failing(rig, running, all).await?;
                ensure!(last.reason == "InsufficientCapacity", "{last:?}");
                ensure!(last.instance_type.as_deref() == Some("m7i.large"), "{last:?}");
                ensure!(rig.group()?.desired == i64::try_from(all)?, "AWS goes on trying");
                simulator.set_capacity(&scope, "m7i.large", "*", None);
                rig.running("workers", all).await?;
                healed(rig).await?;
            }
            anyhow::Ok(())
        })
        .await?;
        ensure!(rig.calls_of(END).is_empty(), "nothing was ended for it");
        let pool = rig.pools().get("workers").await?;
        let last =
            pool.status.and_then(|status| status.last_launch_failure).context("the last failure stays")?;
        ensure!(last.message.contains("sufficient m7i.large capacity"), "{last:?}");
        let events = rig.scenario.kubectl(&["get", "events", "--output=jsonpath={.items[*].reason}"]).await?;
        ensure!(events.contains("LaunchFailed"), "{events}");
        rig.delete("workers").await
    })
    .await
}
