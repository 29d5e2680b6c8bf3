//! What a launch from a launch template asks of EC2 and IAM.

use super::asked::{Asked, Via, with_request_tags, with_resource_tags};
use crate::{
    Tree,
    ec2::template_data,
    iam::{Iam, Request},
    region::Region,
};

/// A Spot Instance request, which exists only for launches of Spot Instances: it is known by its tags.
const SPOT_REQUEST: &str = "spot-instances-request";

/// The requests of a launch from a version of a template, into these subnets; `None` if there is no such version.
pub(super) fn from(
    region: &Region,
    iam: &Iam,
    id: &str,
    version: &str,
    subnets: &[String],
) -> Option<Vec<Asked>> {
    let template = region.state.template(Some(id), None)?;
    let data = &template.version(version)?.1.data;
    let template_arn = region.arn("ec2", &format!("launch-template/{id}"));
    let mut requests = Vec::new();
    // Of the resources of a launch only subnets come from the group.
    let run = |resource: &str, is_of_template: bool| {
        Request::new("ec2:RunInstances", resource)
            .with("ec2:LaunchTemplate", &template_arn)
            .with("ec2:IsLaunchTemplateResource", is_of_template.to_string())
    };
    requests.push(with_resource_tags(run(&template_arn, true), "ec2", &template.tags));
    let network = &region.state.network;
    if let Some(image) = template_data::image(&region.state, data) {
        let arn = format!("arn:{}:ec2:{}::image/{image}", region.scope.partition(), region.scope.region);
        let tags = network.images.get(&image).map(|image| image.tags.clone()).unwrap_or_default();
        requests.push(with_resource_tags(run(&arn, true), "ec2", &tags));
    }
    let own = |resource: &str| region.arn("ec2", resource);
    let tags_of = |kind: &str| {
        let all = data.items_of("TagSpecifications").iter();
        let mut all = all.filter(|own| own.text_of("ResourceType") == Some(kind));
        all.next().map(|own| own.items_of("Tags").to_vec()).unwrap_or_default()
    };
    for kind in ["instance", "volume", "network-interface"] {
        requests.push(with_request_tags(run(&own(&format!("{kind}/*")), true), &tags_of(kind)));
    }
    let of_spot_request = tags_of(SPOT_REQUEST);
    if !of_spot_request.is_empty() {
        requests.push(with_request_tags(run(&own(&format!("{SPOT_REQUEST}/*")), true), &of_spot_request));
    }
    for group in template_data::security_groups(data) {
        let tags = network.security_groups.get(&group).map(|group| group.tags.clone()).unwrap_or_default();
        requests.push(with_resource_tags(run(&own(&format!("security-group/{group}")), true), "ec2", &tags));
    }
    for subnet in subnets {
        let tags = network.subnets.get(subnet).map(|subnet| subnet.tags.clone()).unwrap_or_default();
        requests.push(with_resource_tags(run(&own(&format!("subnet/{subnet}")), false), "ec2", &tags));
    }
    requests.extend(data.text_of("KeyName").map(|key| run(&own(&format!("key-pair/{key}")), true)));
    let devices = data.items_of("BlockDeviceMappings").iter();
    for snapshot in devices.filter_map(|device| device.at("Ebs.SnapshotId").and_then(Tree::text)) {
        let arn =
            format!("arn:{}:ec2:{}::snapshot/{snapshot}", region.scope.partition(), region.scope.region);
        requests.push(run(&arn, true));
    }
    for kind in ["instance", "volume", "network-interface", SPOT_REQUEST] {
        let tags = tags_of(kind);
        if !tags.is_empty() {
            let request = Request::new("ec2:CreateTags", &own(&format!("{kind}/*")));
            requests.push(with_request_tags(request.with("ec2:CreateAction", "RunInstances"), &tags));
        }
    }
    if let Some(profile) = template_data::profile(data) {
        requests.push(pass_role(region, iam, &profile));
    }
    let via = Via::Template(id.to_owned());
    Some(requests.into_iter().map(|request| Asked { request, via: via.clone(), is_absent: false }).collect())
}

/// The role of an instance profile goes to EC2. Unless a test says otherwise it is named as the profile is.
fn pass_role(region: &Region, iam: &Iam, profile: &str) -> Request {
    let account = &region.scope.account;
    let declared = iam.profiles.get(&(account.clone(), profile.to_owned()));
    let role = declared.map_or_else(
        || format!("arn:{}:iam::{account}:role/{profile}", region.scope.partition()),
        Clone::clone,
    );
    let service =
        if region.scope.partition() == "aws-cn" { "ec2.amazonaws.com.cn" } else { "ec2.amazonaws.com" };
    Request::new("iam:PassRole", &role).with("iam:PassedToService", service)
}
