//! Tags of groups and of EC2's resources.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, group, texts};

fn tag(key: &str, value: &str) -> Tree {
    Tree::new()
        .with("ResourceId", "pool")
        .with("ResourceType", "auto-scaling-group")
        .with("Key", key)
        .with("Value", value)
        .with("PropagateAtLaunch", true)
}

fn tags(tags: Vec<Tree>) -> Tree {
    Tree::new().with("Tags", tags)
}

#[test]
fn group_tags_are_set_listed_filtered_and_deleted() {
    let kit = Kit::with_group(0);
    kit.autoscaling("CreateOrUpdateTags", tags(vec![tag("a", "1"), tag("b", "2")]));
    kit.autoscaling("CreateOrUpdateTags", tags(vec![tag("a", "3")]));
    let shown = kit.describe("pool").unwrap();
    assert_eq!(texts(shown.items_of("Tags"), "Value"), ["3", "2"]);
    assert_eq!(shown.items_of("Tags")[0].text_of("ResourceId"), Some("pool"));
    let filter = Tree::new().with("Name", "key").with("Values", vec!["b"]);
    let found = kit.autoscaling("DescribeTags", Tree::new().with("Filters", vec![filter]));
    assert_eq!(texts(found.items_of("Tags"), "Key"), ["b"]);
    kit.autoscaling("DeleteTags", tags(vec![tag("a", "3")]));
    assert_eq!(texts(kit.describe("pool").unwrap().items_of("Tags"), "Key"), ["b"]);
}

#[test]
fn groups_are_found_by_their_tags() {
    let kit = Kit::with_group(0);
    kit.autoscaling("CreateAutoScalingGroup", group("other", 0));
    kit.autoscaling("CreateOrUpdateTags", tags(vec![tag("cluster", "one")]));
    let find = |name: &str, value: &str| {
        let filter = Tree::new().with("Name", name).with("Values", vec![value]);
        let found = kit.autoscaling("DescribeAutoScalingGroups", Tree::new().with("Filters", vec![filter]));
        texts(found.items_of("AutoScalingGroups"), "AutoScalingGroupName")
    };
    assert_eq!(find("tag:cluster", "one"), ["pool"]);
    assert_eq!(find("tag:cluster", "two"), [""; 0]);
    assert_eq!(find("tag-key", "cluster"), ["pool"]);
    assert_eq!(find("tag-value", "one"), ["pool"]);
    let wrong = Tree::new().with("Filters", vec![Tree::new().with("Name", "name").with("Values", vec!["x"])]);
    assert_eq!(kit.refused("DescribeAutoScalingGroups", wrong).0, "ValidationError");
}

#[test]
fn reserved_keys_and_too_many_tags_are_rejected() {
    let kit = Kit::with_group(0);
    assert_eq!(kit.refused("CreateOrUpdateTags", tags(vec![tag("aws:x", "1")])).0, "ValidationError");
    let many = (0..51).map(|index| tag(&format!("key-{index}"), "")).collect();
    assert_eq!(kit.refused("CreateOrUpdateTags", tags(many)).0, "LimitExceeded");
    assert_eq!(kit.describe("pool").unwrap().items_of("Tags").len(), 0, "nothing changed");
    let long = kit.refused("CreateOrUpdateTags", tags(vec![tag(&"k".repeat(129), "")]));
    assert!(long.1.contains("less than or equal to 128"), "{long:?}");
}

#[test]
fn tags_set_later_concern_later_launches() {
    let kit = Kit::with_group(1);
    kit.autoscaling("CreateOrUpdateTags", tags(vec![tag("late", "1")]));
    kit.set_desired(2);
    kit.settle();
    let with: Vec<bool> =
        kit.simulator.dump(None)[0].instances.iter().map(|one| one.tags.contains_key("late")).collect();
    assert_eq!(with.iter().filter(|late| **late).count(), 1);
}

#[test]
fn ec2_tags_go_on_anything_that_exists() {
    let kit = Kit::with_group(1);
    let id = kit.ids("pool").remove(0);
    let pair = Tree::new().with("Key", "k").with("Value", "v");
    let both = vec![id.as_str(), "subnet-0a1b2c3d"];
    kit.ec2("CreateTags", Tree::new().with("Resources", both.clone()).with("Tags", vec![pair.clone()]));
    let filter = Tree::new().with("Name", "tag:k").with("Values", vec!["v"]);
    let subnets = kit.ec2("DescribeSubnets", Tree::new().with("Filters", vec![filter.clone()]));
    assert_eq!(texts(subnets.items_of("Subnets"), "SubnetId"), ["subnet-0a1b2c3d"]);
    let found = kit.ec2("DescribeInstances", Tree::new().with("Filters", vec![filter]));
    assert_eq!(found.items_of("Reservations").len(), 1);
    kit.ec2("DeleteTags", Tree::new().with("Resources", both).with("Tags", vec![pair.clone()]));
    assert!(!kit.simulator.dump(None)[0].instances[0].tags.contains_key("k"));
    let missing = Tree::new().with("Resources", vec!["lt-00000000000000000"]).with("Tags", vec![pair]);
    assert_eq!(kit.try_ec2("CreateTags", missing).unwrap_err().code, "InvalidLaunchTemplateId.NotFound");
}
