//! `adoptionPolicy: Adopt`: a group that exists becomes the pool's, with its instances, once the difference was shown.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_api::{
    ASGMachinePoolSpec,
    conditions::{self, GROUP_READY},
    names::{annotations, aws_name, events, tags},
    pool::{AdoptionPolicy, ChangePolicy, DeletionPolicy, PendingChange, Rollout, RolloutMode},
};
use capasg_fake_aws::{Effect, Fault, Service, Tree};
use capasg_simulation::{Pair, Pool, Setup, World};
use chrono::TimeDelta;
use kube::ResourceExt as _;

use crate::{SOON, changing_writes, ended_since, reach, some_of};

const WORKERS: &str = "workers";
/// A rollout of all of it.
const LONG: TimeDelta = TimeDelta::minutes(90);

/// A group of the pool's name that somebody else made, with instances that have joined, and its launch template's id.
fn somebody_elses(world: &World, instances: i32, edit: impl FnOnce(Tree) -> Tree) -> Result<String> {
    let data = Tree::new()
        .with("ImageId", "ami-0a1b2c3d")
        .with("InstanceType", "m7i.large")
        .with("UserData", "c29tZWJvZHkgZWxzZSdz");
    let params = Tree::new().with("LaunchTemplateName", "somebody-elses").with("LaunchTemplateData", data);
    let reply = world.aws(Service::Ec2, "CreateLaunchTemplate", params)?;
    let template = reply.at("LaunchTemplate.LaunchTemplateId").and_then(Tree::text).context("an id")?;
    let params = Tree::new()
        .with("AutoScalingGroupName", aws_name("default", "prod", WORKERS))
        .with("MinSize", 1)
        .with("MaxSize", 9)
        .with("DesiredCapacity", instances)
        .with("VPCZoneIdentifier", "subnet-0a1b2c3d,subnet-0b1c2d3e,subnet-0c1d2e3f")
        .with("LaunchTemplate", Tree::new().with("LaunchTemplateId", template).with("Version", "$Latest"))
        .with("Tags", Tree::list([tag("team", "a"), tag(tags::ADOPTABLE_BY, "default/*")]));
    world.guard("adoption", serde_json::json!({"adoption": "Allowed"}));
    world.aws(Service::AutoScaling, "CreateAutoScalingGroup", edit(params))?;
    Ok(template.to_owned())
}

fn tag(key: &str, value: &str) -> Tree {
    Tree::new()
        .with("ResourceId", aws_name("default", "prod", WORKERS))
        .with("ResourceType", "auto-scaling-group")
        .with("Key", key)
        .with("Value", value)
        .with("PropagateAtLaunch", true)
}

fn adopting(spec: &mut ASGMachinePoolSpec) {
    spec.adoption_policy = Some(AdoptionPolicy::Adopt);
    spec.group.get_or_insert_default().name = Some(aws_name("default", "prod", WORKERS));
}

/// What runs in the group before there is a pool.
async fn running_elsewhere(world: &mut World, instances: i32) -> Result<BTreeSet<String>> {
    let wanted = usize::try_from(instances)?;
    let name = aws_name("default", "prod", WORKERS);
    let running = |world: &World| -> BTreeSet<String> {
        let all = world.dump().instances.into_iter();
        let in_service = |state: Option<&str>| state == Some("InService");
        all.filter(|one| {
            one.group.as_deref() == Some(name.as_str()) && in_service(one.lifecycle_state.as_deref())
        })
        .map(|one| one.id)
        .collect()
    };
    world.run_until("somebody else's run", SOON, |world| running(world).len() == wanted).await?;
    world.run_for(TimeDelta::minutes(1)).await?;
    Ok(running(world))
}

fn pending(world: &World, pool: &Pool) -> Vec<PendingChange> {
    world.pool(pool).and_then(|pool| Some(pool.status.as_ref()?.pending_changes.clone())).unwrap_or_default()
}

/// Every change of ours to the group since a mark.
fn touched(world: &World, mark: u64) -> Vec<String> {
    world.mutations_since(mark).into_iter().map(|call| call.action).collect()
}

fn is_adopted(world: &World, pool: &Pool, instances: &BTreeSet<String>) -> bool {
    let owner = world
        .pool(pool)
        .and_then(|pool| pool.annotations().get(capasg_api::names::annotations::OWNER_ID).cloned());
    let machines: BTreeSet<String> = world.machines(pool).into_keys().collect();
    owner.is_some()
        && world.group(pool).is_some_and(|group| group.tags.get(tags::OWNER_ID) == owner.as_ref())
        && instances.iter().all(|id| machines.iter().any(|machine| machine.ends_with(id.as_str())))
}

/// Weakness 14, theme "explicit adoption": adopted with its instances, none of which ends by it; told before and after;
/// then a rollout replaces them one by one, each drained. What launched them stays.
// Pains: W14, W27
#[tokio::test(start_paused = true)]
async fn an_adopted_groups_instances_are_replaced_with_drains() -> Result<()> {
    for seed in 0..3 {
        let mut world = World::new(Setup::seed(seed));
        let template = somebody_elses(&world, 3, |group| group)?;
        let before = running_elsewhere(&mut world, 3).await?;
        let mark = world.mark();
        let pool = world.add_pool_with(WORKERS, 3, |spec| {
            adopting(spec);
            spec.rollout = Some(Rollout { mode: Some(RolloutMode::Paused), ..Rollout::default() });
        });
        world.run_until("it is adopted", SOON, |world| is_adopted(world, &pool, &before)).await?;
        world.run_until("all have joined", SOON, |world| world.is_running(&pool, 3)).await?;
        world.run_for(TimeDelta::minutes(10)).await?;
        ensure!(world.in_service(&pool) == before, "the instances stay\n{}", world.describe());
        ensure!(ended_since(&world, mark).is_empty(), "nothing was ended");
        ensure!(world.calls_since(mark, Some("CreateAutoScalingGroup")).is_empty(), "no second group");
        // The tags are the first write of all.
        let first = world.mutations_since(mark).first().context("a write")?.action.clone();
        ensure!(first == "CreateOrUpdateTags", "{first}");
        ensure!(world.events(events::GROUP_ADOPTED).len() == 1, "{:?}", world.events(events::GROUP_ADOPTED));
        let told = world.events(events::ADOPTION_STARTED);
        ensure!(told.len() == 1 && told[0].contains("launch template"), "{told:?}");
        let group = world.group(&pool).context("the group")?;
        ensure!(group.tags.get(tags::ADOPTED_FROM) == Some(&template), "{:?}", group.tags);
        ensure!(group.tags.get("team").map(String::as_str) == Some("a"), "other tags stay");
        ensure!(group.hooks == ["asg-drain"] && group.min == 0, "{group:?}");
        ensure!(group.template.0 != template, "it launches ours");
        ensure!(world.instances(&pool).iter().all(|one| one.protected), "what runs is protected");
        for machine in world.asg_machines(&pool).values() {
            let told = machine
                .status
                .as_ref()
                .and_then(|s| conditions::get(&s.conditions, "UpToDate"))
                .context("told")?;
            ensure!(told.status == "False" && told.reason == "Adopted", "{told:?}");
        }
        ensure!(pending(&world, &pool).is_empty(), "{:?}", pending(&world, &pool));
        // Reconcile twice: nothing more is written.
        let writes = world.journal.len();
        world.run_for(TimeDelta::minutes(20)).await?;
        ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));

        world.edit_pool(&pool, |pool| pool.spec.rollout = None);
        world
            .run_until("all are replaced", LONG, |world| {
                world.is_running(&pool, 3) && world.in_service(&pool).is_disjoint(&before)
            })
            .await?;
        ensure!(world.says(&pool, "UpToDate", "True", "UpToDate"), "{}", world.describe());
        ensure!(world.dump().templates.iter().any(|one| one.id == template), "theirs is never deleted");
        world.finish()?;
    }
    Ok(())
}

/// Pain 54: in a preview the difference is shown, field by field, and nothing is written until it is applied.
// Pains: P54, W27
#[tokio::test(start_paused = true)]
async fn an_adoption_is_previewed_first_and_made_by_apply() -> Result<()> {
    let mut world = World::new(Setup::default());
    let template = somebody_elses(&world, 2, |group| group.with("DefaultCooldown", 60))?;
    let before = running_elsewhere(&mut world, 2).await?;
    let mark = world.mark();
    let pool = world.add_pool_with(WORKERS, 2, |spec| {
        adopting(spec);
        spec.change_policy = Some(ChangePolicy::Preview);
    });
    world.run_until("it is shown", SOON, |world| world.says(&pool, GROUP_READY, "False", "Adopting")).await?;
    world.run_for(TimeDelta::minutes(2)).await?;
    let (writes, shown) = (world.journal.len(), pending(&world, &pool));
    world.run_for(TimeDelta::minutes(20)).await?;
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", touched(&world, mark));
    ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));
    let line = |path: &str| {
        let change = shown.iter().find(|change| change.path == path)?;
        Some(format!("{} -> {} ({})", change.from, change.to, change.effect))
    };
    let name = world.group_name(&pool);
    let owner = world.pool(&pool).and_then(|pool| pool.annotations().get(annotations::OWNER_ID).cloned());
    let owner = owner.context("the owner ID")?;
    for (path, change) in [
        (
            "tag asg.infrastructure.cluster.x-k8s.io/owner-id",
            format!("none -> {owner:?} (Adopts 2 instances)"),
        ),
        (
            "launch template",
            format!("{template} version $Latest or $Default -> {name} (Makes 2 instances outdated)"),
        ),
        ("spec.group.defaultCooldownSeconds", "60 -> 300 (InPlace)".to_owned()),
        ("scale-in protection of new instances", "off -> on (InPlace)".to_owned()),
        ("spec.drain.onCloudTermination", "Ignore -> Drain (InPlace)".to_owned()),
        ("spec.group.suspendedProcesses", "none -> AZRebalance (InPlace)".to_owned()),
        ("MinSize of the Auto Scaling group", "1 -> 0 (InPlace)".to_owned()),
        ("MaxSize of the Auto Scaling group", "9 -> 2 (InPlace)".to_owned()),
    ] {
        ensure!(line(path).as_deref() == Some(change.as_str()), "{path}: {shown:#?}");
    }
    ensure!(world.says(&pool, "Drifted", "True", "Previewing"), "{}", world.describe());
    ensure!(
        world.events(events::ADOPTION_STARTED).is_empty() && world.events(events::GROUP_ADOPTED).is_empty()
    );
    ensure!(world.asg_machines(&pool).is_empty(), "nothing of it is the pool's yet");
    world.edit_pool(&pool, |pool| pool.spec.change_policy = None);
    world.run_until("it is adopted", SOON, |world| is_adopted(world, &pool, &before)).await?;
    world
        .run_until("all are replaced", LONG, |world| {
            world.is_running(&pool, 2) && world.in_service(&pool).is_disjoint(&before)
        })
        .await?;
    ensure!(pending(&world, &pool).is_empty() && world.events(events::GROUP_ADOPTED).len() == 1);
    world.finish()
}

/// What cannot be adopted is left alone, and told in words; once it is mended it is adopted.
// Pains: P30, W14
#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_adopted_is_reported_and_left_alone() -> Result<()> {
    let cases = [
        (tags::OWNER_ID, "0123456789abcdef", "another ASGMachinePool owns it", 2),
        (tags::POOL, "others", "another ASGMachinePool owns it", 2),
        ("sigs.k8s.io/cluster-api-provider-aws/cluster/prod", "owned", "Cluster API Provider AWS", 2),
        ("eks:nodegroup-name", "a", "A group of an EKS managed node group cannot be adopted", 2),
        ("kops.k8s.io/instancegroup", "a", "Stop managing the group with kOps", 2),
        ("kubernetes.io/cluster/other", "owned", "another cluster", 2),
        ("team", "a", "its desired capacity is 2, and the MachinePool requests 3", 3),
    ];
    for (key, value, words, replicas) in cases {
        let edit = |group: Tree| {
            group.with("Tags", Tree::list([tag(key, value), tag(tags::ADOPTABLE_BY, "default/workers")]))
        };
        let mut world = World::new(Setup::default());
        let _ = somebody_elses(&world, 2, edit)?;
        running_elsewhere(&mut world, 2).await?;
        let mark = world.mark();
        let pool = world.add_pool_with(WORKERS, replicas, adopting);
        world
            .run_until("it is told", SOON, |world| world.says(&pool, GROUP_READY, "False", "AdoptionBlocked"))
            .await
            .with_context(|| words.to_owned())?;
        let message = world.condition(&pool, GROUP_READY).context("GroupReady")?.message;
        ensure!(message.contains(words), "{message}");
        world.run_for(TimeDelta::minutes(2)).await?;
        let writes = world.journal.len();
        world.run_for(TimeDelta::minutes(30)).await?;
        ensure!(world.journal.since(writes).is_empty(), "{:?}", world.journal.since(writes));
        ensure!(world.mutations_since(mark).is_empty(), "{words}: {:?}", touched(&world, mark));
        ensure!(world.asg_machines(&pool).is_empty(), "no ASGMachine for somebody else's instance");
        ensure!(
            world.events(events::ADOPTION_BLOCKED).len() == 1,
            "{:?}",
            world.events(events::ADOPTION_BLOCKED)
        );
        if replicas == 3 {
            // The way out that the message names.
            let before = world.in_service(&pool);
            world.scale(&pool, 2);
            world.run_until("it is adopted", SOON, |world| is_adopted(world, &pool, &before)).await?;
            continue;
        }
        world.delete_machine_pool(&pool);
        world.run_until("the pool is gone", SOON, |world| world.pool(&pool).is_none()).await?;
        let group = world.group(&pool).context("the group is still there")?;
        ensure!(group.desired == 2 && group.status.is_none(), "untouched");
        world.finish()?;
    }
    Ok(())
}

/// Without the policy nothing is adopted, and a group that lost its tag is not taken for one that nobody has.
// Pains: P30, W14
#[tokio::test(start_paused = true)]
async fn nothing_is_adopted_without_a_request_or_twice() -> Result<()> {
    let mut world = World::new(Setup::default());
    let _ = somebody_elses(&world, 2, |group| group)?;
    let before = running_elsewhere(&mut world, 2).await?;
    let mark = world.mark();
    let pool = world.add_pool(WORKERS, 2);
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.says(&pool, GROUP_READY, "False", "GroupNotOwned"), "{}", world.describe());
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", touched(&world, mark));
    world.edit_pool(&pool, |pool| {
        adopting(&mut pool.spec);
        pool.spec.rollout = Some(Rollout { mode: Some(RolloutMode::Paused), ..Rollout::default() });
    });
    world.run_until("it is adopted", SOON, |world| is_adopted(world, &pool, &before)).await?;
    reach(&mut world, &pool, 2).await?;
    // Somebody takes it away again.
    let owner = tags::IDENTITY.map(|key| tag(key, ""));
    world.aws(Service::AutoScaling, "DeleteTags", Tree::new().with("Tags", Tree::list(owner)))?;
    let mark = world.mark();
    world.run_for(TimeDelta::minutes(10)).await?;
    ensure!(world.says(&pool, GROUP_READY, "False", "GroupNotOwned"), "{}", world.describe());
    ensure!(world.mutations_since(mark).is_empty(), "{:?}", touched(&world, mark));
    Ok(())
}

/// From the first look to a pool whose instances are all its own.
async fn life(world: &mut World) -> Result<()> {
    let template = somebody_elses(world, 2, |group| group)?;
    let before = running_elsewhere(world, 2).await?;
    let pool = world.add_pool_with(WORKERS, 2, adopting);
    world
        .run_until("all are its own", LONG, |world| {
            world.is_running(&pool, 2) && world.in_service(&pool).is_disjoint(&before)
        })
        .await?;
    let dump = world.dump();
    ensure!(dump.groups.len() == 1 && dump.templates.len() == 2, "{:?} {:?}", dump.groups, dump.templates);
    ensure!(!world.events(events::GROUP_ADOPTED).is_empty(), "it is told");
    let recorded = world.group(&pool).and_then(|group| group.tags.get(tags::ADOPTED_FROM).cloned());
    ensure!(recorded == Some(template), "{recorded:?}");
    world.finish()
}

/// A crash after each single write of an adoption and of the rollout that follows.
// Pains: W14
#[tokio::test(start_paused = true)]
async fn an_adoption_survives_a_crash_after_any_write() -> Result<()> {
    let mut world = World::new(Setup::default());
    life(&mut world).await?;
    ensure!(world.events(events::GROUP_ADOPTED).len() == 1);
    let writes = changing_writes(&world, 0);
    ensure!(writes.len() > 15, "only {} writes: what is looped over?", writes.len());
    for write in some_of(writes, 2) {
        let mut world = World::new(Setup::default());
        world.crash_after(write);
        life(&mut world).await.with_context(|| format!("crash after write {write}"))?;
        ensure!(world.restarts == 1, "it crashed {} times", world.restarts);
    }
    Ok(())
}

/// Lost replies of the tags and of what follows, and reads that lag and go back.
// Pains: W14
#[tokio::test(start_paused = true)]
async fn lost_replies_and_late_reads_leave_no_partial_adoption() -> Result<()> {
    let actions =
        ["CreateOrUpdateTags", "CreateLaunchTemplate", "UpdateAutoScalingGroup", "PutLifecycleHook"];
    let effects = [Effect::LoseReply, Effect::LoseRequest, Effect::ApplyLate { after_millis: 8_000 }];
    for (action, effect) in
        actions.iter().flat_map(|action| effects.iter().map(move |effect| (*action, effect)))
    {
        let mut world = World::new(Setup::default());
        // The first template is made by somebody else.
        let skip = u32::from(action == "CreateLaunchTemplate");
        world.fault(Fault::new(action, effect.clone()).times(Some(2)).after(skip));
        life(&mut world).await.with_context(|| format!("{effect:?} of {action}"))?;
    }
    for seed in 0..6 {
        let mut setup = Setup::seed(seed);
        setup.settings.read_lag_millis = 4000;
        setup.settings.read_lag_jitter = true;
        let mut world = World::new(setup);
        // A process that always dies between the mark of an end and the end itself, its third and fourth write, ends nothing.
        world.crash_every(4 + usize::try_from(seed)?);
        life(&mut world).await.with_context(|| format!("late reads, seed {seed}"))?;
    }
    Ok(())
}

/// A pool that goes while its adoption is under way takes the group along, or leaves it as nobody's: never half.
// Pains: W14
#[tokio::test(start_paused = true)]
async fn deleting_a_pool_during_its_adoption_leaves_nothing_partial() -> Result<()> {
    for (seconds, orphan) in (1..30).step_by(2).flat_map(|seconds| [(seconds, false), (seconds, true)]) {
        let mut setup = Setup::default();
        // A hook that was put seconds before and is not read yet stays, as in any pool.
        setup.settings.read_lag_millis = if orphan { 0 } else { 3000 };
        let mut world = World::new(setup);
        let _ = somebody_elses(&world, 2, |group| group)?;
        running_elsewhere(&mut world, 2).await?;
        let pool = world.add_pool_with(WORKERS, 2, |spec| {
            adopting(spec);
            spec.rollout = Some(Rollout { mode: Some(RolloutMode::Paused), ..Rollout::default() });
            spec.deletion_policy = orphan.then_some(DeletionPolicy::Orphan);
        });
        world.run_for(TimeDelta::seconds(seconds)).await?;
        world.kill_process();
        world.delete_machine_pool(&pool);
        let what = format!("after {seconds} s, orphan {orphan}");
        world
            .run_until("the pool is gone", LONG, |world| world.pool(&pool).is_none())
            .await
            .with_context(|| what.clone())?;
        world.run_for(TimeDelta::minutes(2)).await?;
        match world.group(&pool) {
            Some(group) if !orphan => {
                ensure!(
                    !group.tags.contains_key(tags::OWNER_ID),
                    "{what}: {:?}\n{}",
                    group.tags,
                    world.describe()
                );
                ensure!(group.desired == 2, "{what}: {group:?}");
            }
            Some(group) => ensure!(
                group.desired == 2 && group.hooks.is_empty(),
                "{what}: {group:?}\n{}",
                world.describe()
            ),
            None => ensure!(!orphan, "{what}: the group is gone"),
        }
    }
    Ok(())
}

/// Two management clusters that want the same group: one has it, the other is told, and no instance ends undrained.
// Pains: P30, W14
#[tokio::test(start_paused = true)]
async fn only_one_of_two_pools_adopts_a_group() -> Result<()> {
    let mut source = World::new(Setup::default());
    let _ = somebody_elses(&source, 2, |group| group)?;
    let before = running_elsewhere(&mut source, 2).await?;
    let paused = |spec: &mut ASGMachinePoolSpec| {
        adopting(spec);
        spec.rollout = Some(Rollout { mode: Some(RolloutMode::Paused), ..Rollout::default() });
    };
    let mine = source.add_pool_with(WORKERS, 2, paused);
    let mut pair = Pair::new(source, 3);
    pair.target.add_cluster();
    let theirs = pair.target.add_pool_with(WORKERS, 2, paused);
    pair.run_for(TimeDelta::minutes(10)).await?;
    let reasons = [
        pair.source.condition(&mine, GROUP_READY).context("one")?.reason,
        pair.target.condition(&theirs, GROUP_READY).context("other")?.reason,
    ];
    ensure!(pair.source.in_service(&mine) == before, "nothing ends");
    ensure!(reasons.contains(&"GroupReady".to_owned()), "{reasons:?}");
    ensure!(reasons.iter().any(|reason| reason != "GroupReady"), "{reasons:?}");
    Ok(())
}
