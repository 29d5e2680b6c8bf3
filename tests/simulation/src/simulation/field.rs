//! What others reported of pools in production: a launch template that somebody deletes, instances that somebody attaches,
//! every death at launch, images that go away, versions that AWS does not know yet, a denial that lasts for hours. Each
//! from a sequence of its own, so that stories without it stay as they are.

use capasg_api::{conditions::UP_TO_DATE, names::tags, pool::RolloutType, reasons::up_to_date};
use capasg_fake_aws::{Fault, InstanceDump, Service, Tree, ec2::Image};

use super::{
    act::{Act, Field, Rejection, SpecEdit, Story},
    existing_group,
    generate_acts::{image_edit, launches},
    placement::{Kind, gap, insert_some, one, soon},
    spec::{self, IMAGES},
};
use crate::{Pool, Random, World, cloud::MANAGER, is_attached};

type Acts = Vec<(i64, Act)>;

/// A size of the root volume that no other edit sets, in GiB.
const OTHER_GIB: i32 = 61;

/// The lifecycle hook of others.
const OTHERS: &str = "others";

/// Codes of `StateReason` in the EC2 API reference, with their texts, and one that is not documented.
const DEATHS: [&str; 12] = [
    "Server.InsufficientInstanceCapacity: There was insufficient capacity available to satisfy the launch request.",
    "Server.InternalError: An internal error caused the instance to terminate during launch.",
    "Server.ScheduledStop: The instance was stopped due to a scheduled retirement.",
    "Server.SpotInstanceShutdown: The instance was stopped because the maximum Spot price was exceeded.",
    "Server.SpotInstanceTermination: The instance was terminated because the Spot price exceeded the maximum.",
    "Client.InstanceInitiatedShutdown: The instance was shut down from the operating system of the instance.",
    "Client.InstanceTerminated: The instance was terminated or rebooted during AMI creation.",
    "Client.InternalError: Client error on launch",
    "Client.InvalidSnapshot.NotFound: The specified snapshot was not found.",
    "Client.UserInitiatedHibernate: Hibernation was initiated on the instance.",
    "Client.VolumeLimitExceeded: The limit on the number of EBS volumes or total storage was exceeded.",
    "Server.NotDocumentedYet: a reason of tomorrow",
];

const KINDS: [Kind; 10] = [
    (0x7465_6d70_6c61_7465, 6, template_gone),
    (0x6174_7461_6368_0000, 6, attached),
    (0x6465_6174_6873_0000, 6, deaths),
    (0x686f_6f6b_7300_0000, 3, hooks),
    (0x696d_6167_6573_0000, 5, images),
    (0x6e6f_7479_6574_0000, 5, unknown_versions),
    (0x686f_7572_7300_0000, 4, denied_for_hours),
    (0x7461_6b65_6e00_0000, 3, existing_group::foreign),
    (0x6164_6f70_7400_0000, 4, existing_group::adopted),
    (0x6f77_6e65_7273_0000, 4, references_lost),
];

pub(super) fn some(story: &mut Story) {
    insert_some(&KINDS, story);
}

/// Twice the time within which what fails has to be reported, in milliseconds.
const LONG: i64 = 30 * 60 * 1000;

fn some_long(random: &Random) -> i64 {
    if random.chance(50) { LONG } else { 0 }
}

/// The launch template is deleted, and before or after it is created again something changes.
fn template_gone(random: &Random, story: &mut Story) -> Acts {
    let mut acts = vec![(gap(random), Act::Field(Field::TemplateGone))];
    if random.chance(60) {
        acts.push((soon(random), image_edit(random)));
    }
    if random.chance(30) {
        acts.push((soon(random), Act::Restart));
    }
    if random.chance(40) {
        acts.push((soon(random), launches(random)));
    }
    if !story.fixed && random.chance(40) {
        acts.push((gap(random), Act::Token));
    }
    acts
}

/// Instances that CAPASG did not launch, or that somebody took out, come into the group.
fn attached(random: &Random, _story: &mut Story) -> Acts {
    let mut acts = vec![(gap(random), Act::Wait)];
    for _ in 0..=random.below(2) {
        if random.chance(60) {
            acts.push((soon(random), Act::Field(Field::Attach(random.next()))));
        } else {
            acts.push((soon(random), Act::Detach(random.next())));
            acts.push((gap(random), Act::Field(Field::Reattach)));
        }
        if random.chance(40) {
            acts.push((gap(random), image_edit(random)));
        }
    }
    acts
}

fn deaths(random: &Random, _story: &mut Story) -> Acts {
    let mut acts =
        vec![(gap(random), Act::Field(Field::LaunchesDie(Some(DEATHS[random.index(DEATHS.len())]))))];
    for _ in 0..=random.below(3) {
        acts.push((soon(random), if random.chance(30) { image_edit(random) } else { launches(random) }));
    }
    acts.push((gap(random) * 2 + some_long(random), Act::Field(Field::LaunchesDie(None))));
    acts
}

/// A lifecycle hook for launches, which nobody completes: each launch is abandoned at its timeout.
fn hooks(random: &Random, _story: &mut Story) -> Acts {
    let mut acts = vec![(gap(random), Act::Field(Field::LaunchHook(true)))];
    for _ in 0..=random.below(2) {
        acts.push((soon(random), if random.chance(30) { image_edit(random) } else { launches(random) }));
    }
    acts.push((gap(random) * 3 + some_long(random), Act::Field(Field::LaunchHook(false))));
    acts
}

fn images(random: &Random, story: &mut Story) -> Acts {
    let image = IMAGES[random.index(IMAGES.len())];
    let mut acts = vec![(gap(random), Act::Field(Field::ImageGone(image, true)))];
    for _ in 0..=random.below(2) {
        acts.push((soon(random), if random.chance(40) { image_edit(random) } else { launches(random) }));
    }
    if !story.fixed && random.chance(50) {
        acts.push((soon(random), Act::Token));
        acts.push((gap(random), Act::Wait));
    }
    acts.push((gap(random) * 2, Act::Field(Field::ImageGone(image, false))));
    acts
}

fn unknown_versions(random: &Random, story: &mut Story) -> Acts {
    let mut acts = Vec::new();
    for _ in 0..=random.below(2) {
        let calls = 1 + u32::try_from(random.below(3)).unwrap_or(0);
        acts.push((gap(random), Act::Field(Field::VersionUnknown(calls))));
        let rotates = !story.fixed && random.chance(50);
        acts.push((soon(random) / 30, if rotates { Act::Token } else { image_edit(random) }));
    }
    acts
}

/// ASGMachines lose their owner references, and before or after these are restored something happens to an instance.
fn references_lost(random: &Random, _story: &mut Story) -> Acts {
    let mut acts = vec![(gap(random), Act::Field(Field::ReferencesLost))];
    for _ in 0..random.below(3) {
        let act = match random.below(4) {
            0 => Act::DeleteMachine(random.next()),
            1 => Act::Restart,
            2 => image_edit(random),
            _ => launches(random),
        };
        acts.push((soon(random) / 10, act));
    }
    acts
}

/// A policy of the organization denies one operation for hours.
fn denied_for_hours(random: &Random, story: &mut Story) -> Acts {
    let operation =
        super::generate_outages::OPERATIONS[random.index(super::generate_outages::OPERATIONS.len())];
    let mut acts = vec![(gap(random), Act::Outage(operation, Rejection::Denied))];
    for _ in 0..=random.below(4) {
        let act = match random.below(4) {
            0 => image_edit(random),
            1 if !story.fixed => Act::Token,
            2 => Act::Restart,
            _ => launches(random),
        };
        acts.push(((random.below(3_600_000)).cast_signed(), act));
    }
    acts.push(((random.below(3_600_000)).cast_signed(), Act::OutageEnds(operation, Rejection::Denied)));
    acts
}

/// What AWS answers to others does not matter: much of what they request is not possible then.
pub(super) fn perform(world: &World, pool: &Pool, act: Field) {
    let scope = world.scope();
    match act {
        Field::NameFreed => existing_group::free(world, pool),
        Field::TemplateGone => {
            if let Some((template, _)) = world.simulator.pinned(&scope, &pool.group) {
                let params = Tree::new().with("LaunchTemplateId", template);
                drop(world.aws(Service::Ec2, "DeleteLaunchTemplate", params));
            }
        }
        Field::Attach(which) => {
            // What others launched from a launch template of their own has no token to join with.
            let Some(group) = world.group(pool).filter(|group| group.tags.contains_key(tags::POOL)) else {
                return;
            };
            let joins =
                |one: &InstanceDump| one.template.as_ref().is_some_and(|(id, _)| *id == group.template.0);
            let serving = world.in_service(pool);
            let like = world.instances(pool).into_iter().filter(joins).map(|one| one.id);
            let like = one(like.filter(|id| serving.contains(id)), which);
            let Some(id) = like.and_then(|other| world.simulator.launch_like(&scope, &other)) else { return };
            attach(world, pool, &id);
            if !world.instances(pool).iter().any(|one| one.id == id) {
                world.simulator.kill(&scope, &id);
            }
        }
        Field::Reattach => {
            for id in world.detached() {
                attach(world, pool, &id);
            }
        }
        Field::LaunchesDie(reason) => {
            let mut settings = world.simulator.settings(Some(&scope));
            settings.launches_die = reason.is_some();
            if let Some(reason) = reason {
                reason.clone_into(&mut settings.launches_die_of);
            }
            world.simulator.set_settings(Some(&scope), &settings);
        }
        Field::LaunchHook(on) => {
            let hook =
                Tree::new().with("AutoScalingGroupName", &pool.group).with("LifecycleHookName", OTHERS);
            let timeout = [30, 60, 120][world.random.index(3)];
            let params = hook
                .clone()
                .with("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING")
                .with("HeartbeatTimeout", timeout)
                .with("DefaultResult", "ABANDON");
            let (operation, params) =
                if on { ("PutLifecycleHook", params) } else { ("DeleteLifecycleHook", hook) };
            drop(world.aws(Service::AutoScaling, operation, params));
        }
        Field::ImageGone(id, true) => world.simulator.remove_image(&scope, id),
        Field::ImageGone(id, false) => {
            world.simulator.put_image(&scope, Image::new(id, "node-shared-again", "x86_64"));
        }
        Field::ReferencesLost => {
            for machine in world.asg_machines(pool).keys() {
                world.edit_asg_machine(machine, |own| own.metadata.owner_references = None);
            }
        }
        Field::VersionUnknown(calls) => {
            let words = "You must use a valid fully-formed launch template. The specified launch template version does not exist.";
            let fault = Fault::error("UpdateAutoScalingGroup", 400, "ValidationError", words);
            world.fault(fault.times(Some(calls)).by_access_key(MANAGER));
        }
    }
}

/// A user attaches an instance. AWS attaches none to a group that is as large as it may be: the user raises its bound first.
fn attach(world: &World, pool: &Pool, id: &str) {
    let group = Tree::new().with("AutoScalingGroupName", &pool.group);
    if let Some(full) = world.group(pool).filter(|group| group.desired >= group.max) {
        let params = group.clone().with("MaxSize", full.desired + 1);
        drop(world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", params));
    }
    drop(world.aws(Service::AutoScaling, "AttachInstances", group.with("InstanceIds", vec![id])));
}

/// It is over.
pub(super) fn calm(world: &World, pool: &Pool) {
    perform(world, pool, Field::NameFreed);
    perform(world, pool, Field::LaunchesDie(None));
    perform(world, pool, Field::LaunchHook(false));
    for image in IMAGES {
        perform(world, pool, Field::ImageGone(image, false));
    }
}

/// Instances whose launch template is none of the pool's, or was deleted before their launch was recorded, are replaced at the next
/// requested change (docs/users/terminations.md): once the pool reports them, a user changes the image, or the root volume. Tells whether that was
/// done.
pub(super) fn change_for_others(world: &World, pool: &Pool) -> bool {
    if !world.says(pool, UP_TO_DATE, "Unknown", up_to_date::OTHER_LAUNCH_TEMPLATE) {
        return false;
    }
    let image = world.pool(pool).and_then(|own| own.spec.machine.image.id.clone());
    let other = IMAGES.into_iter().find(|other| image.as_deref() != Some(*other));
    // A parameter names the image of other pools.
    let edit = match other.filter(|_| image.is_some()) {
        Some(other) => SpecEdit::Image(other),
        None => SpecEdit::Volume(OTHER_GIB),
    };
    world.edit_pool(pool, |own| spec::apply(&mut own.spec, &edit));
    true
}

/// Where users replace instances themselves, whoever attached an instance terminates it.
pub(super) fn end_attached(world: &World, pool: &Pool) {
    if world.pool(pool).is_none_or(|pool| pool.spec.rollout(1).type_ != RolloutType::OnDelete) {
        return;
    }
    for one in world.instances(pool).into_iter().filter(is_attached) {
        world.simulator.kill(&world.scope(), &one.id);
    }
}
