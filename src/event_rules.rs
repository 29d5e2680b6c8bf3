//! `capasg events`: what an event queue needs in AWS, as JSON for other tools.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::cli::{EventsArgs, EventsFormat};

/// SQS keeps a message for this long, in seconds: an older event has no value.
const RETENTION: u32 = 3600;

/// A rule of EventBridge: the end of its name, what it is for, and its pattern.
struct Rule {
    name: &'static str,
    about: &'static str,
    pattern: Value,
}

/// All events that are used. Those of other groups and instances are included: a pattern cannot tell them apart.
fn rules() -> Vec<Rule> {
    vec![
        Rule {
            name: "groups",
            about: "Instances that Auto Scaling groups launch, terminate or detach; lifecycle actions; instance refreshes",
            pattern: json!({
                "source": ["aws.autoscaling"],
                "detail-type": [
                    {"prefix": "EC2 Instance Launch "},
                    {"prefix": "EC2 Instance Terminate "},
                    {"prefix": "EC2 Instance Detach "},
                    "EC2 Instance-launch Lifecycle Action",
                    "EC2 Instance-terminate Lifecycle Action",
                    {"prefix": "EC2 Auto Scaling Instance Refresh "},
                ],
            }),
        },
        Rule {
            name: "spot",
            about: "Spot interruption warnings and rebalance recommendations",
            pattern: json!({
                "source": ["aws.ec2"],
                "detail-type": [
                    "EC2 Spot Instance Interruption Warning",
                    "EC2 Instance Rebalance Recommendation",
                ],
            }),
        },
        Rule {
            name: "ends",
            about: "Instances that terminate or stop",
            pattern: json!({
                "source": ["aws.ec2"],
                "detail-type": ["EC2 Instance State-change Notification"],
                "detail": {"state": ["stopping", "stopped", "shutting-down", "terminated"]},
            }),
        },
        Rule {
            name: "health",
            about: "Instances that AWS will retire or stop",
            pattern: json!({
                "source": ["aws.health"],
                "detail-type": ["AWS Health Event"],
                "detail": {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
            }),
        },
    ]
}

/// Prints the requested form.
pub fn run(args: &EventsArgs) -> Result<()> {
    let name = &args.queue_name;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    ensure!(
        !name.is_empty() && name.len() <= 57 && name.chars().all(plain),
        "--queue-name must have 1 to 57 characters (letters, digits, - and _), because the names of the \
         rules begin with it"
    );
    let value = match args.format {
        EventsFormat::CloudFormation => template(name),
        EventsFormat::Cli => inputs(args),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string_pretty(&value).context("cannot print")?).context("cannot print")
}

/// Who may send messages to the queue: EventBridge, for these rules of its own account. With other rules EventBridge would
/// send whatever their creator chooses.
fn policy(queue: &Value, account: &Value, rules: &[Value]) -> Value {
    json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Sid": "EventBridge",
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue,
            "Condition": {
                "StringEquals": {"aws:SourceAccount": account},
                "ArnLike": {"aws:SourceArn": rules},
            },
        }],
    })
}

fn template(name: &str) -> Value {
    let arn = json!({"Fn::GetAtt": ["Queue", "Arn"]});
    let rule_arns: Vec<Value> =
        rules().iter().map(|rule| json!({"Fn::GetAtt": [logical_id(rule), "Arn"]})).collect();
    let mut resources = json!({
        "Queue": {
            "Type": "AWS::SQS::Queue",
            "Properties": {
                "QueueName": name,
                "MessageRetentionPeriod": RETENTION,
                "SqsManagedSseEnabled": true,
            },
        },
        "QueuePolicy": {
            "Type": "AWS::SQS::QueuePolicy",
            "Properties": {
                "Queues": [{"Ref": "Queue"}],
                "PolicyDocument": policy(&arn, &json!({"Ref": "AWS::AccountId"}), &rule_arns),
            },
        },
    });
    for rule in rules() {
        resources[logical_id(&rule)] = json!({
            "Type": "AWS::Events::Rule",
            "Properties": {
                "Name": format!("{name}-{}", rule.name),
                "Description": rule.about,
                "EventPattern": rule.pattern,
                "Targets": [{"Id": name, "Arn": arn}],
            },
        });
    }
    json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Events for Cluster API Provider ASG, for one region",
        "Resources": resources,
        "Outputs": {"QueueUrl": {"Description": "The value of --event-queue", "Value": {"Ref": "Queue"}}},
    })
}

/// The name of a rule within the template.
fn logical_id(rule: &Rule) -> String {
    let mut id = String::from("Rule");
    id.extend(rule.name.chars().enumerate().map(|(i, c)| if i == 0 { c.to_ascii_uppercase() } else { c }));
    id
}

/// What `--cli-input-json` of the AWS command line accepts, call by call. Attributes and patterns are strings there.
fn inputs(args: &EventsArgs) -> Value {
    let EventsArgs { queue_name: name, region, account, .. } = args;
    let partition = if region.starts_with("cn-") {
        "aws-cn"
    } else if region.starts_with("us-gov-") {
        "aws-us-gov"
    } else {
        "aws"
    };
    let arn = format!("arn:{partition}:sqs:{region}:{account}:{name}");
    let rule_name = |rule: &Rule| format!("{name}-{}", rule.name);
    let rule_arn =
        |rule: Rule| json!(format!("arn:{partition}:events:{region}:{account}:rule/{}", rule_name(&rule)));
    let rule_arns: Vec<Value> = rules().into_iter().map(rule_arn).collect();
    let put_rules = rules().into_iter().map(|rule| {
        json!({
            "Name": rule_name(&rule),
            "Description": rule.about,
            "EventPattern": rule.pattern.to_string(),
            "State": "ENABLED",
        })
    });
    let put_targets = rules()
        .into_iter()
        .map(|rule| json!({"Rule": rule_name(&rule), "Targets": [{"Id": name, "Arn": arn}]}));
    json!({
        "create-queue": {
            "QueueName": name,
            "Attributes": {
                "MessageRetentionPeriod": RETENTION.to_string(),
                "SqsManagedSseEnabled": "true",
                "Policy": policy(&json!(arn), &json!(account), &rule_arns).to_string(),
            },
        },
        "put-rule": put_rules.collect::<Value>(),
        "put-targets": put_targets.collect::<Value>(),
    })
}
