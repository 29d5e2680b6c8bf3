//! Queues and the events that rules send to them.

use std::collections::BTreeMap;

use capasg_fake_aws::{Service, Settings, Tree};
use serde_json::{Value, json};

use crate::kit::{Kit, group, named};

const QUEUE: &str = "events";

fn call(kit: &Kit, action: &str, params: Tree) -> Tree {
    kit.simulator
        .call(&kit.scope, Service::Sqs, action, params)
        .unwrap_or_else(|error| panic!("{action}: {error}"))
}

fn url(kit: &Kit) -> String {
    call(kit, "GetQueueUrl", Tree::new().with("QueueName", QUEUE)).text_of("QueueUrl").unwrap().to_owned()
}

/// All messages, hidden for a minute.
fn receive(kit: &Kit) -> Vec<Tree> {
    let mut all = Vec::new();
    loop {
        let params = Tree::new()
            .with("QueueUrl", url(kit))
            .with("MaxNumberOfMessages", 10)
            .with("VisibilityTimeout", 60)
            .with("MessageSystemAttributeNames", vec!["ApproximateReceiveCount"]);
        let reply = call(kit, "ReceiveMessage", params);
        let messages = reply.items_of("Messages");
        if messages.is_empty() {
            return all;
        }
        all.extend(messages.to_vec());
    }
}

fn events(kit: &Kit) -> Vec<Value> {
    receive(kit).iter().map(|one| serde_json::from_str(one.text_of("Body").unwrap()).unwrap()).collect()
}

fn listening(settings: &Settings) -> Kit {
    let kit = Kit::with_template();
    kit.simulator.set_settings(Some(&kit.scope), settings);
    kit.simulator.put_queue(&kit.scope, QUEUE);
    for source in ["aws.autoscaling", "aws.ec2", "aws.health"] {
        kit.simulator.put_rule(&kit.scope, QUEUE, json!({"source": [source]}));
    }
    kit
}

fn kinds(events: &[Value]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for event in events {
        *kinds.entry(event["detail-type"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    kinds
}

#[test]
fn a_group_sends_an_event_for_each_launch_and_termination() {
    let kit = listening(&Settings::default());
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 2));
    kit.settle();
    let told = events(&kit);
    assert_eq!(
        kinds(&told),
        [("EC2 Instance Launch Successful", 2), ("EC2 Instance State-change Notification", 4)]
            .map(|(kind, count)| (kind.to_owned(), count))
            .into()
    );
    let launch = told.iter().find(|event| event["source"] == "aws.autoscaling").unwrap();
    assert_eq!(launch["detail"]["AutoScalingGroupName"], "pool");
    assert!(kit.ids("pool").contains(&launch["detail"]["EC2InstanceId"].as_str().unwrap().to_owned()));
    assert_eq!(
        (launch["account"].as_str(), launch["region"].as_str()),
        (Some("123456789012"), Some("eu-west-1"))
    );

    let hook = named("pool")
        .with("LifecycleHookName", "drain")
        .with("LifecycleTransition", "autoscaling:EC2_INSTANCE_TERMINATING");
    kit.autoscaling("PutLifecycleHook", hook);
    let id = kit.ids("pool").remove(0);
    let end = Tree::new().with("InstanceId", &id).with("ShouldDecrementDesiredCapacity", true);
    kit.autoscaling("TerminateInstanceInAutoScalingGroup", end);
    kit.seconds(5);
    let told = events(&kit);
    assert_eq!(kinds(&told).keys().collect::<Vec<_>>(), ["EC2 Instance-terminate Lifecycle Action"]);
    assert_eq!(told[0]["detail"]["EC2InstanceId"], id.as_str());
}

#[test]
fn instance_state_changes_and_warnings_are_sent_as_events() {
    let kit = listening(&Settings::default());
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    kit.settle();
    receive(&kit);
    let id = kit.ids("pool").remove(0);
    assert!(kit.simulator.recommend(&kit.scope, &id));
    assert!(kit.simulator.retire(&kit.scope, &id));
    assert!(kit.simulator.interrupt(&kit.scope, &id));
    kit.seconds(1);
    let expected = [
        "AWS Health Event",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Spot Instance Interruption Warning",
    ];
    assert_eq!(kinds(&events(&kit)).keys().collect::<Vec<_>>(), expected);
    assert_eq!(kit.machine(&id).as_deref(), Some("running"), "it was only warned");
    kit.seconds(121);
    let told = events(&kit);
    let state = told.iter().find(|event| event["detail"]["state"] == "shutting-down").unwrap();
    assert_eq!(state["detail"]["instance-id"], id.as_str());
}

#[test]
fn a_received_message_is_hidden_until_its_timeout_or_deletion() {
    let kit = listening(&Settings::default());
    let send = Tree::new().with("QueueUrl", url(&kit)).with("MessageBody", "x");
    call(&kit, "SendMessage", send);
    let first = receive(&kit).remove(0);
    assert!(receive(&kit).is_empty() && !kit.simulator.has_messages(&kit.scope));
    kit.seconds(61);
    assert!(kit.simulator.has_messages(&kit.scope));
    let second = receive(&kit).remove(0);
    assert_eq!(second.at("Attributes.ApproximateReceiveCount").and_then(Tree::text), Some("2"));
    let delete = |message: &Tree| {
        let receipt = message.text_of("ReceiptHandle").unwrap();
        call(&kit, "DeleteMessage", Tree::new().with("QueueUrl", url(&kit)).with("ReceiptHandle", receipt));
    };
    delete(&first);
    assert_eq!(kit.simulator.messages(&kit.scope), 1, "somebody received it again since");
    delete(&second);
    assert_eq!(kit.simulator.messages(&kit.scope), 0);
}

#[test]
fn events_can_be_lost_duplicated_late_and_reordered() {
    let told = |settings: Settings| {
        let kit = listening(&settings);
        kit.autoscaling("CreateAutoScalingGroup", group("pool", 5));
        kit.settle();
        events(&kit)
    };
    assert_eq!(told(Settings { event_lost_percent: 100, ..Settings::default() }).len(), 0);
    assert_eq!(told(Settings { event_twice_percent: 100, ..Settings::default() }).len(), 30);
    let late = told(Settings { event_jitter_millis: 60_000, ..Settings::default() });
    let times: Vec<&str> = late.iter().map(|event| event["time"].as_str().unwrap()).collect();
    assert!(!times.is_sorted() && late.len() == 15, "{times:?}");
}

#[test]
fn a_rule_matches_by_its_pattern() {
    let kit = Kit::with_group(2);
    kit.simulator.put_queue(&kit.scope, QUEUE);
    let pattern = json!({"source": ["aws.ec2"], "detail": {"state": ["terminated", {"prefix": "shut"}]}});
    kit.simulator.put_rule(&kit.scope, QUEUE, pattern);
    kit.simulator.kill(&kit.scope, &kit.ids("pool")[0]);
    kit.seconds(1);
    kit.settle();
    let mut states: Vec<_> = events(&kit).iter().map(|event| event["detail"]["state"].clone()).collect();
    states.sort_by_key(ToString::to_string);
    assert_eq!(states, ["shutting-down", "terminated"]);
}

#[test]
fn a_missing_queue_is_an_error_and_keeps_no_events() {
    let kit = Kit::with_group(1);
    let error =
        kit.simulator.call(&kit.scope, Service::Sqs, "GetQueueUrl", Tree::new().with("QueueName", QUEUE));
    assert_eq!(error.unwrap_err().code, "QueueDoesNotExist");
    assert_eq!(kit.simulator.messages(&kit.scope), 0);
}
