//! What a group launches: the port's `Launch` as a launch template or a mixed instances policy, and back.

use std::collections::BTreeSet;

use aws_sdk_autoscaling::types::{
    AutoScalingGroup, InstancesDistribution as AwsDistribution, LaunchTemplate, LaunchTemplateOverrides,
    LaunchTemplateSpecification, MixedInstancesPolicy,
};
use capasg_cloud::{InstancesDistribution, Launch, MixedInstances, TemplateRef};

/// Of the two members that name what is launched, the one to send; the other must be absent.
#[derive(Debug)]
pub(crate) struct LaunchMembers {
    /// `LaunchTemplate`.
    pub(crate) template: Option<LaunchTemplateSpecification>,
    /// `MixedInstancesPolicy`.
    pub(crate) mixed: Option<MixedInstancesPolicy>,
}

/// What to do with a maximum price that the group may already have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// The group is new: absent members have their defaults.
    Nothing,
    /// The group exists: absent members keep their values, and the empty string removes the price.
    Group,
}

/// The members to send for `launch`.
pub(crate) fn members(launch: &Launch, before: Before) -> LaunchMembers {
    let template = specification(&launch.template);
    let Some(mixed) = &launch.mixed else {
        return LaunchMembers { template: Some(template), mixed: None };
    };
    let overrides = mixed
        .instance_types
        .iter()
        .map(|instance_type| LaunchTemplateOverrides::builder().instance_type(instance_type).build())
        .collect();
    let launch_template = LaunchTemplate::builder()
        .launch_template_specification(template)
        .set_overrides(Some(overrides))
        .build();
    let policy = MixedInstancesPolicy::builder()
        .launch_template(launch_template)
        .instances_distribution(distribution(&mixed.distribution, before))
        .build();
    LaunchMembers { template: None, mixed: Some(policy) }
}

fn specification(template: &TemplateRef) -> LaunchTemplateSpecification {
    LaunchTemplateSpecification::builder()
        .launch_template_id(&template.id)
        .set_version(template.version.map(|number| number.to_string()))
        .build()
}

fn distribution(desired: &InstancesDistribution, before: Before) -> AwsDistribution {
    let price = match (&desired.spot_max_price, before) {
        (Some(price), _) => Some(price.clone()),
        (None, Before::Nothing) => None,
        (None, Before::Group) => Some(String::new()),
    };
    AwsDistribution::builder()
        .on_demand_base_capacity(desired.on_demand_base_capacity)
        .on_demand_percentage_above_base_capacity(desired.on_demand_percentage_above_base_capacity)
        .on_demand_allocation_strategy(&desired.on_demand_allocation_strategy)
        .spot_allocation_strategy(&desired.spot_allocation_strategy)
        .set_spot_max_price(price)
        .build()
}

/// What the group launches. A group that uses a launch configuration has an empty template id.
pub(crate) fn launch(group: &AutoScalingGroup) -> Launch {
    read(group.mixed_instances_policy(), group.launch_template())
}

/// What a policy, or else a template, launches.
pub(crate) fn read(
    policy: Option<&MixedInstancesPolicy>,
    template: Option<&LaunchTemplateSpecification>,
) -> Launch {
    match policy {
        Some(policy) => Launch {
            template: reference(
                policy.launch_template().and_then(LaunchTemplate::launch_template_specification),
            ),
            mixed: Some(mixed(policy)),
        },
        None => Launch { template: reference(template), mixed: None },
    }
}

fn reference(specification: Option<&LaunchTemplateSpecification>) -> TemplateRef {
    let member = |get: fn(&LaunchTemplateSpecification) -> Option<&str>| specification.and_then(get);
    TemplateRef {
        id: member(LaunchTemplateSpecification::launch_template_id).unwrap_or_default().to_owned(),
        version: version_number(specification),
    }
}

/// A version that is named by number; `$Latest` and `$Default` are none.
pub(crate) fn version_number(specification: Option<&LaunchTemplateSpecification>) -> Option<i64> {
    specification?.version()?.parse().ok()
}

/// The policy with AWS's defaults for absent members.
fn mixed(policy: &MixedInstancesPolicy) -> MixedInstances {
    let overrides = policy.launch_template().map(LaunchTemplate::overrides).unwrap_or_default();
    let distribution = policy.instances_distribution();
    let text = |get: fn(&AwsDistribution) -> Option<&str>, default: &str| {
        distribution.and_then(get).unwrap_or(default).to_owned()
    };
    let number =
        |get: fn(&AwsDistribution) -> Option<i32>, default| distribution.and_then(get).unwrap_or(default);
    MixedInstances {
        instance_types: overrides.iter().filter_map(|item| item.instance_type().map(str::to_owned)).collect(),
        other_members: other_members(overrides),
        distribution: InstancesDistribution {
            on_demand_base_capacity: number(AwsDistribution::on_demand_base_capacity, 0),
            on_demand_percentage_above_base_capacity: number(
                AwsDistribution::on_demand_percentage_above_base_capacity,
                100,
            ),
            on_demand_allocation_strategy: text(
                AwsDistribution::on_demand_allocation_strategy,
                "prioritized",
            ),
            spot_allocation_strategy: text(AwsDistribution::spot_allocation_strategy, "lowest-price"),
            spot_max_price: distribution
                .and_then(AwsDistribution::spot_max_price)
                .filter(|price| !price.is_empty())
                .map(str::to_owned),
        },
    }
}

/// The members of overrides besides `InstanceType`; an empty text is none.
fn other_members(overrides: &[LaunchTemplateOverrides]) -> BTreeSet<String> {
    let has = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
    let members = overrides.iter().flat_map(|item| {
        [
            ("ImageId", has(item.image_id())),
            ("InstanceRequirements", item.instance_requirements().is_some()),
            ("LaunchTemplateSpecification", item.launch_template_specification().is_some()),
            ("WeightedCapacity", has(item.weighted_capacity())),
        ]
    });
    members.filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned()).collect()
}
