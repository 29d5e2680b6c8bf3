//! Events as EventBridge wraps them.

pub(crate) const REGION: &str = "eu-west-1";
pub(crate) const ACCOUNT: &str = "123456789012";

/// An event as EventBridge wraps it, of the account and region of the tests.
pub(crate) fn event(source: &str, detail_type: &str, detail: &str) -> String {
    event_of(ACCOUNT, REGION, source, detail_type, detail)
}

pub(crate) fn event_of(account: &str, region: &str, source: &str, detail_type: &str, detail: &str) -> String {
    format!(
        r#"{{"version":"0","id":"1","detail-type":"{detail_type}","source":"{source}","account":"{account}",
            "time":"2024-10-04T00:00:00Z","region":"{region}","resources":[],"detail":{detail}}}"#
    )
}

pub(crate) fn launched(group: &str) -> String {
    let detail = format!(r#"{{"AutoScalingGroupName":"{group}","EC2InstanceId":"i-new"}}"#);
    event("aws.autoscaling", "EC2 Instance Launch Successful", &detail)
}

pub(crate) fn spot(instance: &str) -> String {
    let detail = format!(r#"{{"instance-id":"{instance}","instance-action":"terminate"}}"#);
    event("aws.ec2", "EC2 Spot Instance Interruption Warning", &detail)
}

/// An event of AWS Health about these instances.
pub(crate) fn health(status: &str, instances: &[&str]) -> String {
    let entities: Vec<String> = instances.iter().map(|id| format!(r#"{{"entityValue":"{id}"}}"#)).collect();
    let detail = format!(
        r#"{{"service":"EC2","eventTypeCode":"AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
            "eventTypeCategory":"scheduledChange","statusCode":"{status}","affectedEntities":[{}]}}"#,
        entities.join(",")
    );
    event("aws.health", "AWS Health Event", &detail)
}
