//! EC2: launch templates, instances, and reads without resource-level permissions.

use std::collections::BTreeMap;

use super::asked::{Asked, action, with_request_tags, with_resource_tags};
use crate::{Call, iam::Request, region::Region};

pub(super) fn of(region: &Region, call: &Call) -> Vec<Asked> {
    let requests = match call.action.as_str() {
        "CreateLaunchTemplate" => create_template(region, call),
        "CreateLaunchTemplateVersion"
        | "DeleteLaunchTemplate"
        | "DeleteLaunchTemplateVersions"
        | "ModifyLaunchTemplate" => return vec![of_template(region, call)],
        "TerminateInstances" => {
            call.params.texts_of("InstanceIds").iter().map(|id| of_resource(region, call, id)).collect()
        }
        "GetConsoleOutput" | "DescribeInstanceAttribute" => {
            vec![of_resource(region, call, call.params.text_of("InstanceId").unwrap_or("*"))]
        }
        "CreateTags" | "DeleteTags" => call
            .params
            .texts_of("Resources")
            .iter()
            .map(|id| with_request_tags(of_resource(region, call, id), call.params.items_of("Tags")))
            .collect(),
        _ => vec![Request::new(&action(call), "*")],
    };
    requests.into_iter().map(Asked::itself).collect()
}

/// A template that is made has no id yet, and its tags ask for one more action.
fn create_template(region: &Region, call: &Call) -> Vec<Request> {
    let arn = region.arn("ec2", "launch-template/*");
    let specifications = call.params.items_of("TagSpecifications").iter();
    let mut own = specifications.filter(|own| own.text_of("ResourceType") == Some("launch-template"));
    let tags = own.next().map(|own| own.items_of("Tags").to_vec()).unwrap_or_default();
    let mut requests = vec![with_request_tags(Request::new(&action(call), &arn), &tags)];
    if !tags.is_empty() {
        let request = Request::new("ec2:CreateTags", &arn).with("ec2:CreateAction", &call.action);
        requests.push(with_request_tags(request, &tags));
    }
    requests
}

fn of_template(region: &Region, call: &Call) -> Asked {
    let (id, name) = (call.params.text_of("LaunchTemplateId"), call.params.text_of("LaunchTemplateName"));
    let template = region.state.template(id, name);
    let id = template.map(|template| template.id.as_str()).or(id).unwrap_or("*");
    let request = Request::new(&action(call), &region.arn("ec2", &format!("launch-template/{id}")));
    let tags = template.map(|template| template.tags.clone()).unwrap_or_default();
    let request = with_resource_tags(request, "ec2", &tags);
    Asked { is_absent: template.is_none(), ..Asked::itself(request) }
}

fn of_resource(region: &Region, call: &Call, id: &str) -> Request {
    let none = BTreeMap::new();
    let state = &region.state;
    let (kind, tags) = match id.split('-').next().unwrap_or_default() {
        "lt" => ("launch-template", state.templates.get(id).map(|own| &own.tags)),
        "subnet" => ("subnet", state.network.subnets.get(id).map(|own| &own.tags)),
        "sg" => ("security-group", state.network.security_groups.get(id).map(|own| &own.tags)),
        "ami" => ("image", state.network.images.get(id).map(|own| &own.tags)),
        _ => ("instance", state.instances.get(id).map(|own| &own.tags)),
    };
    let request = Request::new(&action(call), &region.arn("ec2", &format!("{kind}/{id}")));
    with_resource_tags(request, "ec2", tags.unwrap_or(&none))
}
