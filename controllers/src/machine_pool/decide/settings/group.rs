//! The attributes that `UpdateAutoScalingGroup` sets, except bounds: what is launched, and the other settings.

use capasg_cloud::{
    GroupChange, GroupSettings, InstancesDistribution, MaintenancePolicy, MixedInstances, TemplateRef,
};

use crate::machine_pool::decide::settings::attribute::{Correction, List};
use crate::machine_pool::decide::settings::text::{LAUNCH_TEMPLATE, NOTHING, joined, maybe};

/// Adds the settings.
pub(super) fn compare(list: &mut List, wanted: &GroupSettings, have: &GroupSettings) {
    launch(list, wanted, have);
    // Subnets that could not be resolved are not desired.
    if !wanted.subnets.is_empty() {
        let correct = |change: &mut GroupChange, wanted: &GroupSettings| {
            change.subnets = Some(wanted.subnets.clone());
        };
        list.add("spec.subnets", (&wanted.subnets, &have.subnets), joined, Correction::Settings(correct));
    }
    list.add(
        "spec.group.healthCheckTypes",
        (&wanted.health_check_types, &have.health_check_types),
        joined,
        Correction::Settings(|change, wanted| {
            change.health_check_types = Some(wanted.health_check_types.clone());
        }),
    );
    list.add(
        "spec.group.healthCheckGracePeriodSeconds",
        (&wanted.health_check_grace_period, &have.health_check_grace_period),
        ToString::to_string,
        Correction::Settings(|change, wanted| {
            change.health_check_grace_period = Some(wanted.health_check_grace_period);
        }),
    );
    list.add(
        "spec.group.defaultCooldownSeconds",
        (&wanted.default_cooldown, &have.default_cooldown),
        ToString::to_string,
        Correction::Settings(|change, wanted| change.default_cooldown = Some(wanted.default_cooldown)),
    );
    list.add(
        "spec.group.defaultInstanceWarmupSeconds",
        (&wanted.default_instance_warmup, &have.default_instance_warmup),
        |seconds| maybe(seconds.as_ref()),
        Correction::Settings(|change, wanted| {
            change.default_instance_warmup = Some(wanted.default_instance_warmup.unwrap_or(-1));
        }),
    );
    list.add(
        "scale-in protection of new instances",
        (&wanted.protect_new_instances, &have.protect_new_instances),
        |on| if *on { "on" } else { "off" }.to_owned(),
        Correction::Settings(|change, wanted| {
            change.protect_new_instances = Some(wanted.protect_new_instances);
        }),
    );
    // Both make AWS launch instances before it terminates others, which the controller would take for a surplus.
    list.add(
        "CapacityRebalance of the Auto Scaling group",
        (&wanted.capacity_rebalance, &have.capacity_rebalance),
        |on| if *on { "on" } else { "off" }.to_owned(),
        Correction::Settings(|change, wanted| change.capacity_rebalance = Some(wanted.capacity_rebalance)),
    );
    list.add(
        "instance maintenance policy",
        (&wanted.maintenance_policy, &have.maintenance_policy),
        |policy| policy.map_or(NOTHING.to_owned(), percentages),
        Correction::Settings(|change, wanted| {
            change.maintenance_policy = Some(wanted.maintenance_policy.unwrap_or(MaintenancePolicy::NONE));
        }),
    );
    // A retained instance runs on outside the group's desired capacity until somebody terminates it.
    list.add(
        "InstanceLifecyclePolicy, retention trigger TerminateHookAbandon",
        (&wanted.retains_abandoned, &have.retains_abandoned),
        |retains| if *retains { "retain" } else { "terminate" }.to_owned(),
        Correction::Settings(|change, wanted| change.retains_abandoned = Some(wanted.retains_abandoned)),
    );
}

fn percentages(policy: MaintenancePolicy) -> String {
    let MaintenancePolicy { min_healthy_percentage: min, max_healthy_percentage: max } = policy;
    format!("{min}% to {max}%")
}

/// Template version, types and purchase options are one parameter of the call.
fn launch(list: &mut List, wanted: &GroupSettings, have: &GroupSettings) {
    let (wanted, have) = (&wanted.launch, &have.launch);
    // Without a version of our launch template, the group keeps what it launches.
    if wanted.template.version.is_none() {
        return;
    }
    let text = |template: &TemplateRef| template_text(template, &wanted.template.id);
    list.add(LAUNCH_TEMPLATE, (&wanted.template, &have.template), text, Correction::Launch);
    let (wanted, have) = match (&wanted.mixed, &have.mixed) {
        (None, None) => return,
        (Some(wanted), Some(have)) => (wanted, have),
        (wanted, have) => {
            let text = |policy: &Option<MixedInstances>| {
                policy.as_ref().map_or_else(
                    || "the instance type of the launch template".to_owned(),
                    |policy| {
                        format!(
                            "{}; {}",
                            policy.instance_types.join(", "),
                            distribution(&policy.distribution)
                        )
                    },
                )
            };
            list.add(
                "spec.instanceTypes, spec.instancesDistribution",
                (wanted, have),
                text,
                Correction::Launch,
            );
            return;
        }
    };
    let types = (&wanted.instance_types, &have.instance_types);
    list.add("spec.instanceTypes", types, |types| types.join(", "), Correction::Launch);
    // An override may name another launch template, or a weight with which an instance counts as several.
    let members = (&wanted.other_members, &have.other_members);
    list.add("MixedInstancesPolicy, other members of Overrides", members, joined, Correction::Launch);
    let (wanted, have) = (&wanted.distribution, &have.distribution);
    let path = |field: &str| format!("spec.instancesDistribution.{field}");
    list.add(
        path("onDemandBaseCapacity"),
        (&wanted.on_demand_base_capacity, &have.on_demand_base_capacity),
        ToString::to_string,
        Correction::Launch,
    );
    list.add(
        path("onDemandPercentageAboveBaseCapacity"),
        (&wanted.on_demand_percentage_above_base_capacity, &have.on_demand_percentage_above_base_capacity),
        ToString::to_string,
        Correction::Launch,
    );
    list.add(
        path("onDemandAllocationStrategy"),
        (&wanted.on_demand_allocation_strategy, &have.on_demand_allocation_strategy),
        Clone::clone,
        Correction::Launch,
    );
    list.add(
        path("spotAllocationStrategy"),
        (&wanted.spot_allocation_strategy, &have.spot_allocation_strategy),
        Clone::clone,
        Correction::Launch,
    );
    let price = (&wanted.spot_max_price, &have.spot_max_price);
    list.add(path("spotMaxPrice"), price, |price| maybe(price.as_ref()), Correction::Launch);
}

/// A launch template version as a preview lists it. `ours` is the ID of the pool's own launch template.
pub fn template_text(template: &TemplateRef, ours: &str) -> String {
    let version = template
        .version
        .map_or_else(|| "version $Latest or $Default".to_owned(), |number| format!("version {number}"));
    match template.id.as_str() {
        "" => NOTHING.to_owned(),
        id if id == ours => version,
        id => format!("{id} {version}"),
    }
}

fn distribution(wanted: &InstancesDistribution) -> String {
    let InstancesDistribution {
        on_demand_base_capacity: base,
        on_demand_percentage_above_base_capacity: percentage,
        on_demand_allocation_strategy: on_demand,
        spot_allocation_strategy: spot,
        spot_max_price: price,
    } = wanted;
    let price = maybe(price.as_ref());
    format!(
        "On-Demand base {base}, {percentage}% On-Demand above base ({on_demand}), Spot {spot}, maximum Spot \
         price {price}"
    )
}
