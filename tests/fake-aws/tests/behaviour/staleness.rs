//! Reads that lag behind writes.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, group, named};

#[test]
fn reads_show_an_earlier_state() {
    let kit = Kit::with_template();
    kit.change_settings(|settings| settings.read_lag_millis = 3_000);
    kit.seconds(10);
    kit.autoscaling("CreateAutoScalingGroup", group("pool", 0));
    assert!(kit.describe("pool").is_none(), "just created, not yet listed");
    kit.seconds(2);
    assert!(kit.describe("pool").is_none());
    kit.seconds(1);
    assert!(kit.describe("pool").is_some());
    kit.autoscaling("SetDesiredCapacity", named("pool").with("DesiredCapacity", 4));
    assert_eq!(kit.desired("pool"), 0);
    kit.seconds(3);
    assert_eq!(kit.desired("pool"), 4);
}

#[test]
fn a_group_just_deleted_may_still_be_listed() {
    let kit = Kit::with_group(0);
    kit.change_settings(|settings| {
        settings.read_lag_millis = 20_000;
        settings.delete_millis = 1_000;
    });
    kit.autoscaling("DeleteAutoScalingGroup", named("pool"));
    kit.seconds(5);
    assert!(kit.describe("pool").is_some());
    let (_, words) = kit.refused("SetDesiredCapacity", named("pool").with("DesiredCapacity", 1));
    assert!(words.contains("not found"), "writes see the truth: {words}");
    kit.seconds(20);
    assert!(kit.describe("pool").is_none());
}

#[test]
fn with_jitter_a_read_can_be_older_than_the_one_before() {
    let kit = Kit::with_group(0);
    kit.change_settings(|settings| {
        settings.read_lag_millis = 10_000;
        settings.read_lag_jitter = true;
    });
    let mut back = false;
    for size in 1..=10 {
        kit.autoscaling("SetDesiredCapacity", named("pool").with("DesiredCapacity", size));
        kit.seconds(1);
        let views: Vec<i64> = (0..8).map(|_| kit.desired("pool")).collect();
        back |= views.windows(2).any(|pair| pair[1] < pair[0]);
    }
    assert!(back);
}

#[test]
fn templates_and_instances_lag_too() {
    let kit = Kit::new();
    kit.change_settings(|settings| settings.read_lag_millis = 3_000);
    kit.seconds(10);
    kit.template("nodes", crate::kit::data());
    let names = Tree::new().with("LaunchTemplateNames", vec!["nodes"]);
    let error = kit.try_ec2("DescribeLaunchTemplates", names.clone()).unwrap_err();
    assert_eq!(error.code, "InvalidLaunchTemplateName.NotFoundException");
    kit.seconds(3);
    kit.ec2("DescribeLaunchTemplates", names);
}
