//! The envelopes of EventBridge: strict about what each kind promises, lenient about new kinds and members
//! (Amazon EventBridge events reference; Amazon EC2 Auto Scaling User Guide, "event reference").

use chrono::{DateTime, Utc};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{CloudEvent, EventKind};

/// A message that is no event, or misses what its kind promises. It says what is wrong and nothing of the message's text,
/// since its sender is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(pub &'static str);

#[derive(Deserialize)]
struct Envelope {
    source: String,
    #[serde(rename = "detail-type")]
    detail_type: String,
    account: String,
    region: String,
    time: DateTime<Utc>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    detail: Value,
}

/// Of `aws.autoscaling`.
#[derive(Deserialize)]
struct OfGroup {
    #[serde(rename = "AutoScalingGroupName")]
    group: String,
    /// Empty where a launch failed early.
    #[serde(rename = "EC2InstanceId", default)]
    instance: Option<String>,
}

/// Of `aws.ec2`.
#[derive(Deserialize)]
struct OfInstance {
    #[serde(rename = "instance-id")]
    instance: String,
}

/// Of `aws.health`.
#[derive(Deserialize)]
struct OfHealth {
    #[serde(rename = "eventTypeCode")]
    code: String,
    #[serde(rename = "statusCode", default)]
    status: Option<String>,
    #[serde(rename = "affectedEntities", default)]
    entities: Vec<Entity>,
}

#[derive(Deserialize)]
struct Entity {
    #[serde(rename = "entityValue")]
    value: String,
}

/// What AWS announces before it terminates, stops or retires an instance.
const RETIREMENTS: [&str; 6] = [
    "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
    "AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED",
    "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
    "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_EXPEDITED",
    "AWS_EC2_INSTANCE_STOP_SCHEDULED",
    "AWS_EC2_INSTANCE_TERMINATION_SCHEDULED",
];

fn detail<T: DeserializeOwned>(value: Value, missing: &'static str) -> Result<T, Unreadable> {
    serde_json::from_value(value).map_err(|_| Unreadable(missing))
}

impl CloudEvent {
    /// Reads the body of a message. A kind that this version does not know is [`EventKind::Unknown`].
    ///
    /// # Errors
    /// If it is no envelope of EventBridge, or misses what its kind promises.
    pub fn parse(body: &str) -> Result<Self, Unreadable> {
        let envelope: Envelope =
            serde_json::from_str(body).map_err(|_| Unreadable("not an EventBridge event"))?;
        let Envelope { source, detail_type, account, region, time, resources, detail: value } = envelope;
        let mut event =
            Self { account, region, at: time, kind: EventKind::Unknown, group: None, instances: Vec::new() };
        match source.as_str() {
            "aws.autoscaling" => {
                let OfGroup { group, instance } = detail(value, "its detail has no AutoScalingGroupName")?;
                event.kind = of_group(&detail_type);
                event.group = Some(group);
                event.instances.extend(instance.filter(|id| is_instance(id)));
            }
            "aws.ec2" => {
                let kind = of_instance(&detail_type);
                // EC2 has many others, of volumes for example.
                if kind != EventKind::Unknown {
                    event.kind = kind;
                    event
                        .instances
                        .push(detail::<OfInstance>(value, "its detail has no instance-id")?.instance);
                }
            }
            "aws.health" if detail_type == "AWS Health Event" => {
                let OfHealth { code, status, entities } = detail(value, "its detail has no eventTypeCode")?;
                event.kind = match (RETIREMENTS.contains(&code.as_str()), status.as_deref()) {
                    (true, Some("closed")) => EventKind::RetirementClosed,
                    (true, _) => EventKind::ScheduledRetirement,
                    (false, _) => EventKind::Health,
                };
                let named = resources.iter().filter_map(|arn| arn.rsplit('/').next().map(str::to_owned));
                let named = entities.into_iter().map(|entity| entity.value).chain(named);
                event.instances.extend(named.filter(|id| is_instance(id)));
                event.instances.sort();
                event.instances.dedup();
            }
            _ => {}
        }
        Ok(event)
    }
}

fn of_group(detail_type: &str) -> EventKind {
    match detail_type {
        "EC2 Instance Launch Successful" => EventKind::Launched,
        "EC2 Instance Launch Unsuccessful" => EventKind::LaunchFailed,
        "EC2 Instance Terminate Successful" => EventKind::Terminated,
        "EC2 Instance Terminate Unsuccessful" => EventKind::TerminationFailed,
        "EC2 Instance-launch Lifecycle Action" | "EC2 Instance-terminate Lifecycle Action" => {
            EventKind::LifecycleAction
        }
        refresh if refresh.starts_with("EC2 Auto Scaling Instance Refresh ") => EventKind::InstanceRefresh,
        _ => EventKind::Group,
    }
}

fn of_instance(detail_type: &str) -> EventKind {
    match detail_type {
        "EC2 Instance State-change Notification" => EventKind::StateChange,
        "EC2 Spot Instance Interruption Warning" => EventKind::SpotInterruption,
        "EC2 Instance Rebalance Recommendation" => EventKind::RebalanceRecommendation,
        _ => EventKind::Unknown,
    }
}

fn is_instance(id: &str) -> bool {
    id.starts_with("i-")
}
