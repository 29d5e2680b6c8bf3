//! The rules that `capasg events --print` prints, held against every event that happens here: all are taken but machines
//! that start, which their groups tell of.

use std::collections::{BTreeMap, BTreeSet};

use capasg_fake_aws::{Service, Tree};
use serde_json::{Value, json};

use crate::{
    kit::{Kit, group, named},
    refresh::refresh,
};

/// What `capasg events --print --format=cli` prints, as the tests of the binary keep it.
const PRINTED: &str = include_str!("../../../snapshots/command_line__events_cli.snap");
const QUEUE: &str = "events";

/// Every kind of event that the simulator has.
const KINDS: [&str; 19] = [
    "AWS Health Event",
    "EC2 Auto Scaling Instance Refresh Cancelled",
    "EC2 Auto Scaling Instance Refresh Failed",
    "EC2 Auto Scaling Instance Refresh Rollback Started",
    "EC2 Auto Scaling Instance Refresh Rollback Succeeded",
    "EC2 Auto Scaling Instance Refresh Started",
    "EC2 Auto Scaling Instance Refresh Started Baking",
    "EC2 Auto Scaling Instance Refresh Succeeded",
    "EC2 Instance Launch Successful",
    "EC2 Instance Launch Unsuccessful",
    "EC2 Instance Rebalance Recommendation",
    "EC2 Instance State-change Notification pending",
    "EC2 Instance State-change Notification running",
    "EC2 Instance State-change Notification shutting-down",
    "EC2 Instance State-change Notification terminated",
    "EC2 Instance Terminate Successful",
    "EC2 Instance-launch Lifecycle Action",
    "EC2 Instance-terminate Lifecycle Action",
    "EC2 Spot Instance Interruption Warning",
];
/// What no rule takes.
const LEFT: [&str; 2] =
    ["EC2 Instance State-change Notification pending", "EC2 Instance State-change Notification running"];

/// The patterns by the names of their rules.
fn patterns() -> BTreeMap<String, Value> {
    let printed: Value = serde_json::from_str(PRINTED.splitn(3, "---").nth(2).unwrap()).unwrap();
    let rules = printed["put-rule"].as_array().unwrap().iter();
    let pattern = |rule: &Value| serde_json::from_str(rule["EventPattern"].as_str().unwrap()).unwrap();
    rules.map(|rule| (rule["Name"].as_str().unwrap().to_owned(), pattern(rule))).collect()
}

/// Whether EventBridge would find that an event matches a pattern. This is not the simulator's own reading of patterns,
/// and knows as little of them on purpose: what a printed rule has beyond it stops the test.
fn matches(pattern: &Value, event: &Value) -> bool {
    let members = pattern.as_object().expect("a pattern is made of members");
    members.iter().all(|(name, wanted)| match (wanted, event.get(name)) {
        (_, None) => false,
        (Value::Object(_), Some(found)) => matches(wanted, found),
        (Value::Array(choices), Some(Value::String(found))) => choices.iter().any(|choice| match choice {
            Value::String(exact) => exact == found,
            Value::Object(matcher) if matcher.len() == 1 && matcher.contains_key("prefix") => {
                found.starts_with(matcher["prefix"].as_str().unwrap())
            }
            other => panic!("nothing is known of {other}"),
        }),
        (wanted, Some(found)) => panic!("nothing is known of {wanted} for {found}"),
    })
}

fn listening(kit: Kit) -> Kit {
    kit.simulator.put_queue(&kit.scope, QUEUE);
    for source in ["aws.autoscaling", "aws.ec2", "aws.health"] {
        kit.simulator.put_rule(&kit.scope, QUEUE, json!({"source": [source]}));
    }
    kit
}

fn events(kit: &Kit) -> Vec<Value> {
    kit.seconds(5);
    let call = |action, params| kit.simulator.call(&kit.scope, Service::Sqs, action, params).unwrap();
    let url = call("GetQueueUrl", Tree::new().with("QueueName", QUEUE));
    let url = url.text_of("QueueUrl").unwrap().to_owned();
    let mut all = Vec::new();
    loop {
        let params = Tree::new()
            .with("QueueUrl", &url)
            .with("MaxNumberOfMessages", 10)
            .with("VisibilityTimeout", 43_200);
        let reply = call("ReceiveMessage", params);
        let messages = reply.items_of("Messages");
        if messages.is_empty() {
            return all;
        }
        all.extend(messages.iter().map(|one| serde_json::from_str(one.text_of("Body").unwrap()).unwrap()));
    }
}

fn kind(event: &Value) -> String {
    let kind = event["detail-type"].as_str().unwrap();
    match event["detail"]["state"].as_str() {
        Some(state) => format!("{kind} {state}"),
        None => kind.to_owned(),
    }
}

/// The lives of groups and machines in which everything happens that gives an event.
fn everything() -> Vec<Value> {
    let hook = |name: &str, transition: &str| {
        named("pool").with("LifecycleHookName", name).with("LifecycleTransition", transition)
    };
    let kit = listening(Kit::with_template());
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 2));
    kit.settle();
    kit.autoscaling("PutLifecycleHook", hook("join", "autoscaling:EC2_INSTANCE_LAUNCHING"));
    kit.autoscaling("PutLifecycleHook", hook("drain", "autoscaling:EC2_INSTANCE_TERMINATING"));
    kit.set_desired(3);
    kit.settle();
    let id = kit.ids("pool").remove(0);
    assert!(kit.simulator.recommend(&kit.scope, &id));
    assert!(kit.simulator.retire(&kit.scope, &id));
    assert!(kit.simulator.interrupt(&kit.scope, &id));
    kit.end(&id, true).unwrap();
    kit.settle();
    for zone in ["a", "b", "c"] {
        kit.simulator.set_capacity(&kit.scope, "*", &format!("eu-west-1{zone}"), Some(0));
    }
    kit.set_desired(5);
    kit.settle();
    kit.seconds(8000);
    let mut told = events(&kit);

    let start = |more: Tree| {
        let kit = listening(Kit::with_two_versions(2));
        kit.autoscaling("StartInstanceRefresh", refresh(2, more));
        kit.seconds(20);
        kit
    };
    let baked = start(Tree::new().with("BakeTime", 60));
    baked.seconds(1200);
    let cancelled = start(Tree::new());
    cancelled.autoscaling("CancelInstanceRefresh", named("pool"));
    cancelled.seconds(600);
    let rolled_back = start(Tree::new());
    rolled_back.autoscaling("RollbackInstanceRefresh", named("pool"));
    rolled_back.seconds(600);
    let alarms = Tree::new().with("Alarms", vec!["errors"]);
    let failed = start(Tree::new().with("AlarmSpecification", alarms).with("BakeTime", 3600));
    failed.simulator.set_alarm(&failed.scope, "errors", true);
    failed.seconds(600);
    for kit in [baked, cancelled, rolled_back, failed] {
        told.extend(events(&kit));
    }
    told
}

// Pains: P20, W18
#[test]
fn the_printed_rules_match_each_event_once_but_instance_starts() {
    let patterns = patterns();
    assert_eq!(patterns.len(), 4);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut used: BTreeSet<&String> = BTreeSet::new();
    for event in everything() {
        let kind = kind(&event);
        let takers: Vec<&String> =
            patterns.iter().filter(|(_, pattern)| matches(pattern, &event)).map(|(name, _)| name).collect();
        // Two rules that match are two messages.
        let expected = usize::from(!LEFT.contains(&kind.as_str()));
        assert_eq!(takers.len(), expected, "{kind} is taken by {takers:?}: {event}");
        used.extend(takers);
        seen.insert(kind);
    }
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), KINDS);
    assert_eq!(used.len(), patterns.len(), "no rule is for nothing");
}

// Pains: W18
#[test]
fn the_fake_matches_the_printed_rules_as_eventbridge_does() {
    for (name, pattern) in patterns() {
        let kit = Kit::with_template();
        kit.simulator.put_queue(&kit.scope, QUEUE);
        kit.simulator.put_rule(&kit.scope, QUEUE, pattern.clone());
        kit.autoscaling("CreateAutoScalingGroup", group("pool", 2));
        kit.settle();
        let ids = kit.ids("pool");
        assert!(kit.simulator.recommend(&kit.scope, &ids[0]) && kit.simulator.retire(&kit.scope, &ids[0]));
        assert!(kit.simulator.kill(&kit.scope, &ids[1]));
        kit.settle();
        let told = events(&kit);
        assert!(!told.is_empty() && told.iter().all(|event| matches(&pattern, event)), "{name}: {told:?}");
    }
}

// Pains: W18
#[test]
fn the_rules_match_few_events_of_other_groups() {
    let patterns = patterns();
    let health = |service: &str, category: &str| {
        json!({"source": "aws.health", "detail-type": "AWS Health Event",
               "detail": {"service": service, "eventTypeCategory": category}})
    };
    for other in [
        json!({"source": "aws.ec2", "detail-type": "EBS Volume Notification", "detail": {}}),
        json!({"source": "aws.ec2", "detail-type": "EC2 Instance State-change Notification", "detail": {"state": "running"}}),
        json!({"source": "aws.s3", "detail-type": "Object Created", "detail": {}}),
        json!({"source": "somebody", "detail-type": "EC2 Spot Instance Interruption Warning", "detail": {}}),
        health("RDS", "scheduledChange"),
        health("EC2", "issue"),
    ] {
        assert!(!patterns.values().any(|pattern| matches(pattern, &other)), "{other}");
    }
    assert!(patterns.values().any(|pattern| matches(pattern, &health("EC2", "scheduledChange"))));
}
