//! A group of others has the name of the pool's group before the pool exists: others delete it, or the pool adopts it.

use capasg_api::{
    ASGMachinePool,
    conditions::GROUP_READY,
    names::tags,
    pool::{AdoptionPolicy, RolloutType},
    reasons::group_ready::ADOPTION_BLOCKED,
};
use capasg_fake_aws::{InstanceDump, Service, Tree};
use serde_json::json;

use super::{
    act::{Act, ExistingGroup, Field, SpecEdit, Story},
    generate_acts::{image_edit, launches},
    placement::{gap, soon},
    spec::{self, IMAGES, SUBNETS},
};
use crate::{Pool, Random, World};

type Acts = Vec<(i64, Act)>;

/// The launch template of the group.
const TEMPLATE: &str = "others";

/// The name of the pool.
const WORKERS: &str = "workers";

/// Others delete the group.
pub(super) fn foreign(random: &Random, story: &mut Story) -> Acts {
    story.existing_group = Some(ExistingGroup::Foreign);
    let mut acts = vec![(gap(random), Act::Wait)];
    for _ in 0..random.below(3) {
        acts.push((soon(random), if random.chance(50) { image_edit(random) } else { Act::Restart }));
    }
    acts.push((gap(random), Act::Field(Field::NameFreed)));
    acts
}

/// The pool adopts the group, which has as many instances as the pool has replicas.
pub(super) fn adopted(random: &Random, story: &mut Story) -> Acts {
    if story.existing_group.is_some() || story.spec.identity_ref.is_some() {
        return Vec::new();
    }
    story.existing_group = Some(ExistingGroup::Adoptable);
    story.replicas = 1 + i32::try_from(random.below(3)).unwrap_or(0);
    let spec = &mut story.spec;
    spec.adoption_policy = Some(AdoptionPolicy::Adopt);
    spec.group.get_or_insert_default().name = Some(World::name_of_group(WORKERS));
    spec.max_size = spec.max_size.map(|most| most.max(story.replicas));
    let mut acts = vec![(gap(random), Act::Wait)];
    for _ in 0..random.below(4) {
        let act = match random.below(5) {
            0 => image_edit(random),
            1 => Act::Restart,
            2 => Act::CrashAfterWrite(random.index(5)),
            3 => Act::EndByOthers(random.next(), random.chance(50)),
            _ => launches(random),
        };
        acts.push((soon(random), act));
    }
    acts
}

/// Others create the group, and a launch template for it.
pub(super) fn create(world: &World, story: &Story) {
    let Some(existing) = story.existing_group else { return };
    let data = Tree::new().with("ImageId", IMAGES[0]).with("InstanceType", "m7i.large");
    let template = Tree::new().with("LaunchTemplateName", TEMPLATE).with("LaunchTemplateData", data);
    drop(world.aws(Service::Ec2, "CreateLaunchTemplate", template));
    let source = Tree::new().with("LaunchTemplateName", TEMPLATE).with("Version", "$Latest");
    let name = World::name_of_group(WORKERS);
    let group = Tree::new()
        .with("AutoScalingGroupName", &name)
        .with("MinSize", 0)
        .with("VPCZoneIdentifier", SUBNETS[0])
        .with("LaunchTemplate", source);
    let group = match existing {
        ExistingGroup::Foreign => group.with("MaxSize", 2).with("DesiredCapacity", 1),
        ExistingGroup::Adoptable => {
            world.guard("adoption", json!({"adoption": "Allowed"}));
            let tag = Tree::new()
                .with("ResourceId", &name)
                .with("ResourceType", "auto-scaling-group")
                .with("Key", tags::ADOPTABLE_BY)
                .with("Value", "default/*")
                .with("PropagateAtLaunch", false);
            group.with("MaxSize", 9).with("DesiredCapacity", story.replicas).with("Tags", Tree::list([tag]))
        }
    };
    drop(world.aws(Service::AutoScaling, "CreateAutoScalingGroup", group));
}

/// Others delete the group and its launch template, unless a pool owns the group.
pub(super) fn free(world: &World, pool: &Pool) {
    let is_kept = |key: &str| [tags::POOL, tags::ADOPTABLE_BY].contains(&key);
    if world.group(pool).is_none_or(|group| group.tags.keys().any(|key| is_kept(key))) {
        return;
    }
    let group = Tree::new().with("AutoScalingGroupName", &pool.group).with("ForceDelete", true);
    drop(world.aws(Service::AutoScaling, "DeleteAutoScalingGroup", group));
    delete_template(world);
}

/// Others delete their launch template, which a pool never does.
pub(super) fn delete_template(world: &World) {
    let template = Tree::new().with("LaunchTemplateName", TEMPLATE);
    drop(world.aws(Service::Ec2, "DeleteLaunchTemplate", template));
}

/// Where users replace instances themselves, they replace those that the pool adopted: their user data have no token.
pub(super) fn end_adopted(world: &World, pool: &Pool) {
    let is_meant = |pool: &ASGMachinePool| {
        pool.spec.adoption_policy == Some(AdoptionPolicy::Adopt)
            && pool.spec.rollout(1).type_ == RolloutType::OnDelete
    };
    let Some(group) = world.group(pool).filter(|_| world.pool(pool).is_some_and(|own| is_meant(&own))) else {
        return;
    };
    if !group.tags.contains_key(tags::POOL) {
        return;
    }
    // One that was attached again shows its launch template in its tags alone.
    let origin = |one: &InstanceDump| {
        let id = one.template.as_ref().map(|(id, _)| id).or_else(|| one.tags.get("aws:ec2launchtemplate:id"));
        id.cloned()
    };
    let is_adopted = |one: &InstanceDump| origin(one).is_some_and(|id| id != group.template.0);
    for one in world.instances(pool).into_iter().filter(is_adopted) {
        world.simulator.kill(&world.scope(), &one.id);
    }
}

/// What blocks an adoption (docs/users/adoption.md) is corrected: the group wants as many instances as it has, and the pool has as
/// many replicas.
pub(super) fn let_adopt(world: &mut World, pool: &Pool) {
    if !world.says(pool, GROUP_READY, "False", ADOPTION_BLOCKED) {
        return;
    }
    let count = i32::try_from(world.instances(pool).len()).unwrap_or(0);
    let desired = Tree::new().with("AutoScalingGroupName", &pool.group).with("DesiredCapacity", count);
    drop(world.aws(Service::AutoScaling, "SetDesiredCapacity", desired));
    world.edit_pool(pool, |pool| spec::apply(&mut pool.spec, &SpecEdit::Bounds(None, None)));
    world.scale(pool, count);
}
