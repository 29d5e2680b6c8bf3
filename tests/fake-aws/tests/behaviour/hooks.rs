//! Lifecycle hooks: what they hold, how they are completed, and what happens when nobody does.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, group, named, texts};

const TERMINATING: &str = "autoscaling:EC2_INSTANCE_TERMINATING";
const LAUNCHING: &str = "autoscaling:EC2_INSTANCE_LAUNCHING";

fn hook(kit: &Kit, name: &str, transition: &str, result: &str) {
    let params = named("pool")
        .with("LifecycleHookName", name)
        .with("LifecycleTransition", transition)
        .with("HeartbeatTimeout", 300)
        .with("DefaultResult", result);
    kit.autoscaling("PutLifecycleHook", params);
}

fn complete(name: &str, id: &str, result: &str) -> Tree {
    named("pool").with("LifecycleHookName", name).with("InstanceId", id).with("LifecycleActionResult", result)
}

#[test]
fn a_terminating_hook_also_holds_terminations_by_id() {
    let kit = Kit::with_group(2);
    hook(&kit, "drain", TERMINATING, "CONTINUE");
    let id = kit.ids("pool").remove(0);
    kit.end(&id, true).unwrap();
    kit.seconds(60);
    assert_eq!(kit.state(&id).as_deref(), Some("Terminating:Wait"));
    assert_eq!(kit.machine(&id).as_deref(), Some("running"), "the machine is held");
    assert_eq!(kit.activities("pool")[0].text_of("StatusCode"), Some("MidLifecycleAction"));
    kit.autoscaling("CompleteLifecycleAction", complete("drain", &id, "CONTINUE"));
    assert_eq!(kit.state(&id).as_deref(), Some("Terminating:Proceed"));
    kit.settle();
    assert_eq!(kit.state(&id), None);
    assert_eq!(kit.machine(&id).as_deref(), Some("terminated"));
}

#[test]
fn a_hook_timeout_applies_the_default_result() {
    let kit = Kit::with_group(1);
    hook(&kit, "drain", TERMINATING, "ABANDON");
    let id = kit.ids("pool").remove(0);
    kit.end(&id, true).unwrap();
    kit.seconds(299);
    assert_eq!(kit.state(&id).as_deref(), Some("Terminating:Wait"));
    kit.seconds(60);
    assert_eq!(kit.state(&id), None, "ABANDON ends it as well");
}

#[test]
fn a_heartbeat_restarts_the_timer_up_to_100_timeouts() {
    let kit = Kit::with_group(1);
    hook(&kit, "drain", TERMINATING, "CONTINUE");
    let id = kit.ids("pool").remove(0);
    kit.end(&id, true).unwrap();
    let beat = named("pool").with("LifecycleHookName", "drain").with("InstanceId", &id);
    kit.seconds(5);
    let begin = kit.simulator.now();
    let mut beats = 0;
    while kit.state(&id).as_deref() == Some("Terminating:Wait") {
        kit.autoscaling("RecordLifecycleActionHeartbeat", beat.clone());
        kit.seconds(200);
        beats += 1;
        assert!(beats < 1000, "it must end");
    }
    let held = (kit.simulator.now() - begin).num_seconds();
    assert!((29_900..30_400).contains(&held), "100 x 300 s: {held}");
}

#[test]
fn completing_without_an_open_action_is_rejected() {
    let kit = Kit::with_group(1);
    hook(&kit, "drain", TERMINATING, "CONTINUE");
    let id = kit.ids("pool").remove(0);
    let (code, words) = kit.refused("CompleteLifecycleAction", complete("drain", &id, "CONTINUE"));
    assert_eq!(code, "ValidationError");
    assert_eq!(words, format!("No active Lifecycle Action found with instance ID {id}"));
    let token = "00000000-0000-4000-8000-000000000000";
    let by_token = named("pool")
        .with("LifecycleHookName", "drain")
        .with("LifecycleActionToken", token)
        .with("LifecycleActionResult", "CONTINUE");
    let (_, words) = kit.refused("CompleteLifecycleAction", by_token);
    assert_eq!(words, format!("No active Lifecycle Action found with token {token}"));
    let beat = named("pool").with("LifecycleHookName", "drain").with("InstanceId", &id);
    assert_eq!(kit.refused("RecordLifecycleActionHeartbeat", beat).0, "ValidationError");
}

#[test]
fn every_hook_must_continue_and_one_abandon_skips_the_rest() {
    let kit = Kit::with_group(2);
    hook(&kit, "one", TERMINATING, "CONTINUE");
    hook(&kit, "two", TERMINATING, "CONTINUE");
    let ids = kit.ids("pool");
    kit.end(&ids[0], true).unwrap();
    kit.seconds(5);
    kit.autoscaling("CompleteLifecycleAction", complete("one", &ids[0], "CONTINUE"));
    assert_eq!(kit.state(&ids[0]).as_deref(), Some("Terminating:Wait"));
    kit.autoscaling("CompleteLifecycleAction", complete("two", &ids[0], "CONTINUE"));
    assert_eq!(kit.state(&ids[0]).as_deref(), Some("Terminating:Proceed"));
    kit.end(&ids[1], true).unwrap();
    kit.seconds(5);
    kit.autoscaling("CompleteLifecycleAction", complete("one", &ids[1], "ABANDON"));
    assert_eq!(kit.state(&ids[1]).as_deref(), Some("Terminating:Proceed"));
}

#[test]
fn a_launch_hook_holds_an_instance_before_it_serves() {
    let kit = Kit::with_group(0);
    hook(&kit, "join", LAUNCHING, "ABANDON");
    kit.set_desired(1);
    kit.seconds(30);
    let id = kit.ids("pool").remove(0);
    assert_eq!(kit.state(&id).as_deref(), Some("Pending:Wait"));
    assert_eq!(kit.machine(&id).as_deref(), Some("running"));
    kit.autoscaling("CompleteLifecycleAction", complete("join", &id, "CONTINUE"));
    assert_eq!(kit.state(&id).as_deref(), Some("Pending:Proceed"));
    kit.seconds(2);
    assert_eq!(kit.state(&id).as_deref(), Some("InService"));
}

#[test]
fn an_abandoned_launch_is_terminated_and_tried_again() {
    let kit = Kit::with_group(0);
    hook(&kit, "join", LAUNCHING, "ABANDON");
    kit.set_desired(1);
    kit.seconds(30);
    let id = kit.ids("pool").remove(0);
    kit.autoscaling("CompleteLifecycleAction", complete("join", &id, "ABANDON"));
    assert_eq!(kit.state(&id).as_deref(), Some("Terminating"));
    let cancelled = kit
        .activities("pool")
        .into_iter()
        .find(|one| one.text_of("StatusCode") == Some("Cancelled"))
        .unwrap();
    assert!(
        cancelled
            .text_of("StatusMessage")
            .unwrap()
            .starts_with("Instance failed to complete user's Lifecycle Action")
    );
    kit.seconds(60);
    let others: Vec<String> = kit.ids("pool").into_iter().filter(|other| *other != id).collect();
    assert_eq!(others.len(), 1);
}

#[test]
fn deleting_a_hook_completes_what_it_holds() {
    let kit = Kit::with_group(1);
    hook(&kit, "drain", TERMINATING, "ABANDON");
    let id = kit.ids("pool").remove(0);
    kit.end(&id, true).unwrap();
    kit.seconds(5);
    kit.autoscaling("DeleteLifecycleHook", named("pool").with("LifecycleHookName", "drain"));
    assert_eq!(kit.state(&id).as_deref(), Some("Terminating:Proceed"));
    hook(&kit, "join", LAUNCHING, "CONTINUE");
    kit.set_desired(1);
    kit.settle();
    let held = kit.ids("pool").remove(0);
    assert_eq!(kit.state(&held).as_deref(), Some("Pending:Wait"));
    kit.autoscaling("DeleteLifecycleHook", named("pool").with("LifecycleHookName", "join"));
    assert_eq!(kit.state(&held).as_deref(), Some("Terminating"), "launches are abandoned");
    let (code, _) = kit.refused("DeleteLifecycleHook", named("pool").with("LifecycleHookName", "join"));
    assert_eq!(code, "ValidationError");
}

#[test]
fn hooks_can_come_with_the_group_and_have_defaults() {
    let kit = Kit::with_template();
    let specification =
        Tree::new().with("LifecycleHookName", "drain").with("LifecycleTransition", TERMINATING);
    let params = group("pool", 0).with("LifecycleHookSpecificationList", vec![specification]);
    kit.autoscaling("CreateAutoScalingGroup", params);
    let hooks = kit.autoscaling("DescribeLifecycleHooks", named("pool"));
    let hook = &hooks.items_of("LifecycleHooks")[0];
    assert_eq!(hook.number_of("HeartbeatTimeout"), Some(3600));
    assert_eq!(hook.number_of("GlobalTimeout"), Some(172_800));
    assert_eq!(hook.text_of("DefaultResult"), Some("ABANDON"));
    let other = named("pool").with("LifecycleHookNames", vec!["other"]);
    assert_eq!(kit.autoscaling("DescribeLifecycleHooks", other).items_of("LifecycleHooks").len(), 0);
}

#[test]
fn hook_parameters_have_limits() {
    let kit = Kit::with_group(0);
    let put = |name: &str, timeout: i64| {
        named("pool")
            .with("LifecycleHookName", name)
            .with("LifecycleTransition", TERMINATING)
            .with("HeartbeatTimeout", timeout)
    };
    assert_eq!(kit.refused("PutLifecycleHook", put("a", 29)).0, "ValidationError");
    assert_eq!(kit.refused("PutLifecycleHook", put("a", 7201)).0, "ValidationError");
    assert_eq!(kit.refused("PutLifecycleHook", put("a b", 30)).0, "ValidationError");
    assert_eq!(
        kit.refused("PutLifecycleHook", named("pool").with("LifecycleHookName", "new")).0,
        "ValidationError"
    );
    for index in 0..50 {
        kit.autoscaling("PutLifecycleHook", put(&format!("hook-{index}"), 30));
    }
    assert_eq!(kit.refused("PutLifecycleHook", put("one-more", 30)).0, "LimitExceeded");
    kit.autoscaling(
        "PutLifecycleHook",
        named("pool").with("LifecycleHookName", "hook-0").with("HeartbeatTimeout", 60),
    );
    let hooks =
        kit.autoscaling("DescribeLifecycleHooks", named("pool").with("LifecycleHookNames", vec!["hook-0"]));
    assert_eq!(texts(hooks.items_of("LifecycleHooks"), "HeartbeatTimeout"), ["60"]);
}

#[test]
fn hooks_fire_on_the_groups_own_scale_in() {
    let kit = Kit::with_group(2);
    hook(&kit, "drain", TERMINATING, "CONTINUE");
    kit.set_desired(1);
    kit.seconds(10);
    let mut states = kit.states("pool");
    states.sort();
    assert_eq!(states, ["InService", "Terminating:Wait"]);
}
