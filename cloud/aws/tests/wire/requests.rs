//! The exact members of each request.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use capasg_cloud::{GroupChange, Launch, Selector, TemplateRef, Write};

use crate::{
    fixtures::{
        GROUP, HOOK, INSTANCE, TEMPLATE, create_group, every_write, group_tags, hook, launch, map, set,
        template_data,
    },
    replay::{Replay, Reply, refused},
};

/// What `write` sends, whatever comes back.
async fn sent(write: &Write) -> Result<(String, BTreeMap<String, String>)> {
    let replay = Replay::new([Reply::autoscaling_error(500, "InternalFailure", "")]);
    refused(replay.cloud().write(write).await)?;
    let sent = replay.only()?;
    Ok((sent.action, sent.members))
}

#[tokio::test]
async fn each_write_is_one_request_of_the_operation_it_names() -> Result<()> {
    for write in every_write() {
        assert_eq!(sent(&write).await?.0, write.api());
    }
    Ok(())
}

#[tokio::test]
async fn create_group_sends_every_member() -> Result<()> {
    let (_, members) = sent(&Write::CreateGroup(Box::new(create_group()))).await?;
    assert_eq!(
        members,
        map(&[
            ("AutoScalingGroupName", GROUP),
            ("MinSize", "0"),
            ("MaxSize", "6"),
            ("DesiredCapacity", "3"),
            ("VPCZoneIdentifier", "subnet-0aaa,subnet-0bbb"),
            ("HealthCheckType", "EBS,EC2"),
            ("HealthCheckGracePeriod", "300"),
            ("DefaultCooldown", "0"),
            ("DefaultInstanceWarmup", "60"),
            ("NewInstancesProtectedFromScaleIn", "true"),
            ("MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.LaunchTemplateId", TEMPLATE),
            ("MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.Version", "3"),
            ("MixedInstancesPolicy.LaunchTemplate.Overrides.member.1.InstanceType", "m6i.large"),
            ("MixedInstancesPolicy.LaunchTemplate.Overrides.member.2.InstanceType", "m5.large"),
            ("MixedInstancesPolicy.LaunchTemplate.Overrides.member.3.InstanceType", "c5.large"),
            ("MixedInstancesPolicy.InstancesDistribution.OnDemandBaseCapacity", "1"),
            ("MixedInstancesPolicy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity", "25"),
            ("MixedInstancesPolicy.InstancesDistribution.OnDemandAllocationStrategy", "prioritized"),
            ("MixedInstancesPolicy.InstancesDistribution.SpotAllocationStrategy", "price-capacity-optimized"),
            ("Tags.member.1.ResourceId", GROUP),
            ("Tags.member.1.ResourceType", "auto-scaling-group"),
            ("Tags.member.1.Key", "capasg-owner"),
            ("Tags.member.1.Value", "0f2c"),
            ("Tags.member.1.PropagateAtLaunch", "false"),
            ("Tags.member.2.ResourceId", GROUP),
            ("Tags.member.2.ResourceType", "auto-scaling-group"),
            ("Tags.member.2.Key", "kubernetes.io/cluster/demo"),
            ("Tags.member.2.Value", "owned"),
            ("Tags.member.2.PropagateAtLaunch", "true"),
            ("LifecycleHookSpecificationList.member.1.LifecycleHookName", HOOK),
            (
                "LifecycleHookSpecificationList.member.1.LifecycleTransition",
                "autoscaling:EC2_INSTANCE_TERMINATING",
            ),
            ("LifecycleHookSpecificationList.member.1.HeartbeatTimeout", "600"),
            ("LifecycleHookSpecificationList.member.1.DefaultResult", "CONTINUE"),
        ])
    );
    Ok(())
}

#[tokio::test]
async fn create_group_leaves_out_what_is_not_wanted() -> Result<()> {
    let mut create = create_group();
    create.settings.launch = Launch { mixed: None, ..launch() };
    create.settings.default_instance_warmup = None;
    create.settings.health_check_types = BTreeSet::new();
    create.tags.clear();
    create.hooks.clear();
    let (_, members) = sent(&Write::CreateGroup(Box::new(create))).await?;
    assert_eq!(
        members,
        map(&[
            ("AutoScalingGroupName", GROUP),
            ("MinSize", "0"),
            ("MaxSize", "6"),
            ("DesiredCapacity", "3"),
            ("VPCZoneIdentifier", "subnet-0aaa,subnet-0bbb"),
            ("HealthCheckType", "EC2"),
            ("HealthCheckGracePeriod", "300"),
            ("DefaultCooldown", "0"),
            ("NewInstancesProtectedFromScaleIn", "true"),
            ("LaunchTemplate.LaunchTemplateId", TEMPLATE),
            ("LaunchTemplate.Version", "3"),
        ])
    );
    Ok(())
}

#[tokio::test]
async fn update_group_sends_only_what_changes() -> Result<()> {
    let group = GROUP.to_owned();
    let update = |change| Write::UpdateGroup { group: group.clone(), change: Box::new(change) };
    let (_, members) = sent(&update(GroupChange { max: Some(7), ..GroupChange::default() })).await?;
    assert_eq!(members, map(&[("AutoScalingGroupName", GROUP), ("MaxSize", "7")]));

    let everything = GroupChange {
        launch: Some(Launch {
            mixed: None,
            template: TemplateRef { id: TEMPLATE.to_owned(), version: Some(9) },
        }),
        subnets: Some(set(&["subnet-0ccc"])),
        health_check_types: Some(set(&["EC2", "ELB"])),
        health_check_grace_period: Some(0),
        default_cooldown: Some(5),
        default_instance_warmup: Some(-1),
        protect_new_instances: Some(false),
        min: Some(0),
        max: Some(9),
        desired: Some(4),
    };
    let (_, members) = sent(&update(everything)).await?;
    assert_eq!(
        members,
        map(&[
            ("AutoScalingGroupName", GROUP),
            ("LaunchTemplate.LaunchTemplateId", TEMPLATE),
            ("LaunchTemplate.Version", "9"),
            ("VPCZoneIdentifier", "subnet-0ccc"),
            ("HealthCheckType", "EC2,ELB"),
            ("HealthCheckGracePeriod", "0"),
            ("DefaultCooldown", "5"),
            ("DefaultInstanceWarmup", "-1"),
            ("NewInstancesProtectedFromScaleIn", "false"),
            ("MinSize", "0"),
            ("MaxSize", "9"),
            ("DesiredCapacity", "4"),
        ])
    );
    Ok(())
}

#[tokio::test]
async fn the_maximum_spot_price_is_set_and_removed() -> Result<()> {
    let member = "MixedInstancesPolicy.InstancesDistribution.SpotMaxPrice";
    let mut wanted = launch();
    let update = |launch: &Launch| Write::UpdateGroup {
        group: GROUP.to_owned(),
        change: Box::new(GroupChange { launch: Some(launch.clone()), ..GroupChange::default() }),
    };
    let (_, members) = sent(&update(&wanted)).await?;
    assert_eq!(members.get(member).map(String::as_str), Some(""));
    assert!(!members.contains_key("LaunchTemplate.LaunchTemplateId"));

    if let Some(mixed) = &mut wanted.mixed {
        mixed.distribution.spot_max_price = Some("0.07".to_owned());
    }
    let (_, members) = sent(&update(&wanted)).await?;
    assert_eq!(members.get(member).map(String::as_str), Some("0.07"));
    Ok(())
}

#[tokio::test]
async fn capacity_calls_name_group_and_instances() -> Result<()> {
    let (group, instances) = (GROUP.to_owned(), set(&["i-2", "i-1"]));
    let set_desired = Write::SetDesiredCapacity { group: group.clone(), desired: 0 };
    assert_eq!(
        sent(&set_desired).await?.1,
        map(&[("AutoScalingGroupName", GROUP), ("DesiredCapacity", "0"), ("HonorCooldown", "false")])
    );
    let many =
        Write::TerminateInstances { group: group.clone(), instances: instances.clone(), decrement: false };
    assert_eq!(
        sent(&many).await?.1,
        map(&[
            ("AutoScalingGroupName", GROUP),
            ("InstanceIds.member.1", "i-1"),
            ("InstanceIds.member.2", "i-2"),
            ("ShouldDecrementDesiredCapacity", "false"),
        ])
    );
    let one =
        Write::TerminateInstances { group: group.clone(), instances: set(&[INSTANCE]), decrement: true };
    assert_eq!(
        sent(&one).await?.1,
        map(&[
            ("AutoScalingGroupName", GROUP),
            ("InstanceIds.member.1", INSTANCE),
            ("ShouldDecrementDesiredCapacity", "true"),
        ])
    );
    let protect = Write::SetInstanceProtection { group, instances, protected: true };
    assert_eq!(
        sent(&protect).await?.1,
        map(&[
            ("AutoScalingGroupName", GROUP),
            ("InstanceIds.member.1", "i-1"),
            ("InstanceIds.member.2", "i-2"),
            ("ProtectedFromScaleIn", "true"),
        ])
    );
    Ok(())
}

#[tokio::test]
async fn hook_calls_name_group_hook_and_instance() -> Result<()> {
    let (group, instance) = (GROUP.to_owned(), INSTANCE.to_owned());
    let named = |more: &[(&str, &str)]| {
        let mut members = map(&[("AutoScalingGroupName", GROUP), ("LifecycleHookName", HOOK)]);
        members.extend(map(more));
        members
    };
    let put = Write::PutLifecycleHook { group: group.clone(), hook: hook() };
    assert_eq!(
        sent(&put).await?.1,
        named(&[
            ("LifecycleTransition", "autoscaling:EC2_INSTANCE_TERMINATING"),
            ("HeartbeatTimeout", "600"),
            ("DefaultResult", "CONTINUE"),
        ])
    );
    let complete = Write::CompleteLifecycleAction {
        group: group.clone(),
        hook: HOOK.to_owned(),
        instance: instance.clone(),
    };
    assert_eq!(
        sent(&complete).await?.1,
        named(&[("InstanceId", INSTANCE), ("LifecycleActionResult", "CONTINUE")])
    );
    let heartbeat =
        Write::RecordLifecycleActionHeartbeat { group: group.clone(), hook: HOOK.to_owned(), instance };
    assert_eq!(sent(&heartbeat).await?.1, named(&[("InstanceId", INSTANCE)]));
    let delete = Write::DeleteLifecycleHook { group, hook: HOOK.to_owned() };
    assert_eq!(sent(&delete).await?.1, named(&[]));
    Ok(())
}

#[tokio::test]
async fn process_and_tag_calls_send_their_lists() -> Result<()> {
    let group = GROUP.to_owned();
    let processes = set(&["Launch", "AZRebalance"]);
    let expected = map(&[
        ("AutoScalingGroupName", GROUP),
        ("ScalingProcesses.member.1", "AZRebalance"),
        ("ScalingProcesses.member.2", "Launch"),
    ]);
    let suspend = Write::SuspendProcesses { group: group.clone(), processes: processes.clone() };
    assert_eq!(sent(&suspend).await?.1, expected);
    assert_eq!(sent(&Write::ResumeProcesses { group: group.clone(), processes }).await?.1, expected);

    let (_, members) = sent(&Write::TagGroup { group: group.clone(), tags: group_tags() }).await?;
    assert_eq!(members.len(), 10);
    assert_eq!(members.get("Tags.member.2.PropagateAtLaunch").map(String::as_str), Some("true"));
    let untag = Write::UntagGroup { group: group.clone(), keys: set(&["old"]) };
    assert_eq!(
        sent(&untag).await?.1,
        map(&[
            ("Tags.member.1.ResourceId", GROUP),
            ("Tags.member.1.ResourceType", "auto-scaling-group"),
            ("Tags.member.1.Key", "old"),
        ])
    );
    let delete = Write::DeleteGroup { group, force: true };
    assert_eq!(sent(&delete).await?.1, map(&[("AutoScalingGroupName", GROUP), ("ForceDelete", "true")]));
    Ok(())
}

/// AWS reads an empty list as all processes.
#[tokio::test]
async fn no_process_is_never_sent_as_all() -> Result<()> {
    let replay = Replay::default();
    let write = Write::SuspendProcesses { group: GROUP.to_owned(), processes: BTreeSet::new() };
    let error = refused(replay.cloud().write(&write).await)?;
    assert_eq!(
        error.to_string(),
        "SuspendProcesses: InvalidRequest: no process is named, which AWS reads as all"
    );
    assert!(replay.sent().is_empty());
    Ok(())
}

#[tokio::test]
async fn create_launch_template_sends_every_member() -> Result<()> {
    let write = every_write().swap_remove(0);
    let (_, members) = sent(&write).await?;
    let data = "LaunchTemplateData.";
    let mut expected = map(&[
        ("LaunchTemplateName", GROUP),
        ("VersionDescription", "v1 content=aa rollout=bb"),
        ("ClientToken", "token-1"),
        ("TagSpecification.1.ResourceType", "launch-template"),
        ("TagSpecification.1.Tag.1.Key", "capasg-owner"),
        ("TagSpecification.1.Tag.1.Value", "0f2c"),
    ]);
    let content = [
        ("ImageId", "ami-0123456789abcdef0"),
        ("InstanceType", "m5.large"),
        ("IamInstanceProfile.Name", "nodes.example.io"),
        ("KeyName", "ops"),
        ("SecurityGroupId.1", "sg-0bbb"),
        ("SecurityGroupId.2", "sg-0aaa"),
        ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
        ("BlockDeviceMapping.1.Ebs.VolumeSize", "80"),
        ("BlockDeviceMapping.1.Ebs.VolumeType", "gp3"),
        ("BlockDeviceMapping.1.Ebs.Iops", "4000"),
        ("BlockDeviceMapping.1.Ebs.Throughput", "250"),
        ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
        ("BlockDeviceMapping.1.Ebs.KmsKeyId", "alias/nodes"),
        ("BlockDeviceMapping.1.Ebs.SnapshotId", "snap-0123456789abcdef0"),
        ("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"),
        ("MetadataOptions.HttpTokens", "required"),
        ("MetadataOptions.HttpPutResponseHopLimit", "1"),
        ("MetadataOptions.HttpEndpoint", "enabled"),
        ("MetadataOptions.HttpProtocolIpv6", "disabled"),
        ("MetadataOptions.InstanceMetadataTags", "disabled"),
        ("UserData", "I2Nsb3VkLWNvbmZpZwo="),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "Name"),
        ("TagSpecification.1.Tag.1.Value", "workers"),
        ("TagSpecification.1.Tag.2.Key", "kubernetes.io/cluster/demo"),
        ("TagSpecification.1.Tag.2.Value", "owned"),
        ("TagSpecification.2.ResourceType", "volume"),
        ("TagSpecification.2.Tag.1.Key", "Name"),
        ("TagSpecification.2.Tag.1.Value", "workers"),
        ("TagSpecification.2.Tag.2.Key", "kubernetes.io/cluster/demo"),
        ("TagSpecification.2.Tag.2.Value", "owned"),
    ];
    expected.extend(content.iter().map(|(name, value)| (format!("{data}{name}"), (*value).to_owned())));
    assert_eq!(members, expected);
    Ok(())
}

#[tokio::test]
async fn an_instance_profile_is_named_by_arn_if_it_is_one() -> Result<()> {
    let arn = "arn:aws:iam::123456789012:instance-profile/nodes";
    let mut data = template_data("");
    data.iam_instance_profile = Some(arn.to_owned());
    data.tags.clear();
    let (_, members) = sent(&Write::CreateLaunchTemplateVersion {
        id: TEMPLATE.to_owned(),
        data: Box::new(data),
        description: "d".to_owned(),
        client_token: "t".to_owned(),
    })
    .await?;
    assert_eq!(members.get("LaunchTemplateData.IamInstanceProfile.Arn").map(String::as_str), Some(arn));
    assert_eq!(members.get("LaunchTemplateId").map(String::as_str), Some(TEMPLATE));
    let absent = [
        "SourceVersion",
        "LaunchTemplateData.UserData",
        "LaunchTemplateData.TagSpecification.1.ResourceType",
    ];
    assert!(absent.iter().all(|name| !members.contains_key(*name)), "{members:?}");
    Ok(())
}

#[tokio::test]
async fn launch_template_versions_are_named_by_number() -> Result<()> {
    let id = TEMPLATE.to_owned();
    let default = Write::SetDefaultLaunchTemplateVersion { id: id.clone(), version: 12 };
    let (_, mut members) = sent(&default).await?;
    // The SDK's own, new with every call: repeating this call changes nothing.
    assert!(members.remove("ClientToken").is_some());
    assert_eq!(members, map(&[("LaunchTemplateId", TEMPLATE), ("SetDefaultVersion", "12")]));
    let delete = Write::DeleteLaunchTemplateVersions { id: id.clone(), versions: BTreeSet::from([10, 9]) };
    let expected = map(&[
        ("LaunchTemplateId", TEMPLATE),
        ("LaunchTemplateVersion.1", "9"),
        ("LaunchTemplateVersion.2", "10"),
    ]);
    assert_eq!(sent(&delete).await?.1, expected);
    let delete_all = Write::DeleteLaunchTemplate { id };
    assert_eq!(sent(&delete_all).await?.1, map(&[("LaunchTemplateId", TEMPLATE)]));
    Ok(())
}

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
    Ok(())
}

/// Without names or filters AWS would list everything there is.
#[tokio::test]
async fn asking_for_nothing_asks_nothing() -> Result<()> {
    let replay = Replay::default();
    let cloud = replay.cloud();
    assert!(cloud.groups(&[], None).await?.items.is_empty());
    assert!(cloud.instances(&[], None).await?.items.is_empty());
    for selector in [Selector::Ids(BTreeSet::new()), Selector::Tags(BTreeMap::new())] {
        let error = refused(cloud.subnets(&selector, None).await)?;
        assert!(error.message.contains("names no id and no tag"), "{error}");
    }
    let by_name = Selector::Name("private".to_owned());
    let error = refused(cloud.subnets(&by_name, None).await)?;
    assert_eq!(error.message, "these resources are not selected by name");
    assert!(replay.sent().is_empty());
    Ok(())
}

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

    let replay = Replay::new([Reply::ok("<DescribeSubnetsResponse/>")]);
    replay.cloud().subnets(&Selector::Ids(set(&["subnet-1"])), None).await?;
    assert_eq!(replay.only()?.members.get("Filter.1.Name").map(String::as_str), Some("subnet-id"));
    Ok(())
}
