//! Pagination and the limits on what one call may name.

use capasg_fake_aws::Tree;

use crate::kit::{Kit, group, named, texts};

fn with_groups(count: usize) -> Kit {
    let kit = Kit::with_template();
    for index in 0..count {
        kit.autoscaling("CreateAutoScalingGroup", group(&format!("pool-{index:03}"), 0));
    }
    kit
}

/// Follows the tokens to the end; the sizes of the pages and all names.
fn walk(kit: &Kit, params: &Tree) -> (Vec<usize>, Vec<String>) {
    let (mut sizes, mut names, mut token) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let reply = kit.autoscaling("DescribeAutoScalingGroups", params.clone().with_opt("NextToken", token));
        let page = texts(reply.items_of("AutoScalingGroups"), "AutoScalingGroupName");
        sizes.push(page.len());
        names.extend(page);
        token = reply.text_of("NextToken").map(str::to_owned);
        if token.is_none() {
            return (sizes, names);
        }
    }
}

#[test]
fn pages_have_50_groups_by_default_and_at_most_100() {
    let kit = with_groups(120);
    let (sizes, names) = walk(&kit, &Tree::new());
    assert_eq!(sizes, [50, 50, 20]);
    assert_eq!(names.len(), 120);
    assert_eq!(walk(&kit, &Tree::new().with("MaxRecords", 100)).0, [100, 20]);
    for wrong in [0, 101] {
        assert_eq!(
            kit.refused("DescribeAutoScalingGroups", Tree::new().with("MaxRecords", wrong)).0,
            "ValidationError"
        );
    }
    assert_eq!(
        kit.refused("DescribeAutoScalingGroups", Tree::new().with("NextToken", "*")).0,
        "InvalidNextToken"
    );
}

#[test]
fn a_call_may_name_50_groups_or_100_with_max_records() {
    let kit = with_groups(2);
    let names: Vec<String> = (0..51).map(|index| format!("pool-{index:03}")).collect();
    let params = Tree::new().with("AutoScalingGroupNames", names.clone());
    let (_, words) = kit.refused("DescribeAutoScalingGroups", params.clone());
    assert_eq!(words, "The number of group names that may be passed in is limited to 50");
    let (_, found) = walk(&kit, &params.with("MaxRecords", 100));
    assert_eq!(found, ["pool-000", "pool-001"], "unknown names are left out");
}

#[test]
fn short_pages_can_be_had_even_for_named_groups() {
    let kit = with_groups(5);
    kit.change_settings(|settings| settings.page_limit = Some(2));
    let names: Vec<String> = (0..5).map(|index| format!("pool-{index:03}")).collect();
    let (sizes, found) =
        walk(&kit, &Tree::new().with("AutoScalingGroupNames", names.clone()).with("MaxRecords", 100));
    assert_eq!(sizes, [2, 2, 1]);
    assert_eq!(found, names);
}

#[test]
fn a_page_continues_after_the_last_even_if_that_was_deleted() {
    let kit = with_groups(4);
    let first = kit.autoscaling("DescribeAutoScalingGroups", Tree::new().with("MaxRecords", 2));
    kit.autoscaling("DeleteAutoScalingGroup", named("pool-001"));
    kit.settle();
    let next = Tree::new().with("MaxRecords", 2).with("NextToken", first.text_of("NextToken").unwrap());
    let second = kit.autoscaling("DescribeAutoScalingGroups", next);
    assert_eq!(texts(second.items_of("AutoScalingGroups"), "AutoScalingGroupName"), ["pool-002", "pool-003"]);
}

#[test]
fn activities_come_running_first_then_newest() {
    let kit = Kit::with_group(3);
    kit.set_desired(4);
    kit.seconds(3);
    let params = named("pool").with("MaxRecords", 2);
    let first = kit.autoscaling("DescribeScalingActivities", params.clone());
    assert_eq!(first.items_of("Activities")[0].text_of("StatusCode"), Some("PreInService"));
    let second = kit.autoscaling(
        "DescribeScalingActivities",
        params.with("NextToken", first.text_of("NextToken").unwrap()),
    );
    assert_eq!(second.items_of("Activities").len(), 2);
    assert_eq!(second.get("NextToken"), None);
}

#[test]
fn instances_are_listed_over_all_groups() {
    let kit = Kit::with_group(3);
    let ids = kit.ids("pool");
    let params = Tree::new().with("InstanceIds", vec![ids[0].as_str(), "i-00000000000000000"]);
    let found = kit.autoscaling("DescribeAutoScalingInstances", params);
    assert_eq!(texts(found.items_of("AutoScalingInstances"), "HealthStatus"), ["HEALTHY"]);
    let many = vec![ids[0].as_str(); 51];
    assert_eq!(
        kit.refused("DescribeAutoScalingInstances", Tree::new().with("InstanceIds", many)).0,
        "ValidationError"
    );
}

#[test]
fn ec2_pages_go_by_max_results() {
    let kit = Kit::with_group(7);
    let first = kit.ec2("DescribeInstances", Tree::new().with("MaxResults", 5));
    assert_eq!(first.items_of("Reservations").len(), 5);
    let token = first.text_of("NextToken").unwrap();
    let second = kit.ec2("DescribeInstances", Tree::new().with("MaxResults", 5).with("NextToken", token));
    assert_eq!(second.items_of("Reservations").len(), 2);
    assert_eq!(
        kit.try_ec2("DescribeInstances", Tree::new().with("MaxResults", 4)).unwrap_err().code,
        "InvalidParameterValue"
    );
}

#[test]
fn a_group_has_no_refreshes_yet() {
    let kit = Kit::with_group(0);
    assert_eq!(
        kit.autoscaling("DescribeInstanceRefreshes", named("pool")).items_of("InstanceRefreshes").len(),
        0
    );
}
