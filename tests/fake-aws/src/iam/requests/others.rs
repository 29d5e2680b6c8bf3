//! SQS, Systems Manager, Service Quotas and STS.

use super::asked::{Asked, action, with_request_tags};
use crate::{Call, Service, iam::Request, region::arn};

pub(super) fn of(call: &Call) -> Vec<Asked> {
    let requests = match call.service {
        Service::Sqs => vec![of_queue(call)],
        Service::Ssm => of_parameters(call),
        Service::Sts => of_role(call),
        _ => vec![Request::new(&action(call), "*")],
    };
    requests.into_iter().map(Asked::itself).collect()
}

fn of_queue(call: &Call) -> Request {
    let url = call.params.text_of("QueueUrl").unwrap_or_default();
    let name = call.params.text_of("QueueName").or_else(|| url.rsplit('/').next()).unwrap_or_default();
    // A batch is allowed by the permission of the single call.
    let action = action(call);
    Request::new(action.trim_end_matches("Batch"), &arn(&call.scope, "sqs", name))
}

fn of_parameters(call: &Call) -> Vec<Request> {
    let mut names = call.params.texts_of("Names");
    names.extend(call.params.text_of("Name").map(str::to_owned));
    let own = |name: &String| {
        let path = name.trim_start_matches('/');
        // A public parameter is of no account.
        let arn = if path.starts_with("aws/service/") {
            format!("arn:{}:ssm:{}::parameter/{path}", call.scope.partition(), call.scope.region)
        } else {
            arn(&call.scope, "ssm", &format!("parameter/{path}"))
        };
        Request::new(&action(call), &arn)
    };
    names.iter().map(own).collect()
}

fn of_role(call: &Call) -> Vec<Request> {
    let params = &call.params;
    let (Some(role), tags) = (params.text_of("RoleArn"), params.items_of("Tags")) else { return Vec::new() };
    let mut request = with_request_tags(Request::new(&action(call), role), tags);
    for key in params.texts_of("TransitiveTagKeys") {
        request = request.with("sts:TransitiveTagKeys", key);
    }
    let mut requests = Vec::new();
    if !tags.is_empty() {
        // It has not the condition keys that follow.
        requests.push(Request { action: "sts:TagSession".to_owned(), ..request.clone() });
    }
    for (key, name) in [("sts:ExternalId", "ExternalId"), ("sts:RoleSessionName", "RoleSessionName")] {
        if let Some(value) = params.text_of(name) {
            request = request.with(key, value);
        }
    }
    requests.insert(0, request);
    requests
}
