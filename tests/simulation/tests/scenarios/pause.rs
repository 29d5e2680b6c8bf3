//! Pause: looked at before everything, deletion included.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::{self, PAUSED},
    names::annotations,
};
use capasg_fake_aws::{Service, Tree};
use capasg_simulation::{Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt;

use crate::rollout::run_for_a_while;
use crate::{SOON, reach, running};

#[derive(Debug, Clone, Copy)]
enum How {
    Cluster,
    Annotation,
    DeleteForMove,
}

fn pause(world: &World, pool: &Pool, how: How, paused: bool) {
    let annotation = match how {
        How::Cluster => return world.edit_cluster(|cluster| cluster.spec.paused = Some(paused)),
        How::Annotation => annotations::PAUSED,
        How::DeleteForMove => annotations::DELETE_FOR_MOVE,
    };
    world.edit_pool(pool, |pool| {
        if paused {
            pool.annotations_mut().insert(annotation.to_owned(), String::new());
        } else {
            pool.annotations_mut().remove(annotation);
        }
    });
}

// Rules: F1, F2
// Pains: P24
#[tokio::test(start_paused = true)]
async fn nothing_is_changed_while_paused() -> Result<()> {
    for how in [How::Cluster, How::Annotation, How::DeleteForMove] {
        let (mut world, pool) = running(Setup::default(), 3).await?;
        pause(&world, &pool, how, true);
        world
            .run_until("it is told", SOON, |world| {
                world.condition(&pool, PAUSED).is_some_and(|paused| paused.status == "True")
            })
            .await?;
        let why = world.condition(&pool, PAUSED).context("Paused")?.message;
        let told = |world: &World| {
            world.asg_machines(&pool).values().all(|machine| {
                let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice());
                conditions::get(conditions.unwrap_or_default(), PAUSED)
                    .is_some_and(|paused| paused.status == "True" && paused.message == why)
            })
        };
        world.run_until("its instances say the same", SOON, told).await?;
        let (mark, writes) = (world.mark(), world.journal.len());
        world.scale(&pool, 5);
        world.edit_pool(&pool, |pool| pool.spec.tags = [("team".to_owned(), "a".to_owned())].into());
        world.rotate_token(&pool);
        let victim = world.in_service(&pool).into_iter().next().context("an instance")?;
        world.simulator.kill(&world.scope(), &victim);
        world.run_for(TimeDelta::minutes(30)).await?;
        ensure!(world.mutations_since(mark).is_empty(), "{how:?}: {:?}", world.mutations_since(mark));
        let writes: Vec<String> = world
            .journal
            .since(writes)
            .into_iter()
            .filter(|entry| entry.changed && !entry.what.contains("status"))
            .map(|entry| entry.what)
            .collect();
        ensure!(writes.is_empty(), "{how:?}: {writes:?}");
        pause(&world, &pool, how, false);
        reach(&mut world, &pool, 5).await.with_context(|| format!("{how:?}"))?;
        ensure!(world.condition(&pool, PAUSED).is_some_and(|paused| paused.status == "False"), "told");
        world.finish()?;
    }
    Ok(())
}

// Rules: F1, M3
#[tokio::test(start_paused = true)]
async fn deleting_a_paused_pool_changes_nothing() -> Result<()> {
    for how in [How::Cluster, How::Annotation, How::DeleteForMove] {
        let (mut world, pool) = running(Setup::default(), 2).await?;
        pause(&world, &pool, how, true);
        world.run_for(TimeDelta::seconds(1)).await?;
        let mark = world.mark();
        world.delete_pool(&pool);
        world.run_for(TimeDelta::minutes(30)).await?;
        ensure!(world.mutations_since(mark).is_empty(), "{how:?}: {:?}", world.mutations_since(mark));
        ensure!(world.pool(&pool).is_some_and(|pool| !pool.finalizers().is_empty()), "{how:?}: it is held");
        ensure!(world.in_service(&pool).len() == 2, "all run");
        pause(&world, &pool, how, false);
        world.delete_machine_pool(&pool);
        world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
        ensure!(world.simulator.leftovers(None).is_empty(), "nothing is left");
    }
    Ok(())
}

/// A pause that comes amid a scale-in: what was begun waits.
// Rules: F1
#[tokio::test(start_paused = true)]
async fn a_pause_during_a_scale_in_delays_the_terminations() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 4).await?;
        world.set_drain_seconds(30);
        world.scale(&pool, 2);
        run_for_a_while(&mut world).await?;
        pause(&world, &pool, How::Cluster, true);
        // A reconcile that runs when the pause comes may still end.
        world.run_for(TimeDelta::seconds(1)).await?;
        let mark = world.mark();
        world.run_for(TimeDelta::minutes(10)).await?;
        ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
        pause(&world, &pool, How::Cluster, false);
        reach(&mut world, &pool, 2).await?;
        world.finish()?;
    }
    Ok(())
}

/// An end that the cloud starts meanwhile is completed after the pause, if the hook still holds it.
// Rules: F1
#[tokio::test(start_paused = true)]
async fn a_termination_held_by_the_hook_waits_for_the_end_of_the_pause() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    pause(&world, &pool, How::Cluster, true);
    let id = world.in_service(&pool).into_iter().next().context("an instance")?;
    let params = Tree::new()
        .with("InstanceId", &id)
        .with("HealthStatus", "Unhealthy")
        .with("ShouldRespectGracePeriod", false);
    world.aws(Service::AutoScaling, "SetInstanceHealth", params)?;
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(5)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", world.mutations_since(mark));
    pause(&world, &pool, How::Cluster, false);
    world.run_until("it left", SOON, |world| world.instances(&pool).iter().all(|one| one.id != id)).await?;
    reach(&mut world, &pool, 2).await
}
