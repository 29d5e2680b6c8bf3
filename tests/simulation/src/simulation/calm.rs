//! Ends everything that keeps a pool from what it is to be.

use capasg_api::{ASGMachinePoolSpec, pool::DisruptionWindow};

use super::{
    act::{Act, SpecEdit},
    by_aws, existing_group, field, identities, interruptions, odd,
    perform::{cloud, mishap, people},
    spec,
};
use crate::{Kind, Pool, World, within_limits};

/// What somebody took out of its group for a while comes back, as soon as the group has room; what was detached is ended.
pub(super) fn bring_back(world: &mut World, pool: &Pool) {
    cloud(world, pool, &Act::BackFromStandby);
    for id in world.detached() {
        world.simulator.kill(&world.scope(), &id);
    }
    field::end_attached(world, pool);
    existing_group::let_adopt(world, pool);
    existing_group::end_adopted(world, pool);
    odd::replace_the_lost(world, pool);
}

/// The windows of a spec.
pub(super) fn windows(spec: &ASGMachinePoolSpec) -> &[DisruptionWindow] {
    spec.disruption.as_ref().map_or(&[], |disruption| disruption.windows.as_slice())
}

/// Everything that keeps a pool from what it is to be is over.
pub(super) fn calm(world: &mut World, pool: &Pool) {
    if let Some(invariants) = world.invariants() {
        invariants.see();
        invariants.note("story", || "all mishaps are over".to_owned());
    }
    world.simulator.clear_faults(None);
    world.forgive();
    interruptions::end(world);
    identities::restore(world);
    for act in [
        Act::Throttle(false),
        Act::CoreDown(false),
        Act::Shortage(false),
        Act::Alarm(false),
        Act::BlockDrains(false),
        Act::Mute(false),
        Act::HealNodes,
        Act::PauseCluster(false),
        Act::PausePool(false),
        Act::Spec(SpecEdit::PauseRollouts(false)),
        Act::Spec(SpecEdit::Preview(false)),
        Act::Spec(SpecEdit::ProgressDeadline(None)),
        Act::Spec(SpecEdit::Lifetime(None)),
        Act::LetGoOn,
        Act::Suspend("Launch", false),
        Act::Suspend("Terminate", false),
        Act::Suspend("ReplaceUnhealthy", false),
        Act::Suspend("HealthCheck", false),
        Act::Suspend("InstanceRefresh", false),
        Act::OlderVersions(false),
    ] {
        match act {
            Act::Throttle(_) | Act::CoreDown(_) => mishap(world, &act),
            Act::Shortage(_) | Act::Suspend(..) => cloud(world, pool, &act),
            Act::Alarm(_) => by_aws::refresh(world, pool, &act),
            Act::OlderVersions(_) => odd::perform(world, pool, &act),
            _ => people(world, pool, &act),
        }
    }
    field::calm(world, pool);
    for instance in world.instances(pool) {
        world.simulator.impair(&world.scope(), &instance.id, false);
    }
    bring_back(world, pool);
    // What opens once a day only is waited for by nobody, and what is refused is corrected.
    let rotates = world.machine_pool(pool).is_some_and(|owner| owner.bootstrap_config().is_some());
    let waits =
        |spec: &ASGMachinePoolSpec| !spec::opens_soon(windows(spec)) || (rotates && spec::refreshes(spec));
    if world.pool(pool).is_some_and(|pool| waits(&pool.spec)) {
        people(world, pool, &Act::Spec(SpecEdit::Windows(Vec::new())));
    }
    // Replicas outside the bounds are told and not obeyed: somebody corrects them.
    if let (Some(object), Some(owner)) = (world.pool(pool), world.machine_pool(pool)) {
        let replicas = within_limits(&object, &owner);
        if replicas != owner.replicas() {
            people(world, pool, &Act::Scale(replicas));
        }
    }
    for kind in Kind::ALL {
        world.freeze(kind, false);
    }
}
