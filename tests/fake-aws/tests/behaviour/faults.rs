//! Faults and the log of calls.

use capasg_fake_aws::{CONNECTION_LOST, Effect, Fault, LogFilter, Outcome, Tree};

use crate::kit::{Kit, data, group, named};

#[test]
fn an_error_fault_occurs_as_often_as_set_and_changes_nothing() {
    let kit = Kit::with_group(1);
    kit.simulator
        .add_fault(Fault::error("SetDesiredCapacity", 400, "Throttling", "Rate exceeded").times(Some(2)));
    for _ in 0..2 {
        let error =
            kit.try_autoscaling("SetDesiredCapacity", named("pool").with("DesiredCapacity", 3)).unwrap_err();
        assert_eq!((error.status, error.code.as_str()), (400, "Throttling"));
    }
    assert_eq!(kit.desired("pool"), 1);
    kit.set_desired(3);
    assert!(kit.simulator.faults().is_empty());
}

#[test]
fn a_fault_can_skip_calls_and_concern_one_group() {
    let kit = Kit::with_group(1);
    kit.autoscaling("CreateAutoScalingGroup", group("other", 0));
    let fault = Fault::error("*", 500, "InternalFailure", "x").for_group("pool").after(1);
    kit.simulator.add_fault(fault);
    kit.autoscaling("SetDesiredCapacity", named("other").with("DesiredCapacity", 1));
    kit.set_desired(2);
    kit.autoscaling("SetDesiredCapacity", named("other").with("DesiredCapacity", 1));
    assert_eq!(
        kit.try_autoscaling("SetDesiredCapacity", named("pool").with("DesiredCapacity", 3))
            .unwrap_err()
            .status,
        500
    );
}

#[test]
fn a_fault_for_a_group_matches_calls_that_name_its_instances() {
    let kit = Kit::with_group(1);
    kit.simulator.add_fault(Fault::error("*", 500, "InternalFailure", "x").for_group("pool"));
    assert_eq!(kit.end(&kit.simulator.dump(None)[0].instances[0].id, true).unwrap_err().status, 500);
}

#[test]
fn a_fault_is_limited_to_its_region() {
    let kit = Kit::with_group(1);
    kit.simulator.add_fault(Fault::error("*", 500, "InternalFailure", "x").in_region("us-east-1"));
    kit.set_desired(2);
    kit.simulator.clear_faults(Some("us-east-1"));
    assert!(kit.simulator.faults().is_empty());
}

#[test]
fn a_call_with_a_lost_reply_has_its_effect() {
    let kit = Kit::with_group(2);
    let id = kit.ids("pool").remove(0);
    kit.simulator.add_fault(Fault::new("TerminateInstanceInAutoScalingGroup", Effect::LoseReply));
    let error = kit.end(&id, true).unwrap_err();
    assert!(error.is_lost());
    assert_eq!(error.code, CONNECTION_LOST);
    assert_eq!(kit.desired("pool"), 1);
    assert_eq!(kit.state(&id).as_deref(), Some("Terminating"));
}

#[test]
fn a_lost_request_has_no_effect_and_a_late_one_a_later_effect() {
    let kit = Kit::with_group(1);
    let set = named("pool").with("DesiredCapacity", 3);
    kit.simulator.add_fault(Fault::new("SetDesiredCapacity", Effect::LoseRequest));
    assert!(kit.try_autoscaling("SetDesiredCapacity", set.clone()).unwrap_err().is_lost());
    kit.settle();
    assert_eq!(kit.desired("pool"), 1);
    kit.simulator.add_fault(Fault::new("SetDesiredCapacity", Effect::ApplyLate { after_millis: 30_000 }));
    assert!(kit.try_autoscaling("SetDesiredCapacity", set).unwrap_err().is_lost());
    kit.seconds(29);
    assert_eq!(kit.desired("pool"), 1);
    kit.seconds(2);
    assert_eq!(kit.desired("pool"), 3);
}

#[test]
fn the_log_separates_mutations_and_hides_user_data() {
    let kit = Kit::with_group(1);
    let before = kit.simulator.counts(&LogFilter::default()).last_sequence;
    kit.describe("pool");
    let since = LogFilter::region("eu-west-1").since(before);
    assert_eq!(kit.simulator.counts(&since.clone().mutations()).calls, 0);
    assert_eq!(kit.simulator.counts(&since).calls, 1);
    let version = Tree::new().with("LaunchTemplateName", "nodes").with("LaunchTemplateData", data());
    kit.ec2("CreateLaunchTemplateVersion", version);
    let log = kit.simulator.log(&since.clone().action("CreateLaunchTemplateVersion"));
    assert!(log[0].mutation);
    assert_eq!(log[0].groups, ["nodes"]);
    assert_eq!(log[0].params["LaunchTemplateData"]["UserData"], "<20 characters>");
    assert!(
        !serde_json::to_string(&kit.simulator.log(&LogFilter::default()))
            .unwrap()
            .contains(crate::kit::USER_DATA)
    );
    kit.end("i-00000000000000000", true).unwrap_err();
    let last = kit.simulator.log(&since).pop().unwrap();
    assert!(matches!(last.outcome, Outcome::Error { status: 400, .. }));
    assert_eq!(last.instances, ["i-00000000000000000"]);
}

#[test]
fn a_termination_by_id_is_logged_with_its_group() {
    let kit = Kit::with_group(1);
    kit.end(&kit.ids("pool")[0], true).unwrap();
    let filter = LogFilter { group: Some("pool".to_owned()), ..LogFilter::default() };
    let log = kit.simulator.log(&filter.action("TerminateInstanceInAutoScalingGroup"));
    assert_eq!(log.len(), 1);
}

#[test]
fn a_reset_clears_one_region_or_all() {
    let kit = Kit::with_group(1);
    kit.simulator.add_fault(Fault::error("*", 500, "x", "x").in_region("eu-west-1"));
    kit.simulator.reset(Some("us-east-1"));
    assert_eq!(kit.simulator.faults().len(), 1);
    assert_eq!(kit.simulator.leftovers(None).len(), 3);
    kit.simulator.reset(Some("eu-west-1"));
    assert!(kit.simulator.faults().is_empty());
    assert_eq!(kit.simulator.leftovers(None), [""; 0]);
    assert!(kit.simulator.log(&LogFilter::default()).is_empty());
}

#[test]
fn a_wrongly_empty_read_is_followed_by_a_complete_one() {
    let kit = Kit::with_group(1);
    kit.simulator.add_fault(Fault::new("DescribeAutoScalingGroups", Effect::Blind));
    assert!(kit.describe("pool").is_none());
    assert!(kit.describe("pool").is_some());
    kit.simulator.add_fault(Fault::new("DescribeInstances", Effect::Blind));
    assert_eq!(kit.machines().len(), 0);
    assert_eq!(kit.machines().len(), 1);
}
