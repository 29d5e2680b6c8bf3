//! Somebody else manages replicas through the group's desired capacity (G2): up, down, to zero, the hand-over in both
//! directions, and what may go wrong meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use capasg_api::{conditions::GROUP_READY, names::annotations::REPLICAS_MANAGED_BY};
use capasg_fake_aws::{Effect, Fault, Service, Tree};
use capasg_simulation::{Drain, Pool, Port, Setup, World};
use capasg_test_objects::is_long;
use chrono::TimeDelta;
use kube::ResourceExt;

use crate::{SOON, changing_writes, ended_since, group_params, reach, running, running_with, some_of};

const SCALER: &str = "somebody";

fn hand_over(world: &World, pool: &Pool) {
    world.edit_machine_pool(pool, |own| {
        own.annotations_mut().insert(REPLICAS_MANAGED_BY.to_owned(), SCALER.to_owned());
    });
}

fn take_back(world: &World, pool: &Pool) {
    world.edit_machine_pool(pool, |own| {
        own.annotations_mut().remove(REPLICAS_MANAGED_BY);
    });
}

/// Somebody else's `SetDesiredCapacity`.
fn set(world: &World, pool: &Pool, desired: i64) -> Result<()> {
    let params = group_params(world, pool).with("DesiredCapacity", desired);
    world.aws(Service::AutoScaling, "SetDesiredCapacity", params).map(|_| ())
}

fn replicas(world: &World, pool: &Pool) -> i32 {
    world.machine_pool(pool).map_or(-1, |own| own.replicas())
}

fn managed_by(world: &World, pool: &Pool) -> Option<String> {
    world.pool(pool)?.status.as_ref()?.replicas_managed_by.clone()
}

fn bounds(world: &World, pool: &Pool) -> (i64, i64, i64) {
    world.group(pool).map_or((-1, -1, -1), |group| (group.min, group.max, group.desired))
}

/// Whether everything says this many: group, instances, Machines, the list and the MachinePool.
async fn agree(world: &mut World, pool: &Pool, count: usize) -> Result<()> {
    let wanted = i32::try_from(count)?;
    let what = format!("all agree on {count}");
    world
        .run_until(&what, SOON, |world| replicas(world, pool) == wanted && world.is_running(pool, count))
        .await?;
    world.run_for(TimeDelta::seconds(90)).await?;
    let still = replicas(world, pool) == wanted && world.is_running(pool, count);
    ensure!(still, "did not stay at {count}\n{}", world.describe());
    Ok(())
}

async fn handed_over(setup: Setup, count: i32) -> Result<(World, Pool)> {
    let (mut world, pool) = running(setup, count).await?;
    hand_over(&world, &pool);
    let theirs = |world: &World| {
        managed_by(world, &pool).as_deref() == Some(SCALER) && bounds(world, &pool).1 == 10_000
    };
    world.run_until("it is told, and the bounds are theirs", SOON, theirs).await?;
    Ok((world, pool))
}

/// What the controllers wrote since an entry of the journal that sets or shrinks desired capacity.
fn sized(world: &World, since: usize) -> Vec<String> {
    let writes = world.journal.since(since).into_iter().filter(|entry| entry.port == Port::Cloud);
    let sizes = |what: &str| {
        what.starts_with("SetDesiredCapacity")
            || (what.starts_with("UpdateAutoScalingGroup") && !what.ends_with("desired=None"))
            || what.ends_with("decrement=true")
    };
    writes.map(|entry| entry.what).filter(|what| sizes(what)).collect()
}

fn never_sized(world: &World, since: usize) -> Result<()> {
    let sized = sized(world, since);
    ensure!(sized.is_empty(), "desired capacity is not ours: {sized:?}\n{}", world.describe());
    Ok(())
}

// Rules: G2
#[tokio::test(start_paused = true)]
async fn replicas_follow_a_scale_out_by_another_actor() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 2).await?;
        let begun = world.journal.len();
        hand_over(&world, &pool);
        world.run_until("bounds", SOON, |world| bounds(world, &pool) == (0, 10_000, 2)).await?;
        set(&world, &pool, 5)?;
        agree(&mut world, &pool, 5).await?;
        ensure!(managed_by(&world, &pool).as_deref() == Some(SCALER), "it is told who");
        ensure!(world.says(&pool, GROUP_READY, "True", "GroupReady"), "all is well");
        never_sized(&world, begun)?;
        world.finish()?;
    }
    Ok(())
}

/// What is too many is drained first, and its end does not shrink desired capacity, which is as wished already.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn a_scale_in_by_another_actor_drains_the_excess() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = handed_over(Setup::seed(seed), 5).await?;
        let (begun, mark) = (world.journal.len(), world.mark());
        let before = world.in_service(&pool);
        let machines: BTreeMap<String, String> =
            before.iter().map(|id| Ok((id.clone(), world.machine_of(&pool, id)?))).collect::<Result<_>>()?;
        set(&world, &pool, 3)?;
        agree(&mut world, &pool, 3).await?;
        let ended = ended_since(&world, mark);
        ensure!(ended.len() == 2 && ended.iter().all(|(_, shrinks)| !shrinks), "{ended:?}");
        ensure!(world.in_service(&pool).is_subset(&before), "nothing was launched for what ended");
        for (id, _) in &ended {
            let machine = machines.get(id).context("its Machine")?;
            ensure!(matches!(world.drains(machine)[..], [Drain::Done(_)]), "{machine} was not drained");
        }
        never_sized(&world, begun)?;
        world.finish()?;
    }
    Ok(())
}

// Rules: G2
#[tokio::test(start_paused = true)]
async fn another_actor_scales_a_pool_to_zero_and_back() -> Result<()> {
    let (mut world, pool) = handed_over(Setup::default(), 3).await?;
    let begun = world.journal.len();
    set(&world, &pool, 0)?;
    agree(&mut world, &pool, 0).await?;
    let owner = world.machine_pool(&pool).context("the MachinePool")?;
    ensure!(owner.spec.replicas == Some(0), "zero is written, so that core takes the Nodes away");
    set(&world, &pool, 2)?;
    agree(&mut world, &pool, 2).await?;
    never_sized(&world, begun)?;
    world.finish()
}

/// As the Cluster Autoscaler does in AWS itself: it names the instance, and desired capacity shrinks by it.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn another_actor_terminates_an_instance_by_name() -> Result<()> {
    // The call is somebody else's, which the rules on ours do not cover.
    let (mut world, pool) = handed_over(Setup { watch: false, ..Setup::default() }, 3).await?;
    let begun = world.journal.len();
    let id = world.in_service(&pool).into_iter().next().context("an instance")?;
    let machine = world.machine_of(&pool, &id)?;
    let params = Tree::new().with("InstanceId", &id).with("ShouldDecrementDesiredCapacity", true);
    world.aws(Service::AutoScaling, "TerminateInstanceInAutoScalingGroup", params)?;
    agree(&mut world, &pool, 2).await?;
    ensure!(!world.in_service(&pool).contains(&id), "that one ended");
    ensure!(matches!(world.drains(&machine)[..], [Drain::Done(_)]), "drained: our hook held it");
    never_sized(&world, begun)?;
    world.finish()
}

// Rules: G2
// Pains: P14
#[tokio::test(start_paused = true)]
async fn a_handover_of_replicas_changes_no_capacity() -> Result<()> {
    for seed in 0..10 {
        let (mut world, pool) = running(Setup::seed(seed), 3).await?;
        let before = world.in_service(&pool);
        let mark = world.mark();
        for _ in 0..2 {
            hand_over(&world, &pool);
            world.run_until("theirs", SOON, |world| managed_by(world, &pool).is_some()).await?;
            agree(&mut world, &pool, 3).await?;
            ensure!(bounds(&world, &pool) == (0, 10_000, 3), "{:?}", bounds(&world, &pool));
            take_back(&world, &pool);
            world.run_until("ours", SOON, |world| managed_by(world, &pool).is_none()).await?;
            agree(&mut world, &pool, 3).await?;
            ensure!(bounds(&world, &pool) == (0, 3, 3), "{:?}", bounds(&world, &pool));
        }
        ensure!(world.in_service(&pool) == before, "the same instances run");
        ensure!(ended_since(&world, mark).is_empty(), "nothing ended");
        world.scale(&pool, 4);
        reach(&mut world, &pool, 4).await?;
        world.finish()?;
    }
    Ok(())
}

/// What was set last is not known yet when the annotation goes: replicas are still those of before.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn replicas_handed_back_keep_a_capacity_set_just_before() -> Result<()> {
    for seed in 0..10 {
        for wanted in [5, 2, 0] {
            let (mut world, pool) = handed_over(Setup::seed(seed), 3).await?;
            agree(&mut world, &pool, 3).await?;
            set(&world, &pool, wanted)?;
            let pause = i64::try_from(world.random.below(3))?;
            world.run_for(TimeDelta::milliseconds(pause * 700)).await?;
            take_back(&world, &pool);
            agree(&mut world, &pool, usize::try_from(wanted)?).await?;
            ensure!(managed_by(&world, &pool).is_none(), "ours again");
            ensure!(bounds(&world, &pool) == (0, wanted, wanted), "{:?}", bounds(&world, &pool));
            world.finish()?;
        }
    }
    Ok(())
}

/// A poll has just been when somebody sets another number and the annotation goes: what it showed is not handed back.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn replicas_handed_back_right_after_a_poll_keep_the_capacity() -> Result<()> {
    for tenths in 0..60 {
        let (mut world, pool) = handed_over(Setup { lag_millis: 0, ..Setup::default() }, 3).await?;
        world.run_for(TimeDelta::milliseconds(tenths * 100)).await?;
        set(&world, &pool, 4)?;
        take_back(&world, &pool);
        agree(&mut world, &pool, 4).await?;
        world.finish()?;
    }
    Ok(())
}

/// Replicas that a person edits together with the annotation are a wish.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn replicas_handed_back_with_another_count_scale_the_pool() -> Result<()> {
    for (seed, wanted) in [(1, 1), (2, 5)] {
        let (mut world, pool) = handed_over(Setup::seed(seed), 3).await?;
        agree(&mut world, &pool, 3).await?;
        world.edit_machine_pool(&pool, |own| {
            own.annotations_mut().remove(REPLICAS_MANAGED_BY);
            own.spec.replicas = Some(wanted);
        });
        agree(&mut world, &pool, usize::try_from(wanted)?).await?;
        world.finish()?;
    }
    Ok(())
}

/// A scale-in of ours under way is no wish of somebody else's.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn a_scale_in_in_progress_is_finished_before_the_handover() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 5).await?;
        world.set_drain_seconds(120);
        world.scale(&pool, 2);
        let leaving = |world: &World| world.machines(&pool).values().any(|machine| machine.is_deleting());
        world.run_until("a Machine leaves", SOON, |world| leaving(world)).await?;
        hand_over(&world, &pool);
        agree(&mut world, &pool, 2).await?;
        ensure!(managed_by(&world, &pool).is_some(), "handed over in the end");
        set(&world, &pool, 4)?;
        agree(&mut world, &pool, 4).await?;
        world.finish()?;
    }
    Ok(())
}

// Rules: G2
#[tokio::test(start_paused = true)]
async fn a_pool_can_start_with_externally_managed_replicas() -> Result<()> {
    let mut world = World::new(Setup::default());
    let begun = world.journal.len();
    let pool = world.add_pool_with("workers", 2, |spec| {
        (spec.min_size, spec.max_size) = (Some(1), Some(4));
    });
    hand_over(&world, &pool);
    agree(&mut world, &pool, 2).await?;
    ensure!(bounds(&world, &pool) == (1, 4, 2), "{:?}", bounds(&world, &pool));
    never_sized(&world, begun)?;
    ensure!(set(&world, &pool, 5).is_err(), "AWS keeps to the bounds");
    set(&world, &pool, 4)?;
    agree(&mut world, &pool, 4).await?;
    world.finish()
}

/// Bounds travel alone: AWS itself moves desired capacity into them, and what is then too many is drained.
// Rules: G2, G3
// Pains: P15
#[tokio::test(start_paused = true)]
async fn bounds_come_from_spec_or_annotations_and_aws_keeps_them() -> Result<()> {
    let (mut world, pool) = handed_over(Setup::default(), 4).await?;
    let (begun, mark) = (world.journal.len(), world.mark());
    world.edit_machine_pool(&pool, |own| {
        let annotations = own.annotations_mut();
        let key = "cluster.x-k8s.io/cluster-api-autoscaler-node-group";
        annotations.insert(format!("{key}-min-size"), "2".to_owned());
        annotations.insert(format!("{key}-max-size"), "6".to_owned());
    });
    world.run_until("bounds", SOON, |world| bounds(world, &pool) == (2, 6, 4)).await?;
    world.edit_pool(&pool, |pool| pool.spec.max_size = Some(3));
    agree(&mut world, &pool, 3).await?;
    ensure!(bounds(&world, &pool) == (2, 3, 3), "{:?}", bounds(&world, &pool));
    let ended = ended_since(&world, mark);
    ensure!(ended.len() == 1 && !ended[0].1, "{ended:?}");
    world.edit_pool(&pool, |pool| (pool.spec.min_size, pool.spec.max_size) = (Some(5), Some(8)));
    agree(&mut world, &pool, 5).await?;
    ensure!(bounds(&world, &pool) == (5, 8, 5), "{:?}", bounds(&world, &pool));
    ensure!(world.says(&pool, GROUP_READY, "True", "GroupReady"), "nothing is out of bounds");
    never_sized(&world, begun)?;
    world.finish()
}

// Rules: G1, G2
#[tokio::test(start_paused = true)]
async fn the_annotation_value_false_leaves_replicas_to_the_machine_pool() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 2).await?;
    world.edit_machine_pool(&pool, |own| {
        own.annotations_mut().insert(REPLICAS_MANAGED_BY.to_owned(), "false".to_owned());
    });
    world.scale(&pool, 3);
    reach(&mut world, &pool, 3).await?;
    ensure!(managed_by(&world, &pool).is_none() && bounds(&world, &pool) == (0, 3, 3), "ours");
    world.edit_machine_pool(&pool, |own| {
        own.annotations_mut().insert(REPLICAS_MANAGED_BY.to_owned(), String::new());
    });
    world.run_until("theirs", SOON, |world| managed_by(world, &pool).as_deref() == Some("true")).await?;
    world.finish()
}

/// A person's edit of replicas is undone: the group does not follow them.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn externally_managed_replicas_that_a_user_edits_are_corrected() -> Result<()> {
    let (mut world, pool) = handed_over(Setup::default(), 3).await?;
    let begun = world.journal.len();
    world.edit_machine_pool(&pool, |own| own.spec.replicas = Some(7));
    agree(&mut world, &pool, 3).await?;
    never_sized(&world, begun)?;
    world.finish()
}

/// Nothing is written while paused, and the answer is caught up with afterwards.
// Rules: F1, G2
#[tokio::test(start_paused = true)]
async fn replicas_are_not_written_while_paused() -> Result<()> {
    let (mut world, pool) = handed_over(Setup::default(), 2).await?;
    agree(&mut world, &pool, 2).await?;
    world.edit_cluster(|cluster| cluster.spec.paused = Some(true));
    world.run_for(TimeDelta::minutes(1)).await?;
    set(&world, &pool, 4)?;
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(replicas(&world, &pool) == 2, "nothing is written");
    world.edit_cluster(|cluster| cluster.spec.paused = Some(false));
    agree(&mut world, &pool, 4).await?;
    world.finish()
}

/// An empty answer of AWS says nothing of replicas.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn replicas_are_not_written_from_an_empty_listing() -> Result<()> {
    let (mut world, pool) = handed_over(Setup::default(), 3).await?;
    agree(&mut world, &pool, 3).await?;
    let begun = world.journal.len();
    world.empty_lists(3);
    world.run_for(TimeDelta::minutes(5)).await?;
    agree(&mut world, &pool, 3).await?;
    let written = world.journal.since(begun).into_iter().any(|entry| entry.what.contains("replicas"));
    ensure!(!written, "replicas were written\n{}", world.describe());
    world.finish()
}

/// A lost answer to the bounds, or to an end, is no reason to end more or to size the group.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn lost_replies_terminate_nothing_twice() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = running(Setup::seed(seed), 5).await?;
        let (begun, before) = (world.journal.len(), world.in_service(&pool));
        world.fault(Fault::new("UpdateAutoScalingGroup", Effect::LoseReply));
        world.fault(Fault::new("TerminateInstanceInAutoScalingGroup", Effect::LoseReply));
        hand_over(&world, &pool);
        world.run_until("theirs", SOON, |world| bounds(world, &pool).1 == 10_000).await?;
        set(&world, &pool, 3)?;
        agree(&mut world, &pool, 3).await?;
        let left: BTreeSet<String> = world.in_service(&pool);
        ensure!(left.is_subset(&before), "nothing was launched (seed {seed})");
        never_sized(&world, begun)?;
        world.finish()?;
    }
    Ok(())
}

/// Sizes that change at any moment, with lost answers, kills and hand-overs in between: the last one counts, replicas
/// follow, and we never write it.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn any_scenario_converges_to_the_capacity_set_last() -> Result<()> {
    for seed in 0..if is_long() { 30 } else { 12 } {
        let (mut world, pool) = handed_over(Setup::seed(seed), 3).await?;
        let begun = world.journal.len();
        let mut last = 3;
        for _ in 0..6 {
            match world.random.below(6) {
                0 => world.kill_process(),
                1 => world.fault(Fault::new("TerminateInstanceInAutoScalingGroup", Effect::LoseReply)),
                2 => {
                    let writes = world.random.below(4);
                    world.crash_after(usize::try_from(writes)? + 1);
                }
                3 => world.edit_machine_pool(&pool, |own| own.spec.replicas = Some(9)),
                _ => {}
            }
            last = i64::try_from(world.random.below(7))?;
            set(&world, &pool, last)?;
            let pause = i64::try_from(world.random.below(90))?;
            world.run_for(TimeDelta::seconds(pause)).await?;
        }
        agree(&mut world, &pool, usize::try_from(last)?).await.with_context(|| format!("seed {seed}"))?;
        never_sized(&world, begun).with_context(|| format!("seed {seed}"))?;
        world.finish()?;
    }
    Ok(())
}

/// A kill after each write of a life that is handed over, scaled, and taken back.
// Rules: G2
#[tokio::test(start_paused = true)]
async fn externally_managed_replicas_survive_a_crash_after_any_write() -> Result<()> {
    async fn life(world: &mut World) -> Result<()> {
        world.set_drain_seconds(5);
        let pool = world.add_pool("workers", 2);
        world.run_until("2 run", SOON, |world| world.is_running(&pool, 2)).await?;
        hand_over(world, &pool);
        world.run_until("theirs", SOON, |world| bounds(world, &pool) == (0, 10_000, 2)).await?;
        for wanted in [4, 1] {
            set(world, &pool, wanted)?;
            agree(world, &pool, usize::try_from(wanted)?).await?;
        }
        set(world, &pool, 3)?;
        take_back(world, &pool);
        agree(world, &pool, 3).await?;
        ensure!(managed_by(world, &pool).is_none(), "ours again");
        world.finish()
    }
    let mut world = World::new(Setup::default());
    life(&mut world).await?;
    let changing = changing_writes(&world, 0);
    ensure!(changing.len() > 20, "only {} writes", changing.len());
    for write in some_of(changing, 3) {
        let mut world = World::new(Setup::default());
        world.crash_after(write);
        life(&mut world).await.with_context(|| format!("crash after write {write}"))?;
    }
    Ok(())
}

// Rules: G2
#[tokio::test(start_paused = true)]
async fn an_idle_externally_managed_pool_writes_nothing() -> Result<()> {
    let (mut world, pool) = running_with(Setup::default(), 2, |spec| spec.max_size = Some(9)).await?;
    hand_over(&world, &pool);
    agree(&mut world, &pool, 2).await?;
    let (begun, mark) = (world.journal.len(), world.mark());
    world.run_for(TimeDelta::minutes(30)).await?;
    ensure!(world.journal.len() == begun, "{:?}", world.journal.since(begun));
    ensure!(world.mutations_since(mark).is_empty(), "nothing to do, nothing written");
    world.finish()
}

fn set_image(world: &World, pool: &Pool, id: &str) {
    world.edit_pool(pool, |own| own.spec.machine.image.id = Some(id.to_owned()));
}

/// Whether every instance in service is made from the image.
fn all_from(world: &World, pool: &Pool, image: &str) -> bool {
    world.instances(pool).iter().all(|one| one.image == image)
}

/// Outdated instances are replaced one by one, drained, and desired capacity stays what somebody else made it.
// Rules: G2, H3
// Pains: P41
#[tokio::test(start_paused = true)]
async fn a_rollout_of_an_externally_managed_pool_has_no_surge() -> Result<()> {
    for seed in 0..5 {
        let (mut world, pool) = handed_over(Setup::seed(seed), 3).await?;
        let (begun, mark) = (world.journal.len(), world.mark());
        set_image(&world, &pool, "ami-0b1c2d3e");
        for _ in 0..90 {
            world.run_for(TimeDelta::seconds(5)).await?;
            let group = world.group(&pool).context("the group")?;
            ensure!(group.desired == 3, "desired capacity became {}", group.desired);
            ensure!(replicas(&world, &pool) == 3, "replicas became {}", replicas(&world, &pool));
            ensure!(world.in_service(&pool).len() >= 2, "more than one was missing (seed {seed})");
        }
        agree(&mut world, &pool, 3).await?;
        ensure!(all_from(&world, &pool, "ami-0b1c2d3e"), "not all were replaced\n{}", world.describe());
        let ended = ended_since(&world, mark);
        ensure!(ended.len() == 3 && ended.iter().all(|(_, shrinks)| !shrinks), "{ended:?}");
        never_sized(&world, begun)?;
        world.finish()?;
    }
    Ok(())
}

/// A surge under way is given back before anybody takes desired capacity for their wish.
// Rules: G2, H3
#[tokio::test(start_paused = true)]
async fn a_surge_is_never_written_to_replicas() -> Result<()> {
    for seed in 0..8 {
        let (mut world, pool) = running_with(Setup::seed(seed), 3, |spec| spec.max_size = Some(4)).await?;
        world.set_drain_seconds(60);
        set_image(&world, &pool, "ami-0b1c2d3e");
        world
            .run_until("a surge", SOON, |world| world.group(&pool).is_some_and(|group| group.desired == 4))
            .await?;
        let pause = i64::try_from(world.random.below(40))?;
        world.run_for(TimeDelta::seconds(pause)).await?;
        if seed % 2 == 0 {
            world.kill_process();
        }
        hand_over(&world, &pool);
        for _ in 0..120 {
            world.run_for(TimeDelta::seconds(5)).await?;
            ensure!(
                replicas(&world, &pool) == 3,
                "a surge was written back (seed {seed})\n{}",
                world.describe()
            );
        }
        agree(&mut world, &pool, 3).await?;
        ensure!(managed_by(&world, &pool).is_some(), "handed over in the end");
        ensure!(all_from(&world, &pool, "ami-0b1c2d3e"), "and rolled out");
        world.finish()?;
    }
    Ok(())
}
