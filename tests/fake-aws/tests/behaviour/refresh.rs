//! Instance refreshes: what is replaced, how fast, and what the group becomes.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, group, named};

/// A desired configuration: that version of `nodes`.
pub fn desired(version: u32) -> Tree {
    let specification = Tree::new().with("LaunchTemplateName", "nodes").with("Version", version);
    Tree::new().with("LaunchTemplate", specification)
}

/// Preferences without warm-up, beside `more`.
pub fn preferences(more: Tree) -> Tree {
    let mut all = more.with("InstanceWarmup", 0);
    if all.get("ScaleInProtectedInstances").is_none() {
        all.set("ScaleInProtectedInstances", "Refresh");
    }
    all
}

pub fn refresh(version: u32, more: Tree) -> Tree {
    named("pool").with("DesiredConfiguration", desired(version)).with("Preferences", preferences(more))
}

impl Kit {
    /// The fewest and most instances in service or on their way in while seconds pass, and the fewest in service.
    fn extremes(&self, seconds: usize) -> (usize, usize) {
        let (mut fewest, mut most) = (usize::MAX, 0);
        for _ in 0..seconds {
            let states = self.states("pool");
            fewest = fewest.min(states.iter().filter(|state| *state == "InService").count());
            most = most.max(states.iter().filter(|state| !state.starts_with("Terminating")).count());
            self.seconds(1);
        }
        (fewest, most)
    }
}

#[test]
fn a_refresh_replaces_all_and_then_updates_the_group() {
    let kit = Kit::with_two_versions(4);
    kit.protect(&kit.ids("pool"), true);
    let id = kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    assert_eq!(kit.refresh_status(), "Pending");
    assert!(kit.refreshes()[0].text_of("StartTime").is_none());
    kit.seconds(30);
    assert_eq!(kit.refresh_status(), "InProgress");
    assert_eq!(kit.group_version(), "1", "left alone until it succeeds");
    kit.seconds(600);
    let newest = kit.refreshes().remove(0);
    assert_eq!(newest.text_of("InstanceRefreshId"), id.text_of("InstanceRefreshId"));
    assert_eq!(newest.text_of("Status"), Some("Successful"));
    assert_eq!(newest.number_of("PercentageComplete"), Some(100));
    assert_eq!(newest.number_of("InstancesToUpdate"), Some(0));
    assert_eq!(kit.versions(), [2; 4]);
    assert_eq!(kit.group_version(), "2");
}

#[test]
fn a_refresh_without_desired_configuration_uses_the_groups_own() {
    let kit = Kit::with_two_versions(2);
    kit.autoscaling("UpdateAutoScalingGroup", desired(2).with("AutoScalingGroupName", "pool"));
    let before = kit.ids("pool");
    kit.autoscaling("StartInstanceRefresh", named("pool").with("Preferences", preferences(Tree::new())));
    kit.seconds(20);
    // Such a refresh does not hold the group's template.
    kit.autoscaling("UpdateAutoScalingGroup", desired(2).with("AutoScalingGroupName", "pool"));
    kit.seconds(600);
    assert_eq!(kit.refresh_status(), "Successful");
    assert_eq!(kit.versions(), [2; 2]);
    assert!(kit.ids("pool").iter().all(|id| !before.contains(id)));
}

#[test]
fn during_a_refresh_launch_updates_are_rejected_and_sizes_accepted() {
    let kit = Kit::with_two_versions(2);
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    let (code, words) =
        kit.refused("UpdateAutoScalingGroup", desired(1).with("AutoScalingGroupName", "pool"));
    assert_eq!(code, "ValidationError");
    assert!(words.starts_with("An active instance refresh with a desired configuration exists."), "{words}");
    kit.autoscaling("UpdateAutoScalingGroup", named("pool").with("MaxSize", 9).with("DesiredCapacity", 3));
    kit.seconds(20);
    assert!(kit.versions().contains(&2), "a scale-out meanwhile launches what is desired");
    kit.seconds(600);
    assert_eq!(kit.versions(), [2; 3]);
    kit.autoscaling("UpdateAutoScalingGroup", desired(1).with("AutoScalingGroupName", "pool"));
}

#[test]
fn percentages_bound_missing_and_surplus_instances() {
    let run = |more: Tree| {
        let kit = Kit::with_two_versions(4);
        kit.autoscaling("StartInstanceRefresh", refresh(2, more));
        let extremes = kit.extremes(400);
        assert_eq!(kit.versions(), [2; 4]);
        assert_eq!(kit.refresh_status(), "Successful");
        extremes
    };
    let min = |percentage| Tree::new().with("MinHealthyPercentage", percentage);
    assert_eq!(run(min(50)), (2, 4), "two at a time");
    assert_eq!(run(min(90)), (3, 4), "one at a time, where the percentage allows none");
    assert_eq!(run(min(100).with("MaxHealthyPercentage", 150)), (4, 6), "launched before others end");
    assert_eq!(run(min(100).with("MaxHealthyPercentage", 100)), (4, 5), "one is launched before");
}

#[test]
fn a_warm_up_delays_the_next_replacement() {
    let run = |seconds| {
        let kit = Kit::with_two_versions(2);
        let preferences = Tree::new().with("InstanceWarmup", seconds);
        let params = named("pool").with("DesiredConfiguration", desired(2)).with("Preferences", preferences);
        kit.autoscaling("StartInstanceRefresh", params);
        kit.seconds(120);
        kit.refresh_status()
    };
    assert_eq!(run(0), "Successful");
    assert_eq!(run(200), "InProgress");
}

#[test]
fn matching_instances_are_skipped_on_request() {
    let kit = Kit::with_two_versions(2);
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    kit.seconds(300);
    let before = kit.ids("pool");
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new().with("SkipMatching", true)));
    kit.seconds(6);
    assert_eq!(kit.refresh_status(), "Successful", "nothing to do");
    assert_eq!(kit.ids("pool"), before);
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    kit.seconds(300);
    assert!(kit.ids("pool").iter().all(|id| !before.contains(id)), "not asked for");
}

#[test]
fn a_refresh_waits_at_checkpoints_and_continues() {
    let kit = Kit::with_two_versions(4);
    let more = Tree::new()
        .with("MinHealthyPercentage", 0)
        .with("CheckpointPercentages", vec![50, 100])
        .with("CheckpointDelay", 600);
    kit.autoscaling("StartInstanceRefresh", refresh(2, more));
    kit.seconds(300);
    let newest = kit.refreshes().remove(0);
    assert_eq!(newest.number_of("PercentageComplete"), Some(50));
    assert!(newest.text_of("StatusReason").is_some_and(|words| words.contains("checkpoint of 50%")));
    let old = kit.versions().into_iter().filter(|version| *version == 1).count();
    assert_eq!(old, 2);
    kit.seconds(600);
    assert_eq!(kit.refresh_status(), "Successful");
}

#[test]
fn a_refresh_succeeds_after_its_bake_time() {
    let kit = Kit::with_two_versions(1);
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new().with("BakeTime", 3600)));
    kit.seconds(300);
    assert_eq!(kit.refresh_status(), "Baking");
    assert_eq!(kit.group_version(), "1");
    kit.seconds(3600);
    assert_eq!(kit.refresh_status(), "Successful");
    assert_eq!(kit.group_version(), "2");
}

#[test]
fn hooks_hold_instances_that_a_refresh_replaces() {
    let kit = Kit::with_two_versions(2);
    let hook = named("pool")
        .with("LifecycleHookName", "drain")
        .with("LifecycleTransition", "autoscaling:EC2_INSTANCE_TERMINATING")
        .with("DefaultResult", "CONTINUE");
    kit.autoscaling("PutLifecycleHook", hook);
    kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
    kit.seconds(300);
    let states = kit.states("pool");
    assert!(states.contains(&"Terminating:Wait".to_owned()), "{states:?}");
    assert_eq!(kit.refresh_status(), "InProgress");
    for _ in 0..2 {
        for id in kit.ids("pool") {
            let complete = named("pool")
                .with("LifecycleHookName", "drain")
                .with("LifecycleActionResult", "CONTINUE")
                .with("InstanceId", id);
            let _ = kit.try_autoscaling("CompleteLifecycleAction", complete);
        }
        kit.seconds(300);
    }
    assert_eq!(kit.refresh_status(), "Successful");
}

#[test]
fn refreshes_are_listed_newest_first_in_pages() {
    let kit = Kit::with_two_versions(0);
    for _ in 0..3 {
        kit.autoscaling("StartInstanceRefresh", refresh(2, Tree::new()));
        kit.seconds(60);
    }
    let all: Vec<_> =
        kit.refreshes().iter().map(|own| own.text_of("StartTime").unwrap().to_owned()).collect();
    let mut sorted = all.clone();
    sorted.sort();
    sorted.reverse();
    assert_eq!(all, sorted);
    let page = kit.autoscaling("DescribeInstanceRefreshes", named("pool").with("MaxRecords", 2));
    assert_eq!(page.items_of("InstanceRefreshes").len(), 2);
    let next = page.text_of("NextToken").unwrap();
    let page = kit.autoscaling("DescribeInstanceRefreshes", named("pool").with("NextToken", next));
    assert_eq!(page.items_of("InstanceRefreshes").len(), 1);
    kit.autoscaling("CreateAutoScalingGroup", group("other", 0));
    let other = kit.autoscaling("DescribeInstanceRefreshes", named("other"));
    assert!(other.items_of("InstanceRefreshes").is_empty());
}
