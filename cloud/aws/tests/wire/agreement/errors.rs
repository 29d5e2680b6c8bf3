//! Errors of AWS: each code and each text that the port classifies, and others by their status.

/// Status, code and message.
pub const ERRORS: &[(u16, &str, &str)] = &[
    (400, "Throttling", "Rate exceeded"),
    (400, "ThrottlingException", "Rate exceeded"),
    (400, "ThrottledException", "Rate exceeded"),
    (503, "RequestLimitExceeded", "Request limit exceeded."),
    (400, "RequestThrottled", "Request is throttled."),
    (400, "RequestThrottledException", "Request is throttled."),
    (400, "TooManyRequestsException", "Too many requests"),
    (503, "EC2ThrottledException", "Throttled by EC2"),
    (503, "SlowDown", "Reduce your request rate."),
    (429, "Anything", "Too many"),
    (403, "AccessDenied", "User: arn:aws:iam::1:user/x is not authorized to perform: autoscaling:X"),
    (400, "AccessDeniedException", "no identity-based policy allows the action"),
    (403, "UnauthorizedOperation", "You are not authorized to perform this operation."),
    (401, "AuthFailure", "AWS was not able to validate the provided access credentials"),
    (403, "InvalidClientTokenId", "The security token included in the request is invalid."),
    (403, "SignatureDoesNotMatch", "The signature does not match."),
    (403, "ExpiredToken", "The security token included in the request is expired"),
    (400, "ExpiredTokenException", "The security token included in the request is expired"),
    (400, "RequestExpired", "Request has expired."),
    (400, "UnrecognizedClientException", "The security token included in the request is invalid."),
    (403, "OptInRequired", "You are not subscribed to this service."),
    (403, "MissingAuthenticationToken", "Request is missing Authentication Token"),
    (400, "LimitExceeded", "Template limit exceeded"),
    (400, "VcpuLimitExceeded", "You have requested more vCPU capacity than your current limit allows."),
    (400, "InstanceLimitExceeded", "You have requested more instances than your limit allows."),
    (400, "MaxSpotInstanceCountExceeded", "Max spot instance count exceeded"),
    (400, "LaunchTemplateLimitExceeded", "The maximum number of launch templates is reached."),
    (500, "InsufficientInstanceCapacity", "We currently do not have sufficient m7i.large capacity."),
    (400, "UnfulfillableCapacity", "There is no Spot capacity available that matches your request."),
    (400, "InsufficientCapacity", "Insufficient capacity"),
    (400, "AlreadyExists", "AutoScalingGroup by this name already exists"),
    (400, "ScalingActivityInProgress", "There are scaling activities in progress for that group."),
    (400, "ResourceInUse", "There are instances still in the group."),
    (500, "ResourceContention", "There is a pending update."),
    (400, "InstanceRefreshInProgress", "An Instance Refresh is already in progress"),
    (400, "IncorrectState", "The image is not in the state available."),
    (400, "InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use."),
    (400, "ParameterNotFound", "Parameter /x not found."),
    (400, "QueueDoesNotExist", "The specified queue does not exist."),
    (400, "NoSuchResourceException", "The request failed because the specified quota does not exist."),
    (400, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist."),
    (400, "InvalidLaunchTemplateId.NotFound", "The specified launch template does not exist."),
    (400, "InvalidLaunchTemplateName.NotFoundException", "The name does not exist."),
    (400, "InvalidAMIID.NotFound", "The image id '[ami-1]' does not exist"),
    (400, "InvalidAMIID.Unavailable", "The image ID '[ami-1]' is no longer available"),
    (400, "ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found"),
    (400, "ValidationError", "AutoScalingGroup name not found - AutoScalingGroup 'x' not found"),
    (400, "ValidationError", "Instance Id not found - No managed instance found for instance ID: i-1"),
    (400, "ValidationError", "No active Lifecycle Action found with instance ID i-1"),
    (400, "ValidationError", "No Lifecycle Hook found with name: x for group: y"),
    (400, "ValidationError", "The AutoScaling group may not be modified while it is pending delete"),
    (400, "ValidationError", "The instance i-1 is not in InService or EnteringStandby or Standby."),
    (400, "ValidationError", "The subnet ID 'subnet-1' does not exist: <a> & \"b\""),
    (400, "IrreversibleInstanceRefresh", "The instance refresh cannot be rolled back."),
    (400, "InvalidParameterValue", "Invalid value"),
    (404, "NoSuchThing", " with space around "),
    (500, "InternalFailure", "An internal error has occurred"),
    (500, "InternalError", ""),
    (503, "Unavailable", "The service is unavailable. Please try again shortly."),
    (502, "BadGateway", "Bad gateway"),
];

/// Where the port classifies errors.
const RULES: &str = include_str!("../../../../src/error.rs");

/// What the port looks for stands between quotes: a code or a part of one, or a part of a message.
#[test]
fn each_code_and_text_that_the_port_classifies_is_listed() {
    let (_, rules) = RULES.split_once("fn classify(").unwrap();
    let (rules, _) = rules.split_once("#[cfg(test)]").unwrap();
    let pieces: Vec<&str> = rules.split('"').collect();
    let looked_for = pieces.chunks_exact(2).map(|pair| (pair[0].ends_with("code.contains("), pair[1]));
    let missing: Vec<&str> = looked_for
        .filter(|(part, text)| {
            let found = |code: &str, message: &str| {
                code == *text || *part && code.contains(text) || message.contains(text)
            };
            !ERRORS.iter().any(|(_, code, message)| found(code, message))
        })
        .map(|(_, text)| text)
        .collect();
    assert!(pieces.len() > 60 && missing.is_empty(), "{missing:?}");
}
