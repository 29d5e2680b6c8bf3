//! Auto Scaling: calls about groups, and the launch templates and roles that they use.

use std::collections::BTreeMap;

use super::{
    asked::{Asked, Via, action, with_request_tags, with_resource_tags},
    launch,
};
use crate::{
    Call, Tree,
    autoscaling::Group,
    iam::{Iam, Request},
    region::Region,
};

pub(super) fn of(region: &Region, iam: &Iam, call: &Call) -> Vec<Asked> {
    if call.action.starts_with("Describe") {
        return vec![Asked::itself(Request::new(&action(call), "*"))];
    }
    let mut asked: Vec<Asked> = groups(region, call)
        .into_iter()
        .map(|name| {
            let exists = name.as_ref().is_some_and(|name| region.state.groups.contains_key(name));
            let request = with_keys(about(region, call, name.as_deref()), call);
            let is_absent = !exists && call.action != "CreateAutoScalingGroup";
            Asked { is_absent, ..Asked::itself(request) }
        })
        .collect();
    if call.action == "CreateAutoScalingGroup" {
        asked.extend(service_linked_roles(iam, region, call));
    }
    asked.extend(launches(region, iam, call));
    asked
}

/// The names of the groups that a call changes; `None` for one that is not known.
fn groups(region: &Region, call: &Call) -> Vec<Option<String>> {
    let params = &call.params;
    if let Some(name) = params.text_of("AutoScalingGroupName") {
        return vec![Some(name.to_owned())];
    }
    let tagged = params.items_of("Tags").iter().filter_map(|tag| tag.text_of("ResourceId"));
    let mut names: Vec<String> = tagged.map(str::to_owned).collect();
    let instance = params.text_of("InstanceId").and_then(|id| region.state.instances.get(id));
    names.extend(instance.and_then(|instance| instance.group.as_ref()).map(|own| own.group.clone()));
    names.sort();
    names.dedup();
    if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() }
}

/// A call's own action on a group. One that does not exist yet has no id and no tags.
fn about(region: &Region, call: &Call, name: Option<&str>) -> Request {
    let group = name.and_then(|name| region.state.groups.get(name));
    let arn = group.map_or_else(
        || {
            let resource = format!("autoScalingGroup:*:autoScalingGroupName/{}", name.unwrap_or("*"));
            region.arn("autoscaling", &resource)
        },
        |group| group.arn.clone(),
    );
    let tags: BTreeMap<String, String> = group
        .into_iter()
        .flat_map(|group| &group.tags)
        .map(|(key, tag)| (key.clone(), tag.value.clone()))
        .collect();
    with_resource_tags(Request::new(&action(call), &arn), "autoscaling", &tags)
}

/// Adds what the request itself says.
fn with_keys(request: Request, call: &Call) -> Request {
    let params = &call.params;
    let mut request = with_request_tags(request, params.items_of("Tags"));
    for (key, name) in [("autoscaling:MinSize", "MinSize"), ("autoscaling:MaxSize", "MaxSize")] {
        if let Some(value) = params.text_of(name) {
            request = request.with(key, value);
        }
    }
    if let Some(subnets) = params.text_of("VPCZoneIdentifier") {
        for subnet in subnets.split(',').map(str::trim) {
            request = request.with("autoscaling:VPCZoneIdentifiers", subnet);
        }
    }
    for kind in overrides(params).iter().filter_map(|own| own.text_of("InstanceType")) {
        request = request.with("autoscaling:InstanceTypes", kind);
    }
    let specifications = specifications(params);
    if !specifications.is_empty() {
        // `$Latest`, `$Default` and no version at all are not a version that is specified.
        let is_number = |own: &&Tree| own.text_of("Version").is_some_and(|text| text.parse::<u64>().is_ok());
        let all = specifications.iter().all(is_number);
        request = request.with("autoscaling:LaunchTemplateVersionSpecified", all.to_string());
    }
    request
}

/// Where a request says what to launch: itself, or the desired configuration of a refresh.
fn source(params: &Tree) -> &Tree {
    params.get("DesiredConfiguration").unwrap_or(params)
}

fn overrides(params: &Tree) -> &[Tree] {
    source(params).at("MixedInstancesPolicy.LaunchTemplate.Overrides").map_or(&[], Tree::items)
}

/// The launch templates that a request names.
fn specifications(params: &Tree) -> Vec<&Tree> {
    let source = source(params);
    let mut all: Vec<&Tree> = source.get("LaunchTemplate").into_iter().collect();
    all.extend(source.at("MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification"));
    all.extend(overrides(params).iter().filter_map(|own| own.get("LaunchTemplateSpecification")));
    all
}

/// What AWS checks "when an Auto Scaling group is created or updated using a launch template" (user guide).
fn launches(region: &Region, iam: &Iam, call: &Call) -> Vec<Asked> {
    let params = &call.params;
    let group = params.text_of("AutoScalingGroupName").and_then(|name| region.state.groups.get(name));
    let mut named: Vec<(String, String)> = Vec::new();
    for specification in specifications(params) {
        let (id, name) =
            (specification.text_of("LaunchTemplateId"), specification.text_of("LaunchTemplateName"));
        // One that does not exist is refused by other words.
        if let Some(template) = region.state.template(id, name) {
            let version = specification.text_of("Version").unwrap_or("$Default");
            named.push((template.id.clone(), version.to_owned()));
        }
    }
    if named.is_empty()
        && source(params).get("MixedInstancesPolicy").is_some()
        && let Some(own) = group.map(|group| group.source.template())
    {
        named.push((own.id.clone(), own.version.clone()));
    }
    let subnets = subnets(group, params);
    let each =
        named.into_iter().filter_map(|(id, version)| launch::from(region, iam, &id, &version, &subnets));
    each.flatten().collect()
}

fn subnets(group: Option<&Group>, params: &Tree) -> Vec<String> {
    match params.text_of("VPCZoneIdentifier") {
        Some(given) => given.split(',').map(|subnet| subnet.trim().to_owned()).collect(),
        None => group.map(|group| group.subnets.clone()).unwrap_or_default(),
    }
}

/// The roles that AWS makes with the first group and the first Spot request of an account.
fn service_linked_roles(iam: &Iam, region: &Region, call: &Call) -> Vec<Asked> {
    let spot = call.params.at("MixedInstancesPolicy.InstancesDistribution").is_some_and(|own| {
        own.number_of("OnDemandPercentageAboveBaseCapacity").is_some_and(|percentage| percentage < 100)
    });
    let mut roles = vec![("autoscaling.amazonaws.com", "AWSServiceRoleForAutoScaling")];
    roles.extend(spot.then_some(("spot.amazonaws.com", "AWSServiceRoleForEC2Spot")));
    let (partition, account) = (region.scope.partition(), &region.scope.account);
    roles
        .into_iter()
        .filter(|(service, _)| !iam.service_linked.contains(&(account.clone(), (*service).to_owned())))
        .map(|(service, role)| {
            let arn = format!("arn:{partition}:iam::{account}:role/aws-service-role/{service}/{role}");
            let request =
                Request::new("iam:CreateServiceLinkedRole", &arn).with("iam:AWSServiceName", service);
            Asked { request, via: Via::ServiceLinkedRole, is_absent: false }
        })
        .collect()
}
