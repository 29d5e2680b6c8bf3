//! AWS throttles, fails, loses replies and shows old states; the API server refuses and fails; caches lag.

use anyhow::{Context, Result, ensure};
use capasg_api::{
    conditions::{GROUP_READY, LAUNCH_TEMPLATE_READY},
    pool::SecurityGroupSelector,
};
use capasg_fake_aws::{Effect, Fault, Settings};
use capasg_simulation::{Kind, Lag, Pool, Setup, World};
use chrono::TimeDelta;

use crate::{SOON, ended_since, reach, running};

/// Every operation that a pool's life needs.
const CALLS: [&str; 18] = [
    "DescribeAutoScalingGroups",
    "DescribeInstances",
    "DescribeLaunchTemplates",
    "DescribeLaunchTemplateVersions",
    "DescribeLifecycleHooks",
    "DescribeSubnets",
    "DescribeImages",
    "DescribeScalingActivities",
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "CreateAutoScalingGroup",
    "UpdateAutoScalingGroup",
    "SetDesiredCapacity",
    "SuspendProcesses",
    "TerminateInstanceInAutoScalingGroup",
    "CompleteLifecycleAction",
    "DeleteAutoScalingGroup",
    "DeleteLaunchTemplate",
];

/// Create, grow, shrink, change, delete; the pool must be right at each stop and nothing be left at the end.
async fn life(world: &mut World) -> Result<()> {
    let pool = world.add_pool("workers", 2);
    settle(world, &pool, 2).await?;
    world.scale(&pool, 4);
    settle(world, &pool, 4).await?;
    world.rotate_token(&pool);
    world.scale(&pool, 2);
    settle(world, &pool, 2).await?;
    let dump = world.dump();
    ensure!(
        dump.groups.len() == 1 && dump.templates.len() == 1,
        "one group, one template\n{}",
        world.describe()
    );
    world.delete_machine_pool(&pool);
    world.run_until("everything is gone", SOON, |world| world.is_gone(&pool)).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let left = world.simulator.leftovers(None);
    ensure!(left.is_empty(), "left in the cloud: {left:?}\n{}", world.describe());
    world.finish()
}

async fn settle(world: &mut World, pool: &Pool, replicas: usize) -> Result<()> {
    world.run_until(&format!("{replicas} running"), SOON, |world| world.is_running(pool, replicas)).await
}

async fn life_with(fault: impl Fn(&str) -> Fault) -> Result<()> {
    for call in CALLS {
        for skip in [0, 1] {
            let mut world = World::new(Setup::seed(skip.into()));
            let fault = fault(call).after(skip);
            world.fault(fault.clone());
            life(&mut world).await.with_context(|| format!("{fault:?}"))?;
        }
    }
    Ok(())
}

// Pains: P50, W17
#[tokio::test(start_paused = true)]
async fn throttling_only_delays() -> Result<()> {
    life_with(|call| Fault::error(call, 400, "Throttling", "Rate exceeded").times(Some(5))).await
}

#[tokio::test(start_paused = true)]
async fn temporary_errors_of_aws_are_retried() -> Result<()> {
    life_with(|call| Fault::error(call, 500, "InternalFailure", "We encountered an error").times(Some(3)))
        .await
}

#[tokio::test(start_paused = true)]
async fn a_pool_survives_any_lost_reply() -> Result<()> {
    life_with(|call| Fault::new(call, Effect::LoseReply)).await
}

#[tokio::test(start_paused = true)]
async fn a_pool_survives_any_lost_request() -> Result<()> {
    life_with(|call| Fault::new(call, Effect::LoseRequest)).await
}

#[tokio::test(start_paused = true)]
async fn a_pool_survives_any_call_that_takes_effect_late() -> Result<()> {
    life_with(|call| Fault::new(call, Effect::ApplyLate { after_millis: 12_000 })).await
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_never_answered_time_out() -> Result<()> {
    for calls in [1, 3, 8] {
        for wait in [0, 60, 130] {
            let mut world = World::new(Setup::seed(wait));
            let pool = world.add_pool("workers", 2);
            world.run_for(TimeDelta::seconds(i64::try_from(wait)?)).await?;
            world.hang(calls);
            settle(&mut world, &pool, 2).await?;
            world.scale(&pool, 1);
            settle(&mut world, &pool, 1).await?;
            world.finish()?;
        }
    }
    Ok(())
}

/// A look-up that fails is no reason to change what runs, and is made good without anybody's help.
#[tokio::test(start_paused = true)]
async fn a_failed_lookup_changes_nothing() -> Result<()> {
    for call in ["DescribeSubnets", "DescribeSecurityGroups", "DescribeImages", "GetParameter"] {
        let tagged = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
        let mut world = World::new(Setup::default());
        let pool = world.add_pool_with("workers", 2, |spec| {
            spec.subnets[0].id = None;
            spec.subnets[0].tags = Some(tagged("kubernetes.io/role/internal-elb", "1"));
            spec.machine.security_groups = vec![SecurityGroupSelector {
                tags: Some(tagged("Name", "nodes")),
                ..SecurityGroupSelector::default()
            }];
            spec.machine.image.id = None;
            spec.machine.image.ssm_parameter = Some("/images/node/v{version}".to_owned());
        });
        world.edit_machine_pool(&pool, |own| {
            own.spec.failure_domains = vec!["eu-west-1a".to_owned(), "eu-west-1b".to_owned()];
        });
        settle(&mut world, &pool, 2).await?;
        world.run_for(TimeDelta::minutes(2)).await?;
        let mark = world.mark();
        for skip in [0, 1] {
            world.fault(
                Fault::error(call, 500, "InternalError", "An internal error has occurred")
                    .after(skip)
                    .times(Some(4)),
            );
            world.kill_process();
            // The pinned image requires no parameter.
            if skip == 0 && call != "GetParameter" {
                let is_told = |world: &World| {
                    let conditions = [GROUP_READY, LAUNCH_TEMPLATE_READY];
                    conditions.iter().any(|one| world.says(&pool, one, "Unknown", "InternalError"))
                };
                world.run_until("it is reported", SOON, is_told).await?;
            }
            world.run_for(TimeDelta::minutes(20)).await?;
            let made: Vec<String> = world.mutations_since(mark).into_iter().map(|call| call.action).collect();
            ensure!(made.is_empty(), "{call} failed, so {made:?}");
        }
        world.simulator.clear_faults(None);
        world.scale(&pool, 3);
        reach(&mut world, &pool, 3).await?;
    }
    Ok(())
}

/// Views that are seconds old and may go back in time.
#[tokio::test(start_paused = true)]
async fn stale_reads_of_aws_cause_no_wrong_call() -> Result<()> {
    for seed in 0..10 {
        for read_lag_jitter in [false, true] {
            let settings = Settings { read_lag_millis: 4_000, read_lag_jitter, ..Settings::default() };
            let mut world = World::new(Setup { settings, ..Setup::seed(seed) });
            life(&mut world).await.with_context(|| format!("seed {seed}, jitter {read_lag_jitter}"))?;
            // A view that does not show what was just done is no reason to do it again and again.
            let writes = world.mutations_since(0).len();
            ensure!(writes < 60, "{writes} writes in the life of one pool (seed {seed})");
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn lagging_caches_cause_no_wrong_call() -> Result<()> {
    for seed in 0..10 {
        let mut world = World::new(Setup { lag_millis: 3_000, ..Setup::seed(seed) });
        life(&mut world).await.with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

/// One cache stands still while the others go on, for a while.
#[tokio::test(start_paused = true)]
async fn a_stalled_cache_causes_no_wrong_call() -> Result<()> {
    for kind in Kind::ALL {
        for seed in 0..4 {
            let (mut world, pool) = running(Setup::seed(seed), 4).await?;
            let mark = world.mark();
            world.scale(&pool, 2);
            let wait = i64::try_from(world.random.below(2_000))?;
            world.run_for(TimeDelta::milliseconds(wait)).await?;
            world.api.set_lag(kind, Lag { millis: 20, frozen: true });
            world.run_for(TimeDelta::minutes(5)).await?;
            world.api.set_lag(kind, Lag { millis: 20, frozen: false });
            reach(&mut world, &pool, 2)
                .await
                .with_context(|| format!("{kind:?} stood still, seed {seed}"))?;
            let ended = ended_since(&world, mark);
            ensure!(ended.len() == 2, "{} ended instead of 2 ({kind:?}, seed {seed})", ended.len());
            world.finish()?;
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_failures_of_the_api_server_are_retried() -> Result<()> {
    for seed in 0..10 {
        let mut world = World::new(Setup::seed(seed));
        let pool = world.add_pool("workers", 3);
        for target in [5, 2, 4] {
            for _ in 0..6 {
                let pause = i64::try_from(world.random.below(20))?;
                world.run_for(TimeDelta::seconds(pause)).await?;
                if world.random.chance(50) {
                    world.api.add_conflicts(3);
                } else {
                    world.api.add_failures(3);
                }
            }
            world.scale(&pool, target);
            reach(&mut world, &pool, usize::try_from(target)?)
                .await
                .with_context(|| format!("seed {seed}"))?;
        }
        world.finish()?;
    }
    Ok(())
}

/// Core is down for a while: nothing ends undrained, and all is made good when it is back.
// Rules: D9
#[tokio::test(start_paused = true)]
async fn nothing_is_terminated_while_core_is_down() -> Result<()> {
    let (mut world, pool) = running(Setup::default(), 4).await?;
    let mark = world.mark();
    world.stop_core(true);
    world.scale(&pool, 2);
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(ended_since(&world, mark).is_empty(), "nothing ends before core has drained");
    world.stop_core(false);
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

/// The same seed gives the same run: nothing but the seed decides.
#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_run() -> Result<()> {
    let run = async |seed| -> Result<Vec<capasg_simulation::Entry>> {
        let mut world = World::new(Setup::seed(seed));
        life(&mut world).await?;
        Ok(world.journal.since(0))
    };
    ensure!(run(7).await? == run(7).await?, "two runs of one seed differ");
    ensure!(run(7).await? != run(8).await?, "the seed decides nothing");
    Ok(())
}

/// The cache still shows the pool as it was before it was provisioned, and AWS lists no group for a while.
// Rules: B8
#[tokio::test(start_paused = true)]
async fn a_pool_with_a_stalled_cache_stays_provisioned() -> Result<()> {
    let mut world = World::new(Setup::default());
    let pool = world.add_pool("workers", 2);
    let is_ready = |world: &World| world.pool(&pool).and_then(|own| Some(own.status.as_ref()?.ready));
    world.run_until("a status is told", SOON, |world| is_ready(world) == Some(false)).await?;
    world.freeze(Kind::Pool, true);
    world.run_for(TimeDelta::minutes(2)).await?;
    ensure!(is_ready(&world) == Some(true), "{:?}", world.pool(&pool));
    world.empty_lists(3);
    world.run_for(TimeDelta::minutes(3)).await?;
    ensure!(is_ready(&world) == Some(true), "{:?}", world.pool(&pool));
    world.freeze(Kind::Pool, false);
    settle(&mut world, &pool, 2).await?;
    world.finish()
}

/// The group cannot be created at first, and later cannot be read; meanwhile processes die.
// Rules: B5, B8
#[tokio::test(start_paused = true)]
async fn a_pool_is_ready_once_its_group_exists_and_stays_ready_under_faults() -> Result<()> {
    let mut world = World::new(Setup::default());
    let create = Fault::error("CreateAutoScalingGroup", 500, "InternalFailure", "We encountered an error");
    world.fault(create.times(Some(4)));
    let pool = world.add_pool("workers", 2);
    let fields = |world: &World| {
        let own = world.pool(&pool)?;
        let status = own.status.as_ref()?;
        Some((status.ready, status.initialization.provisioned))
    };
    world
        .run_until("the template exists and a status is told", SOON, |world| {
            world.has_template(&pool) && fields(world).is_some()
        })
        .await?;
    ensure!(world.group(&pool).is_none() && fields(&world) == Some((false, false)), "{}", world.describe());
    world.kill_process();
    settle(&mut world, &pool, 2).await?;
    ensure!(fields(&world) == Some((true, true)), "{}", world.describe());

    for call in ["DescribeAutoScalingGroups", "DescribeInstances", "DescribeLaunchTemplateVersions"] {
        world.fault(Fault::error(call, 500, "InternalFailure", "We encountered an error").times(Some(30)));
        world.run_for(TimeDelta::minutes(1)).await?;
        world.kill_process();
        world.run_for(TimeDelta::minutes(2)).await?;
        ensure!(fields(&world) == Some((true, true)), "{call}: {}", world.describe());
    }
    settle(&mut world, &pool, 2).await?;
    world.finish()
}
