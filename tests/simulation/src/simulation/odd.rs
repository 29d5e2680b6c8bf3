//! Lets happen what AWS seldom does: one call that fails for long, instances from other versions, launches before ends,
//! stopped machines.

use capasg_fake_aws::{Effect, Fault, Service, Tree};

use super::{
    act::{Act, Rejection},
    placement::one,
};
use crate::{Pool, World};

pub(super) fn perform(world: &mut World, pool: &Pool, act: &Act) {
    match act {
        Act::Outage(operation, rejection) => world.fault(outage(operation, *rejection)),
        Act::OutageEnds(operation, rejection) => {
            world.simulator.remove_fault(&outage(operation, *rejection));
        }
        Act::Unknown(which) => {
            if let Some(id) = one(world.in_service(pool), *which) {
                let words =
                    format!("Instance Id not found - No managed instance found for instance ID: {id}");
                let fault = Fault::error(END, 400, "ValidationError", &words);
                world.fault(fault.for_instance(&id).times(None));
            }
        }
        Act::Known => {
            for fault in world.simulator.faults() {
                if fault.operation == END && fault.instance.is_some() {
                    world.simulator.remove_fault(&fault);
                }
            }
        }
        Act::OlderVersions(on) => {
            let mut settings = world.simulator.settings(Some(&world.scope()));
            settings.launches_older_version = *on;
            world.simulator.set_settings(Some(&world.scope()), &settings);
        }
        Act::LaunchByOthers(which) => launch_by_others(world, pool, *which),
        Act::VersionByOthers(image) => version_by_others(world, pool, image),
        Act::Maintenance(least, most) => {
            let policy = Tree::new().with("MinHealthyPercentage", *least).with("MaxHealthyPercentage", *most);
            update(world, pool, "InstanceMaintenancePolicy", policy);
        }
        Act::Rebalances(on) => update(world, pool, "CapacityRebalance", (*on).into()),
        Act::Stop(which) => {
            if let Some(id) = one(world.in_service(pool), *which) {
                world.simulator.stop(&world.scope(), &id);
            }
        }
        _ => {}
    }
}

const END: &str = "TerminateInstanceInAutoScalingGroup";

/// A `MachineHealthCheck` with `nodeStartupTimeoutSeconds`, or a user, replaces what can never join.
pub(super) fn replace_the_lost(world: &World, pool: &Pool) {
    let lost = world.core.state().expired.clone();
    for (name, machine) in world.machines(pool) {
        if !machine.is_deleting() && lost.iter().any(|id| name.ends_with(id.as_str())) {
            world.delete_machine(&name);
        }
    }
}

/// What AWS answers to others does not matter.
fn update(world: &World, pool: &Pool, name: &str, value: Tree) {
    let params = Tree::new().with("AutoScalingGroupName", &pool.group).with(name, value);
    drop(world.aws(Service::AutoScaling, "UpdateAutoScalingGroup", params));
}

/// Every call of an operation fails, in the service's own words. Codes: common errors of Auto Scaling, EC2, SQS and
/// Systems Manager (API references).
fn outage(operation: &str, rejection: Rejection) -> Fault {
    let ec2 = operation.contains("LaunchTemplate")
        || ["Instances", "InstanceTypes", "Subnets", "SecurityGroups", "Images"]
            .iter()
            .any(|what| operation.strip_prefix("Describe") == Some(what));
    let (status, code, words) = match (rejection, ec2) {
        (Rejection::Invalid, false) => (400, "ValidationError", "The parameter is not valid."),
        (Rejection::Invalid, true) => (400, "InvalidParameterValue", "The value is not valid."),
        (Rejection::Denied, false) => (403, "AccessDenied", "User is not authorized to perform this action."),
        (Rejection::Denied, true) => {
            (403, "UnauthorizedOperation", "You are not authorized to perform this operation.")
        }
        (Rejection::Internal, false) => (500, "InternalFailure", "An internal error. Please try again."),
        (Rejection::Internal, true) => (500, "InternalError", "An internal error has occurred."),
    };
    let effect = Effect::Error { status, code: code.to_owned(), message: words.to_owned() };
    Fault::new(operation, effect).times(None)
}

/// The group launches from an older version, or from `$Latest`.
fn launch_by_others(world: &World, pool: &Pool, which: u64) {
    let Some((template, pinned)) = world.simulator.pinned(&world.scope(), &pool.group) else { return };
    let templates = world.dump().templates;
    let versions = templates.iter().find(|own| own.id == template).map(|own| &own.versions);
    let older = versions.and_then(|all| all.keys().copied().filter(|number| *number != pinned).max());
    let version = match older {
        Some(number) if !which.is_multiple_of(3) => number.to_string(),
        _ => "$Latest".to_owned(),
    };
    launch_from(world, pool, &template, &version);
}

/// The group launches from a version that is like its own, with another image.
fn version_by_others(world: &World, pool: &Pool, image: &str) {
    let Some((template, pinned)) = world.simulator.pinned(&world.scope(), &pool.group) else { return };
    let params = Tree::new()
        .with("LaunchTemplateId", &template)
        .with("SourceVersion", pinned.to_string())
        .with("LaunchTemplateData", Tree::new().with("ImageId", image));
    let made = world.aws(Service::Ec2, "CreateLaunchTemplateVersion", params);
    let number = made.ok().and_then(|reply| {
        reply.at("LaunchTemplateVersion.VersionNumber").and_then(Tree::text).map(str::to_owned)
    });
    if let Some(number) = number {
        launch_from(world, pool, &template, &number);
    }
}

/// Types and purchase options stay.
fn launch_from(world: &World, pool: &Pool, template: &str, version: &str) {
    let specification = Tree::new().with("LaunchTemplateId", template).with("Version", version);
    let names = Tree::new().with("AutoScalingGroupNames", vec![&pool.group]);
    let Ok(reply) = world.aws(Service::AutoScaling, "DescribeAutoScalingGroups", names) else { return };
    let Some(group) = reply.items_of("AutoScalingGroups").first() else { return };
    match group.at("MixedInstancesPolicy.LaunchTemplate") {
        None => update(world, pool, "LaunchTemplate", specification),
        Some(before) => {
            let overrides = before.get("Overrides").cloned();
            let source = Tree::new()
                .with("LaunchTemplateSpecification", specification)
                .with_opt("Overrides", overrides);
            update(world, pool, "MixedInstancesPolicy", Tree::new().with("LaunchTemplate", source));
        }
    }
}
