//! Lets acts happen.

use capasg_api::names::{TERMINATE_HOOK, annotations, tags};
use capasg_fake_aws::{Effect, Fault, Service, Throttle, Tree};
use chrono::{SecondsFormat, TimeDelta};
use kube::ResourceExt;

use super::{
    act::{Act, Failure},
    by_aws, field, identities, interruptions, odd,
    placement::one,
    spec,
};
use crate::{Kind, Pool, World, cloud::MANAGER};

/// Lets something happen.
pub(super) fn perform(world: &mut World, pool: &Pool, act: &Act) {
    if let Some(invariants) = world.invariants() {
        invariants.see();
        invariants.note("story", || format!("{act:?}"));
    }
    match act {
        Act::Kill(_)
        | Act::Impair(_)
        | Act::Unhealthy(_)
        | Act::Interrupt(_)
        | Act::EndByOthers(..)
        | Act::DesiredByOthers(_)
        | Act::BoundsByOthers(..)
        | Act::HookGone
        | Act::TagsGone
        | Act::Unprotect(_)
        | Act::Suspend(..)
        | Act::Standby(_)
        | Act::BackFromStandby
        | Act::Detach(_)
        | Act::Shortage(_) => cloud(world, pool, act),
        Act::RefreshByOthers(..) | Act::CancelRefresh | Act::RollRefreshBack | Act::Alarm(_) => {
            by_aws::refresh(world, pool, act);
        }
        Act::Field(act) => field::perform(world, pool, *act),
        // Of a pool that is not there.
        Act::Second(_) => {}
        Act::Recommend(which) => {
            if let Some(id) = one(world.in_service(pool), *which) {
                world.recommend(&id);
            }
        }
        Act::Retire(which) => {
            if let Some(id) = one(world.in_service(pool), *which) {
                world.retire(&id);
            }
        }
        Act::Outage(..)
        | Act::OutageEnds(..)
        | Act::Unknown(_)
        | Act::Known
        | Act::OlderVersions(_)
        | Act::LaunchByOthers(_)
        | Act::VersionByOthers(_)
        | Act::Maintenance(..)
        | Act::Rebalances(_)
        | Act::Stop(_) => odd::perform(world, pool, act),
        Act::Fault(..)
        | Act::EmptyLists(_)
        | Act::Hang(_)
        | Act::Throttle(_)
        | Act::Conflicts(_)
        | Act::ApiFailures(_)
        | Act::Freeze(..)
        | Act::CoreDown(_)
        | Act::Restart
        | Act::CrashAfterWrite(_)
        | Act::CrashBeforeCall(_)
        | Act::LandLate(..)
        | Act::LoseLease => mishap(world, act),
        Act::LoseReplies(_)
        | Act::ListAgain(_)
        | Act::RestartInThePast(..)
        | Act::RestartWithClockOff(_)
        | Act::ClockSet(_) => {
            interruptions::perform(world, act);
        }
        Act::RejectCredentials(_)
        | Act::WithdrawIdentity
        | Act::DeleteIdentity
        | Act::RestoreIdentity
        | Act::SwitchIdentity => identities::perform(world, pool, act),
        _ => people(world, pool, act),
    }
}

pub(super) fn people(world: &mut World, pool: &Pool, act: &Act) {
    let machine = |world: &World, which: u64| one(world.machines(pool).into_keys(), which);
    match act {
        Act::Scale(replicas) => world.scale(pool, *replicas),
        Act::ScaleDownMarked(which) => {
            for which in which {
                if let Some(machine) = machine(world, *which) {
                    mark(world, &machine, "autoscaler");
                    let replicas = world.machine_pool(pool).map_or(0, |own| own.replicas());
                    world.scale(pool, (replicas - 1).max(0));
                }
            }
        }
        Act::Spec(edit) => world.edit_pool(pool, |pool| spec::apply(&mut pool.spec, edit)),
        Act::Version(version) => world.edit_machine_pool(pool, |own| {
            own.spec.template.spec.version = Some((*version).to_owned());
        }),
        Act::NodeDrainTimeout(seconds) => world.edit_machine_pool(pool, |own| {
            own.spec.template.spec.deletion.get_or_insert_default().node_drain_timeout_seconds = *seconds;
        }),
        Act::RolloutAfter(seconds) => {
            let after = world.now() + TimeDelta::seconds(*seconds);
            let after = after.to_rfc3339_opts(SecondsFormat::Secs, true);
            world.edit_pool(pool, |pool| {
                pool.spec.rollout.get_or_insert_default().after = Some(after);
            });
        }
        Act::LetGoOn => world.let_go_on(pool),
        Act::Replace(which) => {
            if let Some(machine) = one(world.asg_machines(pool).into_keys(), *which) {
                world.edit_asg_machine(&machine, |machine| {
                    set(machine.annotations_mut(), annotations::REPLACE, Some(""));
                });
            }
        }
        Act::Shield(which, shielded) => {
            if let Some(machine) = one(world.asg_machines(pool).into_keys(), *which) {
                world.edit_asg_machine(&machine, |machine| {
                    set(machine.annotations_mut(), annotations::DO_NOT_DISRUPT, shielded.then_some(""));
                });
            }
        }
        Act::MinReady(seconds) => world.edit_machine_pool(pool, |own| {
            own.spec.template.spec.min_ready_seconds = Some(*seconds);
        }),
        Act::BootstrapEdit(verbosity) => world.core.edit_config(&pool.config, verbosity),
        Act::Token => world.rotate_token(pool),
        Act::DeleteMachine(which) => {
            if let Some(machine) = machine(world, *which) {
                world.delete_machine(&machine);
            }
        }
        Act::DeleteAsgMachine(which) => {
            if let Some(machine) = one(world.asg_machines(pool).into_keys(), *which) {
                world.delete_asg_machine(&machine);
            }
        }
        Act::Mark(which) => {
            if let Some(machine) = machine(world, *which) {
                mark(world, &machine, "me");
            }
        }
        Act::ExcludeDrain(which) => {
            if let Some(machine) = machine(world, *which) {
                world.exclude_drain(&machine);
            }
        }
        Act::MarkUnhealthy(which) => {
            if let Some(machine) = machine(world, *which) {
                world.mark_unhealthy(&machine);
            }
        }
        Act::Recover(which) => {
            if let Some(machine) = machine(world, *which) {
                world.recover(&machine);
            }
        }
        Act::PauseCluster(paused) => {
            world.edit_any_cluster(&pool.cluster, |cluster| cluster.spec.paused = paused.then_some(true));
        }
        Act::PausePool(paused) => world.edit_pool(pool, |pool| {
            set(pool.annotations_mut(), annotations::PAUSED, paused.then_some(""));
        }),
        Act::Managed(managed) => world.edit_machine_pool(pool, |own| {
            set(own.annotations_mut(), annotations::REPLICAS_MANAGED_BY, managed.then_some("somebody"));
        }),
        Act::BlockDrain(which) => {
            if let Some(machine) = machine(world, *which) {
                world.block_drain(&machine, true);
            }
        }
        Act::BlockDrains(true) => world.block_drain("*", true),
        Act::BlockDrains(false) => world.unblock_drains(),
        Act::DrainSeconds(seconds) => world.set_drain_seconds(*seconds),
        _ => nodes(world, pool, act),
    }
}

fn nodes(world: &mut World, pool: &Pool, act: &Act) {
    match act {
        Act::Mute(muted) => world.mute("*", *muted),
        Act::DeleteNode(which) => {
            if let Some(id) = one(world.in_service(pool), *which) {
                world.delete_node(&id);
            }
        }
        Act::KubeletDown(which) => {
            if let Some(id) = one(world.in_service(pool), *which) {
                world.kubelet_down(&id, true);
            }
        }
        Act::WorkloadUnreachable(unreachable) => world.workload_unreachable(*unreachable),
        Act::HealNodes => world.heal_nodes(),
        _ => {}
    }
}

fn mark(world: &World, machine: &str, by: &str) {
    world.edit_machine(machine, |machine| {
        set(machine.annotations_mut(), annotations::DELETE_MACHINE, Some(by));
    });
}

fn set(annotations: &mut std::collections::BTreeMap<String, String>, name: &str, value: Option<&str>) {
    match value {
        Some(value) => drop(annotations.insert(name.to_owned(), value.to_owned())),
        None => drop(annotations.remove(name)),
    }
}

/// What AWS answers to others does not matter: much of what they ask for is not possible then.
pub(super) fn cloud(world: &World, pool: &Pool, act: &Act) {
    let instance = |which: u64| one(world.in_service(pool), which);
    let group = || Tree::new().with("AutoScalingGroupName", &pool.group);
    let call = |action: &str, params: Tree| drop(world.aws(Service::AutoScaling, action, params));
    match act {
        Act::Kill(which) => {
            if let Some(id) = instance(*which) {
                world.simulator.kill(&world.scope(), &id);
            }
        }
        Act::Impair(which) => {
            if let Some(id) = instance(*which) {
                world.simulator.impair(&world.scope(), &id, true);
            }
        }
        Act::Unhealthy(which) => {
            if let Some(id) = instance(*which) {
                let params = Tree::new().with("InstanceId", id).with("HealthStatus", "Unhealthy");
                call("SetInstanceHealth", params.with("ShouldRespectGracePeriod", false));
            }
        }
        Act::Interrupt(which) => {
            if let Some(id) = instance(*which) {
                world.interrupt(&id);
            }
        }
        Act::EndByOthers(which, decrement) => {
            if let Some(id) = instance(*which) {
                let params = Tree::new().with("InstanceId", id);
                call(
                    "TerminateInstanceInAutoScalingGroup",
                    params.with("ShouldDecrementDesiredCapacity", *decrement),
                );
            }
        }
        Act::DesiredByOthers(by) => {
            if let Some(own) = world.group(pool) {
                let desired = (own.desired + by).clamp(own.min, own.max.max(own.min));
                call("SetDesiredCapacity", group().with("DesiredCapacity", desired));
            }
        }
        Act::BoundsByOthers(min, max) => {
            call("UpdateAutoScalingGroup", group().with("MinSize", *min).with("MaxSize", (*max).max(*min)));
        }
        Act::HookGone => call("DeleteLifecycleHook", group().with("LifecycleHookName", TERMINATE_HOOK)),
        Act::TagsGone => {
            let keys = world.group(pool).map(|own| own.tags).unwrap_or_default().into_keys();
            let keys = keys.filter(|key| !tags::IDENTITY.contains(&key.as_str())).take(2).map(|key| {
                let tag = Tree::new().with("ResourceId", &pool.group);
                tag.with("ResourceType", "auto-scaling-group").with("Key", key)
            });
            call("DeleteTags", Tree::new().with("Tags", Tree::list(keys)));
        }
        Act::Unprotect(which) => {
            if let Some(id) = instance(*which) {
                let params = group().with("InstanceIds", vec![id]).with("ProtectedFromScaleIn", false);
                call("SetInstanceProtection", params);
            }
        }
        Act::Suspend(process, suspended) => {
            let action = if *suspended { "SuspendProcesses" } else { "ResumeProcesses" };
            call(action, group().with("ScalingProcesses", vec![*process]));
        }
        Act::Standby(which) => {
            if let Some(id) = instance(*which) {
                let params = group().with("InstanceIds", vec![id]);
                call("EnterStandby", params.with("ShouldDecrementDesiredCapacity", true));
            }
        }
        Act::BackFromStandby => {
            let resting = world.instances(pool).into_iter();
            let resting = resting.filter(|one| one.lifecycle_state.as_deref() == Some("Standby"));
            for one in resting {
                call("ExitStandby", group().with("InstanceIds", vec![one.id]));
            }
        }
        Act::Detach(which) => {
            if let Some(id) = instance(*which) {
                let params = group().with("InstanceIds", vec![id]);
                call("DetachInstances", params.with("ShouldDecrementDesiredCapacity", false));
            }
        }
        Act::Shortage(short) => {
            let there = world.instances(pool).len();
            world.simulator.set_capacity(&world.scope(), "*", "*", short.then_some(there));
        }
        _ => {}
    }
}

pub(super) fn mishap(world: &mut World, act: &Act) {
    match act {
        Act::Fault(operation, failure, times) => {
            let fault = match failure {
                Failure::Throttled => Fault::error(operation, 400, "Throttling", "Rate exceeded"),
                Failure::Internal => Fault::error(operation, 500, "InternalFailure", "An internal error."),
                Failure::Conflict => {
                    Fault::error(operation, 400, "ScalingActivityInProgress", "Something is in progress.")
                }
                Failure::Denied => Fault::error(operation, 403, "AccessDenied", "Not authorized."),
                Failure::LostReply => Fault::new(operation, Effect::LoseReply),
                Failure::LostRequest => Fault::new(operation, Effect::LoseRequest),
                Failure::Late(after_millis) => {
                    Fault::new(operation, Effect::ApplyLate { after_millis: *after_millis })
                }
            };
            // It hits the connection of the controller, not the calls of other actors.
            world.fault(fault.times(Some(*times)).by_access_key(MANAGER));
        }
        Act::EmptyLists(times) => world.empty_lists(*times),
        Act::Hang(times) => world.hang(*times),
        Act::Throttle(on) => {
            let mut settings = world.simulator.settings(Some(&world.scope()));
            settings.autoscaling_throttle = on.then_some(Throttle { burst: 3, per_second: 1 });
            world.simulator.set_settings(Some(&world.scope()), &settings);
        }
        Act::Conflicts(times) => world.api.add_conflicts(*times),
        Act::ApiFailures(times) => world.api.add_failures(*times),
        Act::Freeze(kind, frozen) => world.freeze(Kind::ALL[*kind], *frozen),
        Act::CoreDown(down) => world.stop_core(*down),
        Act::Restart => world.kill_process(),
        Act::CrashAfterWrite(count) => world.crash_after(*count),
        Act::CrashBeforeCall(count) => world.crash_before_call(*count),
        Act::LandLate(count, millis) => world.land_late(*count, *millis),
        Act::LoseLease => world.lose_lease(),
        _ => {}
    }
}
