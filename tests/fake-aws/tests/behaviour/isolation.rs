//! Accounts and regions do not see each other; the same seed gives the same world.

use capasg_fake_aws::{LogFilter, Scope, Service, Simulator, Tree};
use chrono::Duration;

use crate::kit::{Kit, data, group, named};

fn names(simulator: &Simulator, scope: &Scope) -> usize {
    let reply =
        simulator.call(scope, Service::AutoScaling, "DescribeAutoScalingGroups", Tree::new()).unwrap();
    reply.items_of("AutoScalingGroups").len()
}

#[test]
fn another_account_or_region_sees_nothing() {
    let kit = Kit::with_group(1);
    assert_eq!(names(&kit.simulator, &kit.scope), 1);
    assert_eq!(names(&kit.simulator, &Scope::account("999988887777", "eu-west-1")), 0, "wrong credentials");
    assert_eq!(names(&kit.simulator, &Scope::region("eu-west-2")), 0);
}

#[test]
fn get_caller_identity_names_the_account() {
    let kit = Kit::new();
    let scope = Scope::account("999988887777", "eu-west-1");
    let reply = kit.simulator.call(&scope, Service::Sts, "GetCallerIdentity", Tree::new()).unwrap();
    assert_eq!(reply.text_of("Account"), Some("999988887777"));
}

#[test]
fn an_arn_names_account_region_and_group() {
    let kit = Kit::with_group(0);
    let arn = kit.describe("pool").unwrap().text_of("AutoScalingGroupARN").unwrap().to_owned();
    assert!(arn.starts_with("arn:aws:autoscaling:eu-west-1:123456789012:autoScalingGroup:"), "{arn}");
    assert!(arn.ends_with(":autoScalingGroupName/pool"), "{arn}");
}

fn story(seed: u64, other_region: bool) -> String {
    let simulator = Simulator::new(seed);
    let kit = Kit { simulator, scope: Scope::region("eu-west-1") };
    kit.template("nodes", data());
    if other_region {
        let elsewhere = Kit { simulator: kit.simulator.clone(), scope: Scope::region("us-east-1") };
        elsewhere.template("nodes", data());
    }
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 3));
    kit.simulator.advance(Duration::seconds(30));
    kit.end(&kit.ids("pool")[0], false).unwrap();
    kit.simulator.advance(Duration::seconds(100));
    kit.autoscaling("DeleteAutoScalingGroup", named("pool").with("ForceDelete", true));
    let mut log = kit.simulator.log(&LogFilter::region("eu-west-1"));
    for entry in &mut log {
        entry.sequence = 0;
        entry.request_id.clear();
    }
    let dump = kit.simulator.dump(Some("eu-west-1"));
    format!("{}{}", serde_json::to_string(&log).unwrap(), serde_json::to_string(&dump).unwrap())
}

#[test]
fn the_same_seed_gives_the_same_log_and_state() {
    assert_eq!(story(7, false), story(7, false));
    assert_ne!(story(7, false), story(8, false));
    assert_eq!(story(7, false), story(7, true), "regions do not disturb each other");
}

#[test]
fn time_never_goes_back_and_the_next_event_is_known() {
    let kit = Kit::with_template();
    assert_eq!(kit.simulator.next_event(), None);
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 1));
    let now = kit.simulator.now();
    assert_eq!(kit.simulator.next_event(), Some(now + Duration::seconds(2)));
    kit.simulator.set_time(now - Duration::seconds(10));
    assert_eq!(kit.simulator.now(), now);
}
