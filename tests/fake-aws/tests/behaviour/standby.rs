//! Standby and detachment.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, named};

fn ids(ids: &[String]) -> Tree {
    named("pool").with("InstanceIds", ids.to_vec())
}

#[test]
fn an_instance_in_standby_does_not_count_and_can_return() {
    let kit = Kit::with_group(2);
    let id = kit.ids("pool").remove(0);
    let one = std::slice::from_ref(&id);
    kit.autoscaling("EnterStandby", ids(one).with("ShouldDecrementDesiredCapacity", true));
    assert_eq!(kit.state(&id).as_deref(), Some("EnteringStandby"));
    assert_eq!(kit.end(&id, true).unwrap_err().code, "ScalingActivityInProgress");
    kit.settle();
    assert_eq!(kit.state(&id).as_deref(), Some("Standby"));
    assert_eq!(kit.desired("pool"), 1);
    assert_eq!(kit.states("pool").len(), 2, "nothing was launched or ended");
    kit.simulator.kill(&kit.scope, &id);
    kit.settle();
    assert_eq!(kit.state(&id).as_deref(), Some("Standby"), "nobody checks it");
    kit.autoscaling("ExitStandby", ids(one));
    assert_eq!(kit.desired("pool"), 2);
    kit.settle();
    assert_eq!(kit.state(&id), None, "back in service it is found dead");
}

#[test]
fn an_instance_in_standby_without_decrement_is_replaced() {
    let kit = Kit::with_group(1);
    kit.autoscaling("EnterStandby", ids(&kit.ids("pool")).with("ShouldDecrementDesiredCapacity", false));
    kit.settle();
    let mut states = kit.states("pool");
    states.sort();
    assert_eq!(states, ["InService", "Standby"]);
}

#[test]
fn a_detached_instance_runs_outside_the_group() {
    let kit = Kit::with_group(2);
    let id = kit.ids("pool").remove(0);
    let params = ids(std::slice::from_ref(&id)).with("ShouldDecrementDesiredCapacity", true);
    kit.autoscaling("DetachInstances", params);
    kit.settle();
    assert_eq!(kit.state(&id), None);
    assert_eq!(kit.machine(&id).as_deref(), Some("running"));
    assert_eq!(kit.desired("pool"), 1);
    assert!(
        !kit.simulator.dump(None)[0]
            .instances
            .iter()
            .find(|one| one.id == id)
            .unwrap()
            .tags
            .contains_key("aws:autoscaling:groupName")
    );
}

#[test]
fn an_attached_instance_has_no_launch_template() {
    let kit = Kit::with_group(2);
    let id = kit.ids("pool").remove(0);
    let params = ids(std::slice::from_ref(&id));
    let (_, words) = kit.refused("AttachInstances", params.clone());
    assert!(words.contains("is in an Auto Scaling group already"), "{words}");
    kit.autoscaling("DetachInstances", params.clone().with("ShouldDecrementDesiredCapacity", true));
    kit.settle();
    kit.autoscaling("AttachInstances", params);
    kit.settle();
    assert_eq!((kit.state(&id).as_deref(), kit.desired("pool")), (Some("InService"), 2));
    let listed = &kit.simulator.dump(None)[0].instances;
    let of = |id: &String| listed.iter().find(|one| one.id == *id).unwrap().template.is_some();
    assert_eq!(kit.ids("pool").iter().map(of).filter(|has| *has).count(), 1);
}

#[test]
fn detaching_below_the_minimum_is_rejected() {
    let kit = Kit::with_group(1);
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MinSize", 1));
    let params = ids(&kit.ids("pool")).with("ShouldDecrementDesiredCapacity", true);
    let (_, words) = kit.refused("DetachInstances", params);
    assert!(
        words.starts_with(
            "AutoScalingGroup pool has min-size=1, max-size=10, and desired-size=1. To detach 1 instance"
        ),
        "{words}"
    );
}

#[test]
fn protection_is_for_instances_in_service_or_standby() {
    let kit = Kit::with_group(0);
    kit.set_desired(1);
    kit.seconds(3);
    let id = kit.ids("pool").remove(0);
    let params = ids(std::slice::from_ref(&id)).with("ProtectedFromScaleIn", true);
    let (_, words) = kit.refused("SetInstanceProtection", params);
    assert_eq!(words, format!("The instance {id} is not in InService or EnteringStandby or Standby."));
    let many = vec![id; 51];
    let (code, _) = kit.refused("SetInstanceProtection", ids(&many).with("ProtectedFromScaleIn", true));
    assert_eq!(code, "ValidationError");
}
