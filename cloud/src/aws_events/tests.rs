//! Envelopes as AWS's event reference shows them, and messages that are none.

use proptest::prelude::*;

use crate::{
    CloudEvent, EventKind, NoticeKind,
    testing::events::{event, launched, spot},
};

#[test]
fn every_kind_of_event_is_read() {
    let group =
        r#"{"AutoScalingGroupName":"a","EC2InstanceId":"i-1","Cause":"x","Details":{"Subnet ID":"s"}}"#;
    let instance = r#"{"instance-id":"i-1","state":"terminated"}"#;
    for (source, detail_type, detail, kind) in [
        ("aws.autoscaling", "EC2 Instance Launch Successful", group, EventKind::Launched),
        ("aws.autoscaling", "EC2 Instance Launch Unsuccessful", group, EventKind::LaunchFailed),
        ("aws.autoscaling", "EC2 Instance Terminate Successful", group, EventKind::Terminated),
        ("aws.autoscaling", "EC2 Instance Terminate Unsuccessful", group, EventKind::TerminationFailed),
        ("aws.autoscaling", "EC2 Instance-launch Lifecycle Action", group, EventKind::LifecycleAction),
        ("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", group, EventKind::LifecycleAction),
        (
            "aws.autoscaling",
            "EC2 Auto Scaling Instance Refresh Checkpoint Reached",
            group,
            EventKind::InstanceRefresh,
        ),
        ("aws.autoscaling", "EC2 Instance Detach Successful", group, EventKind::Group),
        ("aws.ec2", "EC2 Instance State-change Notification", instance, EventKind::StateChange),
        ("aws.ec2", "EC2 Spot Instance Interruption Warning", instance, EventKind::SpotInterruption),
        ("aws.ec2", "EC2 Instance Rebalance Recommendation", instance, EventKind::RebalanceRecommendation),
    ] {
        let read = CloudEvent::parse(&event(source, detail_type, detail)).unwrap();
        assert_eq!(read.kind, kind, "{detail_type}");
        assert_eq!(read.instances, ["i-1"], "{detail_type}");
        assert_eq!(read.group.is_some(), source == "aws.autoscaling", "{detail_type}");
        assert_eq!((read.account.as_str(), read.region.as_str()), ("123456789012", "eu-west-1"));
    }
}

#[test]
fn a_launch_that_failed_early_names_no_instance() {
    let detail = r#"{"AutoScalingGroupName":"a","EC2InstanceId":""}"#;
    let read =
        CloudEvent::parse(&event("aws.autoscaling", "EC2 Instance Launch Unsuccessful", detail)).unwrap();
    assert_eq!((read.group.as_deref(), read.instances.len()), (Some("a"), 0));
}

#[test]
fn health_events_that_retire_a_machine_are_told_from_others() {
    let health = |code: &str, status: &str| {
        let detail = format!(
            r#"{{"eventTypeCode":"{code}","statusCode":"{status}","affectedEntities":[{{"entityValue":"i-1"}}]}}"#
        );
        CloudEvent::parse(&event("aws.health", "AWS Health Event", &detail)).unwrap()
    };
    let retired = health("AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", "upcoming");
    assert_eq!(
        (retired.kind.notice_kind(), retired.instances),
        (Some(NoticeKind::ScheduledRetirement), vec!["i-1".into()])
    );
    let closed = health("AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "closed").kind;
    assert_eq!(
        (closed, closed.notice_kind()),
        (EventKind::RetirementClosed, Some(NoticeKind::RetirementClosed))
    );
    assert_eq!(health("AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", "open").kind, EventKind::Health);
}

#[test]
fn what_is_new_is_passed_by_and_what_is_broken_is_told() {
    let unknown = |source, detail_type| CloudEvent::parse(&event(source, detail_type, "{}")).unwrap().kind;
    assert_eq!(unknown("aws.ec2", "EBS Volume Notification"), EventKind::Unknown);
    assert_eq!(unknown("somebody.else", "Anything"), EventKind::Unknown);
    for broken in [
        "",
        "no JSON",
        "[]",
        r#"{"source":"aws.ec2"}"#,
        &event("aws.autoscaling", "EC2 Instance Launch Successful", "{}"),
        &event("aws.ec2", "EC2 Spot Instance Interruption Warning", "{}"),
        &event("aws.health", "AWS Health Event", "[]"),
    ] {
        let error = CloudEvent::parse(broken).unwrap_err();
        assert!(!error.0.is_empty());
    }
}

proptest! {
    #[test]
    fn no_message_stops_the_reader(text in ".{0,200}", cut in 0usize..400, at in 0usize..400) {
        let _ = CloudEvent::parse(&text);
        for whole in [launched("a"), spot("i-1")] {
            let mut broken: String = whole.chars().take(cut).collect();
            let place = broken.char_indices().map(|(i, _)| i).nth(at).unwrap_or(broken.len());
            broken.insert_str(place, &text);
            let _ = CloudEvent::parse(&broken);
        }
    }
}
