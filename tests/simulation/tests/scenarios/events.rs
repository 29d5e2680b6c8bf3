//! Events: what a queue makes quicker, what it tells alone, and that nothing depends on it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{self, EVENT_QUEUE_READY, READY, TERMINATION_PENDING, UP_TO_DATE},
    names::annotations::REPLICAS_MANAGED_BY,
    pool::{InstancesDistribution, RebalanceRecommendationPolicy, Rollout, RolloutMode},
};
use capasg_fake_aws::{DEFAULT_ACCOUNT, Service, Settings, Tree};
use capasg_simulation::{Drain, Pool, Setup, World};
use chrono::{DateTime, TimeDelta, Utc};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::{SOON, ended_since, group_params, reach, running, running_with};

/// From an event to what comes of it.
const AT_ONCE: TimeDelta = TimeDelta::seconds(3);

fn fed(seed: u64) -> Setup {
    Setup { seed, events: true, ..Setup::default() }
}

/// All of it on Spot.
fn spot(spec: &mut ASGMachinePoolSpec) {
    spec.instances_distribution = Some(InstancesDistribution {
        on_demand_percentage_above_base_capacity: Some(0),
        ..InstancesDistribution::default()
    });
}

/// Somebody puts a message into the queue: what AWS itself would send, or what it never would.
fn send(world: &World, source: &str, kind: &str, detail: &Value) -> Result<()> {
    let url = world.aws(Service::Sqs, "GetQueueUrl", Tree::new().with("QueueName", "capasg"))?;
    let url = url.text_of("QueueUrl").context("no URL")?.to_owned();
    let event = json!({
        "version": "0", "id": "1", "detail-type": kind, "source": source, "account": DEFAULT_ACCOUNT,
        "time": world.now(), "region": world.scope().region, "resources": [], "detail": detail,
    });
    let message = Tree::new().with("QueueUrl", url).with("MessageBody", event.to_string());
    world.aws(Service::Sqs, "SendMessage", message).map(|_| ())
}

fn one_of(world: &World, pool: &Pool) -> Result<(String, String)> {
    let id = world.in_service(pool).into_iter().next().context("an instance")?;
    let machine = world.machine_of(pool, &id)?;
    Ok((id, machine))
}

fn is_leaving(world: &World, pool: &Pool, machine: &str) -> bool {
    world.machines(pool).get(machine).is_none_or(|one| one.metadata.deletion_timestamp.is_some())
}

fn drained_at(world: &World, machine: &str) -> Result<DateTime<Utc>> {
    match world.drains(machine)[..] {
        [Drain::Done(at)] => Ok(at),
        ref drains => anyhow::bail!("not drained once: {drains:?}\n{}", world.describe()),
    }
}

fn told(world: &World, pool: &Pool, machine: &str, condition: &str) -> Option<(String, String)> {
    let machine = world.asg_machines(pool).get(machine)?.status.clone()?;
    conditions::get(&machine.conditions, condition).map(|one| (one.status.clone(), one.reason.clone()))
}

/// Somebody makes the group replace an instance; returns when our hook holds it.
async fn begin_replacement(world: &mut World, pool: &Pool, id: &str) -> Result<()> {
    let params = Tree::new()
        .with("InstanceId", id)
        .with("HealthStatus", "Unhealthy")
        .with("ShouldRespectGracePeriod", false);
    world.aws(Service::AutoScaling, "SetInstanceHealth", params)?;
    let held = |world: &World| {
        let state = world.instances(pool).into_iter().find(|one| one.id == id)?.lifecycle_state;
        (state.as_deref() == Some("Terminating:Wait")).then_some(())
    };
    world.run_until("it is held", SOON, |world| held(world).is_some()).await
}

// Pains: P17, P20, W18
#[tokio::test(start_paused = true)]
async fn an_interrupted_spot_instance_is_drained_from_its_warning_on() -> Result<()> {
    for seed in 0..4 {
        let (mut world, pool) = running_with(fed(seed), 3, spot).await?;
        world.set_drain_seconds(40);
        let (id, machine) = one_of(&world, &pool)?;
        let (mark, warned) = (world.mark(), world.now());
        world.interrupt(&id);
        world.run_until("the drain begins", AT_ONCE, |world| is_leaving(world, &pool, &machine)).await?;
        world.run_for(TimeDelta::seconds(5)).await?;
        let pending = told(&world, &pool, &machine, TERMINATION_PENDING);
        ensure!(pending == Some(("True".into(), "SpotInterruption".into())), "{pending:?}");
        world
            .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
            .await?;
        let drained = drained_at(&world, &machine)?;
        ensure!(drained - warned < TimeDelta::seconds(60), "drained long before it ended");
        reach(&mut world, &pool, 3).await?;
        // Its replacement was launched meanwhile, so that it leaves without another.
        ensure!(ended_since(&world, mark) == [(id, true)], "{:?}", ended_since(&world, mark));
        world.finish()?;
    }
    Ok(())
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_drain_that_outlasts_the_spot_warning_ends_with_the_machine() -> Result<()> {
    let (mut world, pool) = running_with(fed(1), 3, spot).await?;
    let (id, machine) = one_of(&world, &pool)?;
    world.block_drain(&machine, true);
    world.interrupt(&id);
    world
        .run_until("its Machine is gone", TimeDelta::minutes(4), |world| {
            !world.machines(&pool).contains_key(&machine)
        })
        .await?;
    reach(&mut world, &pool, 3).await
}

// Pains: P17, W8
#[tokio::test(start_paused = true)]
async fn a_spot_warning_survives_a_crash_after_any_write() -> Result<()> {
    for writes in 1..9 {
        let (mut world, pool) = running_with(fed(writes as u64), 3, spot).await?;
        world.set_drain_seconds(20);
        let (id, machine) = one_of(&world, &pool)?;
        let mark = world.mark();
        world.crash_after(writes);
        world.interrupt(&id);
        world
            .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
            .await?;
        drained_at(&world, &machine).with_context(|| format!("after {writes} writes"))?;
        // Whoever comes next knows that another was launched in its place, or has it launched.
        let ends = ended_since(&world, mark);
        ensure!(ends == [(id, true)], "after {writes} writes: {ends:?}");
        reach(&mut world, &pool, 3).await?;
        ensure!(world.simulator.messages(&world.scope()) == 0, "all messages are deleted in the end");
        world.finish()?;
    }
    Ok(())
}

// Rules: D11
// Pains: P32
#[tokio::test(start_paused = true)]
async fn an_instance_terminated_in_ec2_has_its_machine_deleted_at_once() -> Result<()> {
    for seed in 0..4 {
        let (mut world, pool) = running(fed(seed), 3).await?;
        let (id, machine) = one_of(&world, &pool)?;
        world.block_drain(&machine, true);
        world.simulator.kill(&world.scope(), &id);
        // Its group finds out 10 s later.
        world.run_until("it goes", AT_ONCE, |world| is_leaving(world, &pool, &machine)).await?;
        world
            .run_until("its Machine is gone", SOON, |world| !world.machines(&pool).contains_key(&machine))
            .await?;
        ensure!(
            world.drains(&machine) == [Drain::Skipped("the annotation says so")],
            "{:?}",
            world.drains(&machine)
        );
        reach(&mut world, &pool, 3).await?;
        world.finish()?;
    }
    Ok(())
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_rebalance_recommendation_is_followed_if_the_spec_says_so() -> Result<()> {
    for (policy, follows) in [(None, false), (Some(RebalanceRecommendationPolicy::Replace), true)] {
        let edit = |spec: &mut ASGMachinePoolSpec| {
            spot(spec);
            spec.rebalance_recommendation_policy = policy;
        };
        let (mut world, pool) = running_with(fed(2), 3, edit).await?;
        let (id, machine) = one_of(&world, &pool)?;
        let mark = world.mark();
        world.recommend(&id);
        // EC2 may recommend it right after the launch, and would again for what replaces it.
        world.run_for(TimeDelta::minutes(8)).await?;
        ensure!(world.in_service(&pool).contains(&id), "it is not replaced yet\n{}", world.describe());
        let end = world.now() + TimeDelta::minutes(20);
        let mut least = 3;
        while world.now() < end {
            world.run_for(TimeDelta::seconds(2)).await?;
            least = least.min(world.in_service(&pool).len());
        }
        ensure!(least == 3, "{least} in service: the replacement comes first");
        ensure!(world.is_running(&pool, 3), "{}", world.describe());
        if follows {
            ensure!(!world.in_service(&pool).contains(&id), "it was replaced");
            drained_at(&world, &machine)?;
            ensure!(ended_since(&world, mark) == [(id, true)], "{:?}", ended_since(&world, mark));
        } else {
            ensure!(ended_since(&world, mark).is_empty() && world.in_service(&pool).contains(&id));
            let up_to_date = told(&world, &pool, &machine, UP_TO_DATE);
            ensure!(up_to_date.is_some_and(|(status, _)| status == "True"));
        }
        world.finish()?;
    }
    Ok(())
}

// Pains: P17
#[tokio::test(start_paused = true)]
async fn an_instance_that_aws_will_retire_is_replaced() -> Result<()> {
    let (mut world, pool) = running(fed(3), 3).await?;
    let (id, machine) = one_of(&world, &pool)?;
    world.retire(&id);
    world.run_until("it goes", SOON, |world| is_leaving(world, &pool, &machine)).await?;
    let reason = told(&world, &pool, &machine, UP_TO_DATE).map(|(_, reason)| reason);
    ensure!(reason.as_deref() == Some("RetirementScheduled"), "{reason:?}");
    reach(&mut world, &pool, 3).await?;
    drained_at(&world, &machine)?;
    world.finish()
}

/// A policy that needs events is reported as idle without a queue, and without the policy nothing is.
#[tokio::test(start_paused = true)]
async fn a_policy_that_no_queue_serves_is_reported() -> Result<()> {
    let replace = |spec: &mut ASGMachinePoolSpec| {
        spec.rebalance_recommendation_policy = Some(RebalanceRecommendationPolicy::Replace);
    };
    let (mut world, pool) = running_with(Setup::default(), 1, replace).await?;
    let told = world.condition(&pool, EVENT_QUEUE_READY).context("no condition")?;
    ensure!((told.status.as_str(), told.reason.as_str()) == ("False", "NoEventQueue"), "{told:?}");
    ensure!(told.message.contains("rebalanceRecommendationPolicy"), "{}", told.message);
    ensure!(world.says(&pool, READY, "True", "Ready"), "the pool itself is as its spec demands");
    world.edit_pool(&pool, |pool| pool.spec.rebalance_recommendation_policy = None);
    world
        .run_until("nothing is required", SOON, |world| {
            world.says(&pool, EVENT_QUEUE_READY, "True", "NotRequired")
        })
        .await?;
    world.finish()?;

    let (mut world, pool) = running_with(fed(5), 1, replace).await?;
    world
        .run_until("events arrive", SOON, |world| {
            world.says(&pool, EVENT_QUEUE_READY, "True", "EventQueueReady")
        })
        .await?;
    world.finish()
}

/// Whoever may write to the queue can say anything; EC2 knows which instances it takes back.
// Pains: P17, W18
#[tokio::test(start_paused = true)]
async fn a_spot_warning_about_an_on_demand_instance_is_ignored() -> Result<()> {
    for seed in 0..4 {
        let edit = |spec: &mut ASGMachinePoolSpec| {
            spec.rebalance_recommendation_policy = Some(RebalanceRecommendationPolicy::Replace);
        };
        let (mut world, pool) = running_with(fed(seed), 3, edit).await?;
        let (mark, writes) = (world.mark(), world.journal.len());
        for id in world.in_service(&pool) {
            for kind in ["EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"] {
                send(&world, "aws.ec2", kind, &json!({"instance-id": id, "instance-action": "terminate"}))?;
            }
        }
        if seed > 1 {
            // The successor knows no machine yet.
            world.crash_before_call(1);
        }
        world.run_for(TimeDelta::minutes(5)).await?;
        ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));
        ensure!(ended_since(&world, mark).is_empty() && world.is_running(&pool, 3), "{}", world.describe());
        ensure!(world.simulator.messages(&world.scope()) == 0, "all messages are deleted");
        world.finish()?;
    }
    Ok(())
}

/// What was reported of a retirement is what remembers it, and must not outlive it.
// Pains: P17
#[tokio::test(start_paused = true)]
async fn a_retirement_that_aws_closes_is_withdrawn() -> Result<()> {
    for restart in [false, true] {
        let edit = |spec: &mut ASGMachinePoolSpec| {
            spec.rollout = Some(Rollout { mode: Some(RolloutMode::Paused), ..Rollout::default() });
        };
        let (mut world, pool) = running_with(fed(8), 3, edit).await?;
        let (id, machine) = one_of(&world, &pool)?;
        let is = |world: &World, wanted: &str| {
            told(world, &pool, &machine, UP_TO_DATE).is_some_and(|(_, reason)| reason == wanted)
        };
        world.retire(&id);
        world.run_until("it is told", AT_ONCE, |world| is(world, "RetirementScheduled")).await?;
        if restart {
            world.crash_before_call(1);
            world.run_for(TimeDelta::minutes(10)).await?;
            ensure!(is(&world, "RetirementScheduled"), "the successor knows");
        }
        let detail = json!({
            "service": "EC2",
            "eventTypeCode": "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
            "eventTypeCategory": "scheduledChange",
            "statusCode": "closed",
            "affectedEntities": [{"entityValue": id}],
        });
        send(&world, "aws.health", "AWS Health Event", &detail)?;
        world.run_until("it is taken back", AT_ONCE, |world| is(world, "UpToDate")).await?;
        world.run_for(TimeDelta::minutes(40)).await?;
        ensure!(is(&world, "UpToDate") && world.in_service(&pool).contains(&id), "for good");
        world.finish()?;
    }
    Ok(())
}

/// A rollout that goes on at some other time must not keep a replacement back that is needed now.
// Pains: P17, W18
#[tokio::test(start_paused = true)]
async fn an_interrupted_instance_is_replaced_in_a_paused_rollout() -> Result<()> {
    let edit = |spec: &mut ASGMachinePoolSpec| {
        spot(spec);
        spec.rollout = Some(Rollout { mode: Some(RolloutMode::Paused), ..Rollout::default() });
    };
    let (mut world, pool) = running_with(fed(9), 3, edit).await?;
    world.edit_pool(&pool, |own| own.spec.machine.image.id = Some("ami-0b1c2d3e".to_owned()));
    world.run_for(TimeDelta::minutes(2)).await?;
    let (id, machine) = one_of(&world, &pool)?;
    let outdated = told(&world, &pool, &machine, UP_TO_DATE).map(|(_, reason)| reason);
    ensure!(outdated.as_deref() == Some("ImageChanged"), "{outdated:?}");
    let mark = world.mark();
    world.set_drain_seconds(60);
    world.interrupt(&id);
    world.run_until("it left", SOON, |world| !world.in_service(&pool).contains(&id)).await?;
    reach(&mut world, &pool, 3).await?;
    drained_at(&world, &machine)?;
    ensure!(ended_since(&world, mark) == [(id, true)], "{:?}", ended_since(&world, mark));
    world.finish()
}

/// A lowered desired capacity ends nothing in AWS, so that no event tells of it.
// Rules: G2
// Pains: W18
#[tokio::test(start_paused = true)]
async fn externally_managed_replicas_follow_within_a_minute_with_events() -> Result<()> {
    let (mut world, pool) = running(fed(10), 3).await?;
    world.edit_machine_pool(&pool, |own| {
        own.annotations_mut().insert(REPLICAS_MANAGED_BY.to_owned(), "somebody".to_owned());
    });
    world.run_for(TimeDelta::minutes(12)).await?;
    let params = group_params(&world, &pool).with("DesiredCapacity", 2);
    world.aws(Service::AutoScaling, "SetDesiredCapacity", params)?;
    let follows = |world: &World| world.machine_pool(&pool).and_then(|own| own.spec.replicas) == Some(2);
    world.run_until("replicas follow", TimeDelta::seconds(70), follows).await?;
    reach(&mut world, &pool, 2).await?;
    world.finish()
}

/// A change by somebody else: at once with events, within a poll without.
// Pains: P20, W18
#[tokio::test(start_paused = true)]
async fn an_outside_change_is_observed_at_once_or_within_a_poll() -> Result<()> {
    for (events, within) in [(true, AT_ONCE), (false, TimeDelta::seconds(70))] {
        let setup = Setup { events, ..Setup::seed(4) };
        let (mut world, pool) = running(setup, 3).await?;
        world.run_for(TimeDelta::minutes(7)).await?;
        let (id, machine) = one_of(&world, &pool)?;
        begin_replacement(&mut world, &pool, &id).await?;
        world.run_until("its drain begins", within, |world| is_leaving(world, &pool, &machine)).await?;
        reach(&mut world, &pool, 3).await?;
        drained_at(&world, &machine)?;
        world.finish()?;
    }
    Ok(())
}

// Pains: W18
#[tokio::test(start_paused = true)]
async fn a_steady_pool_with_events_is_read_every_five_minutes() -> Result<()> {
    let (mut world, pool) = running(fed(5), 3).await?;
    world.run_for(TimeDelta::minutes(10)).await?;
    let (mark, writes) = (world.mark(), world.journal.len());
    world.run_for(TimeDelta::minutes(60)).await?;
    let polls = world.calls_since(mark, Some("DescribeAutoScalingGroups")).len();
    ensure!((11..=14).contains(&polls), "{polls} reads in an hour");
    ensure!(world.journal.since(writes).is_empty(), "nothing is written");
    ensure!(world.is_running(&pool, 3), "it runs");
    Ok(())
}

/// What happens to a pool in half an hour; gives how often each kind of end was asked for, and who runs in the end.
async fn story(setup: Setup) -> Result<(BTreeMap<bool, usize>, usize)> {
    let seed = setup.seed;
    let (mut world, pool) = running(setup, 3).await?;
    let mark = world.mark();
    world.scale(&pool, 5);
    reach(&mut world, &pool, 5).await?;
    let (id, _) = one_of(&world, &pool)?;
    let params = Tree::new()
        .with("InstanceId", &id)
        .with("HealthStatus", "Unhealthy")
        .with("ShouldRespectGracePeriod", false);
    world.aws(Service::AutoScaling, "SetInstanceHealth", params)?;
    world.run_until("it left", SOON, |world| !world.in_service(&pool).contains(&id)).await?;
    reach(&mut world, &pool, 5).await?;
    let (_, machine) = one_of(&world, &pool)?;
    world.delete_machine(&machine);
    world.run_until("it left", SOON, |world| !world.machines(&pool).contains_key(&machine)).await?;
    reach(&mut world, &pool, 5).await?;
    world.scale(&pool, 2);
    reach(&mut world, &pool, 2).await?;
    world.run_for(TimeDelta::minutes(8)).await?;
    let mut ends = BTreeMap::new();
    for (_, shrinks) in ended_since(&world, mark) {
        *ends.entry(shrinks).or_insert(0) += 1;
    }
    let left = world.in_service(&pool).len();
    world.finish().with_context(|| format!("seed {seed}"))?;
    Ok((ends, left))
}

/// An event is a hint: late, doubled, out of order or lost it changes nothing of what comes of a pool.
// Pains: W18
#[tokio::test(start_paused = true)]
async fn late_duplicate_reordered_and_lost_events_change_nothing() -> Result<()> {
    let expected = story(Setup::seed(7)).await?;
    ensure!(expected == (BTreeMap::from([(false, 1), (true, 3)]), 2), "{expected:?}");
    let settings = [
        Settings::default(),
        Settings { event_millis: 90_000, ..Settings::default() },
        Settings { event_jitter_millis: 120_000, event_twice_percent: 50, ..Settings::default() },
        Settings { event_twice_percent: 100, ..Settings::default() },
        Settings { event_lost_percent: 50, event_jitter_millis: 30_000, ..Settings::default() },
        Settings { event_lost_percent: 100, ..Settings::default() },
    ];
    for (settings, seed) in settings.into_iter().zip(7..) {
        let setup = Setup { settings: settings.clone(), ..fed(seed) };
        let came = story(setup).await?;
        ensure!(came == expected, "{came:?} with {settings:?}");
    }
    Ok(())
}
