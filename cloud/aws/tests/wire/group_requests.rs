//! The exact members of each write to Auto Scaling.

use std::collections::BTreeSet;

use anyhow::Result;
use capasg_cloud::{GroupChange, Launch, MaintenancePolicy, TemplateRef, Write};

use crate::{
    fixtures::{
        GROUP, HOOK, INSTANCE, TEMPLATE, create_group, every_write, group_tags, hook, launch, map, set,
    },
    replay::{Replay, refused, sent},
};

#[tokio::test]
async fn each_write_is_one_request_of_the_operation_it_names() -> Result<()> {
    for write in every_write() {
        assert_eq!(sent(&write).await?.0, write.api());
    }
    Ok(())
}

// Pains: P52
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
            ("HealthCheckType", "EBS"),
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
        capacity_rebalance: Some(false),
        maintenance_policy: Some(MaintenancePolicy::NONE),
        retains_abandoned: Some(false),
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
            ("HealthCheckType", "ELB"),
            ("HealthCheckGracePeriod", "0"),
            ("DefaultCooldown", "5"),
            ("DefaultInstanceWarmup", "-1"),
            ("NewInstancesProtectedFromScaleIn", "false"),
            ("CapacityRebalance", "false"),
            ("InstanceMaintenancePolicy.MinHealthyPercentage", "-1"),
            ("InstanceMaintenancePolicy.MaxHealthyPercentage", "-1"),
            ("InstanceLifecyclePolicy.RetentionTriggers.TerminateHookAbandon", "terminate"),
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
        "SuspendProcesses: InvalidRequest: no process is specified, which AWS treats as all processes"
    );
    assert!(replay.sent().is_empty());
    Ok(())
}
