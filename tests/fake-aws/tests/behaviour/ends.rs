//! Exact ends: one instance or a batch, with and without decrement, and the way out.

use capasg_fake_aws::{BatchEnds, Tree};

use crate::kit::{Kit, named};

fn batch(ids: &[String], decrement: bool) -> Tree {
    named("pool").with("InstanceIds", ids.to_vec()).with("ShouldDecrementDesiredCapacity", decrement)
}

#[test]
fn a_termination_with_decrement_also_takes_protected_instances() {
    let kit = Kit::with_group(3);
    let ids = kit.ids("pool");
    kit.protect(&ids, true);
    let reply = kit.end(&ids[0], true).unwrap();
    assert_eq!(reply.at("Activity.StatusCode").unwrap().text(), Some("InProgress"));
    assert_eq!(kit.desired("pool"), 2);
    assert_eq!(kit.state(&ids[0]).as_deref(), Some("Terminating"), "it stays listed meanwhile");
    kit.seconds(2);
    assert_eq!(kit.machine(&ids[0]).as_deref(), Some("shutting-down"));
    kit.settle();
    assert_eq!(kit.ids("pool"), ids[1..]);
    assert_eq!(kit.machine(&ids[0]).as_deref(), Some("terminated"));
    kit.seconds(3_600);
    assert_eq!(kit.machine(&ids[0]), None, "EC2 forgets it within the hour");
}

#[test]
fn a_termination_without_decrement_is_replaced_at_once() {
    let kit = Kit::with_group(2);
    let ids = kit.ids("pool");
    kit.end(&ids[0], false).unwrap();
    kit.seconds(3);
    let mut states = kit.states("pool");
    states.sort();
    assert_eq!(
        states,
        ["InService", "Pending", "Terminating:Proceed"],
        "the launch does not wait for the end"
    );
    kit.settle();
    assert_eq!(kit.states("pool"), ["InService"; 2]);
    assert!(!kit.ids("pool").contains(&ids[0]));
}

#[test]
fn a_decrement_below_the_minimum_is_rejected() {
    let kit = Kit::with_group(3);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MinSize", 3));
    let error = kit.end(&kit.ids("pool")[0], true).unwrap_err();
    assert_eq!(error.code, "ValidationError");
    assert_eq!(
        error.message,
        "Currently, desiredSize equals minSize (3). Terminating instance without replacement will violate group's \
         min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size."
    );
    assert_eq!(kit.states("pool"), ["InService"; 3]);
}

#[test]
fn an_unknown_instance_is_a_validation_error() {
    let kit = Kit::with_group(1);
    let error = kit.end("i-00000000000000000", true).unwrap_err();
    assert_eq!(error.code, "ValidationError");
    assert_eq!(
        error.message,
        "Instance Id not found - No managed instance found for instance ID: i-00000000000000000"
    );
}

#[test]
fn an_instance_that_left_the_group_is_unknown() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    kit.end(&id, true).unwrap();
    kit.settle();
    assert!(kit.end(&id, true).unwrap_err().message.starts_with("Instance Id not found"));
}

#[test]
fn a_batch_terminates_many_in_one_call() {
    let kit = Kit::with_group(5);
    let ids = kit.ids("pool");
    let reply = kit.autoscaling("TerminateInstanceInAutoScalingGroup", batch(&ids[..3], true));
    assert_eq!(reply.items_of("Activities").len(), 3);
    assert_eq!(reply.get("Activity"), None);
    assert_eq!(kit.desired("pool"), 2);
    kit.settle();
    assert_eq!(kit.ids("pool"), ids[3..]);
}

#[test]
fn a_batch_needs_the_groups_name_and_at_most_100_ids() {
    let kit = Kit::with_group(1);
    let nameless =
        Tree::new().with("InstanceIds", kit.ids("pool")).with("ShouldDecrementDesiredCapacity", true);
    assert_eq!(kit.refused("TerminateInstanceInAutoScalingGroup", nameless).0, "ValidationError");
    let many = vec![kit.ids("pool")[0].clone(); 101];
    let (_, words) = kit.refused("TerminateInstanceInAutoScalingGroup", batch(&many, true));
    assert!(words.contains("less than or equal to 100"), "{words}");
    let both = batch(&kit.ids("pool"), true).with("InstanceId", "i-00000000000000000");
    assert_eq!(kit.refused("TerminateInstanceInAutoScalingGroup", both).0, "ValidationError");
}

#[test]
fn a_batch_with_an_unknown_instance_is_rejected_or_partial() {
    let kit = Kit::with_group(2);
    let ids = kit.ids("pool");
    let with_stranger = [ids[0].clone(), "i-00000000000000000".to_owned()];
    kit.refused("TerminateInstanceInAutoScalingGroup", batch(&with_stranger, true));
    assert_eq!(kit.states("pool"), ["InService"; 2], "nothing ended");
    kit.change_settings(|settings| settings.batch_ends = BatchEnds::Partial);
    let reply = kit.autoscaling("TerminateInstanceInAutoScalingGroup", batch(&with_stranger, true));
    assert_eq!(reply.items_of("Activities").len(), 1);
    assert_eq!(kit.desired("pool"), 1);
}

#[test]
fn a_batch_below_the_minimum_is_rejected_completely() {
    let kit = Kit::with_group(3);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MinSize", 2));
    let ids = kit.ids("pool");
    kit.refused("TerminateInstanceInAutoScalingGroup", batch(&ids[..2], true));
    assert_eq!(kit.desired("pool"), 3);
    kit.autoscaling("TerminateInstanceInAutoScalingGroup", batch(&ids[..1], true));
}

#[test]
fn a_repeated_termination_decrements_again_unless_disabled() {
    let kit = Kit::with_group(3);
    let id = kit.ids("pool").remove(0);
    kit.end(&id, true).unwrap();
    kit.end(&id, true).unwrap();
    assert_eq!(kit.desired("pool"), 1);
    kit.settle();
    assert_eq!(kit.states("pool").len(), 1, "the group picked another victim for it");

    let kit = Kit::with_group(3);
    kit.change_settings(|settings| settings.repeated_end_decrements = false);
    let id = kit.ids("pool").remove(0);
    kit.end(&id, true).unwrap();
    kit.end(&id, true).unwrap();
    assert_eq!(kit.desired("pool"), 2);
}

#[test]
fn an_id_twice_in_a_batch_is_one_termination() {
    let kit = Kit::with_group(2);
    let id = kit.ids("pool").remove(0);
    kit.autoscaling("TerminateInstanceInAutoScalingGroup", batch(&[id.clone(), id], true));
    assert_eq!(kit.desired("pool"), 1);
}

#[test]
fn a_pending_instance_can_be_terminated() {
    let kit = Kit::with_group(0);
    kit.set_desired(1);
    kit.seconds(3);
    assert_eq!(kit.states("pool"), ["Pending"]);
    kit.end(&kit.ids("pool")[0], true).unwrap();
    kit.settle();
    assert_eq!(kit.states("pool"), [""; 0]);
    assert!(kit.activities("pool").iter().any(|one| one.text_of("StatusCode") == Some("Cancelled")));
}
