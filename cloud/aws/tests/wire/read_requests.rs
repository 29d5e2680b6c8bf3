//! What reads ask for, and what they never ask for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use capasg_cloud::Selector;

use crate::{
    fixtures::{map, set},
    replay::{Replay, Reply, refused},
};

#[tokio::test]
async fn group_and_instance_reads_ask_for_full_pages() -> Result<()> {
    let replay = Replay::new([Reply::result("DescribeAutoScalingGroups", "")]);
    let names = ["a".to_owned(), "b".to_owned()];
    replay.cloud().groups(&names, Some("next".to_owned())).await?;
    let members = replay.only()?.members;
    assert_eq!(
        members,
        map(&[
            ("AutoScalingGroupNames.member.1", "a"),
            ("AutoScalingGroupNames.member.2", "b"),
            ("MaxRecords", "100"),
            ("NextToken", "next"),
        ])
    );

    let replay = Replay::new([Reply::ok("<DescribeInstancesResponse/>")]);
    replay.cloud().instances(&["i-1".to_owned()], None).await?;
    let expected =
        map(&[("Filter.1.Name", "instance-id"), ("Filter.1.Value.1", "i-1"), ("MaxResults", "1000")]);
    assert_eq!(replay.only()?.members, expected);

    let replay = Replay::new([Reply::ok("<DescribeInstanceTypesResponse/>")]);
    replay.cloud().instance_types(&["m7i.large".to_owned()], None).await?;
    let expected =
        map(&[("Filter.1.Name", "instance-type"), ("Filter.1.Value.1", "m7i.large"), ("MaxResults", "100")]);
    assert_eq!(replay.only()?.members, expected);

    let replay = Replay::new([Reply::ok("<DescribeInstanceTypeOfferingsResponse/>")]);
    replay.cloud().type_offerings(&["m7i.large".to_owned()], None).await?;
    let expected = map(&[
        ("Filter.1.Name", "instance-type"),
        ("Filter.1.Value.1", "m7i.large"),
        ("LocationType", "availability-zone"),
        ("MaxResults", "1000"),
    ]);
    assert_eq!(replay.only()?.members, expected);

    let replay = Replay::new([Reply::ok("<DescribeInstancesResponse/>")]);
    replay.cloud().running_instances(Some("next".to_owned())).await?;
    let expected = map(&[
        ("Filter.1.Name", "instance-state-name"),
        ("Filter.1.Value.1", "pending"),
        ("Filter.1.Value.2", "running"),
        ("MaxResults", "1000"),
        ("NextToken", "next"),
    ]);
    assert_eq!(replay.only()?.members, expected);
    Ok(())
}

/// Without names or filters AWS would list everything there is.
#[tokio::test]
async fn asking_for_nothing_asks_nothing() -> Result<()> {
    let replay = Replay::default();
    let cloud = replay.cloud();
    assert!(cloud.groups(&[], None).await?.items.is_empty());
    assert!(cloud.instances(&[], None).await?.items.is_empty());
    assert!(cloud.instance_types(&[], None).await?.items.is_empty());
    assert!(cloud.type_offerings(&[], None).await?.items.is_empty());
    for selector in [Selector::Ids(BTreeSet::new()), Selector::Tags(BTreeMap::new())] {
        let error = refused(cloud.subnets(&selector, None).await)?;
        assert!(error.message.contains("has neither an ID nor a tag"), "{error}");
    }
    let by_name = Selector::Name("private".to_owned());
    let error = refused(cloud.subnets(&by_name, None).await)?;
    assert_eq!(error.message, "these resources are not selected by name");
    assert!(replay.sent().is_empty());
    Ok(())
}

// Pains: P25
#[tokio::test]
async fn selectors_become_filters_without_wildcards() -> Result<()> {
    let replay = Replay::new([Reply::ok("<DescribeSubnetsResponse/>")]);
    let tags = map(&[("kubernetes.io/role/internal-elb", ""), ("tier", "a*b?\\")]);
    replay.cloud().subnets(&Selector::Tags(tags), None).await?;
    assert_eq!(
        replay.only()?.members,
        map(&[
            ("Filter.1.Name", "tag-key"),
            ("Filter.1.Value.1", "kubernetes.io/role/internal-elb"),
            ("Filter.2.Name", "tag:tier"),
            ("Filter.2.Value.1", "a\\*b\\?\\\\"),
            ("MaxResults", "1000"),
        ])
    );

    let replay = Replay::new([Reply::ok("<DescribeSecurityGroupsResponse/>")]);
    replay.cloud().security_groups(&Selector::Name("nodes".to_owned()), None).await?;
    let expected =
        map(&[("Filter.1.Name", "group-name"), ("Filter.1.Value.1", "nodes"), ("MaxResults", "1000")]);
    assert_eq!(replay.only()?.members, expected);

    let replay = Replay::new([Reply::ok("<DescribeSecurityGroupVpcAssociationsResponse/>")]);
    assert!(!replay.cloud().is_associated("sg-1", "vpc-2").await?);
    let expected = map(&[
        ("Filter.1.Name", "group-id"),
        ("Filter.1.Value.1", "sg-1"),
        ("Filter.2.Name", "vpc-id"),
        ("Filter.2.Value.1", "vpc-2"),
        ("Filter.3.Name", "state"),
        ("Filter.3.Value.1", "associated"),
    ]);
    assert_eq!(replay.only()?.members, expected);

    let replay = Replay::new([Reply::ok("<DescribeSubnetsResponse/>")]);
    replay.cloud().subnets(&Selector::Ids(set(&["subnet-1"])), None).await?;
    assert_eq!(replay.only()?.members.get("Filter.1.Name").map(String::as_str), Some("subnet-id"));
    Ok(())
}
