//! Replies as the port's values, complete and with everything optional left out.

use anyhow::{Context, Result};
use capasg_cloud::{
    Capacity, ErrorClass, Gpu, Group, GroupTag, HealthStatus, InstanceFacts, InstanceState,
    InstancesDistribution, LaunchTemplate, LifecycleState, PurchaseOption, SecurityGroup, Selector, Subnet,
    TemplateRef, Write, Written,
};

use crate::{
    fixtures::{GROUP, TEMPLATE, every_write, map, set},
    replay::{Replay, Reply, refused},
};

const REQUIRED: &str = "<AutoScalingGroupName>g</AutoScalingGroupName><MinSize>0</MinSize><MaxSize>6</MaxSize>\
                        <DesiredCapacity>3</DesiredCapacity>";

async fn groups(members: &[String]) -> capasg_cloud::Result<Vec<Group>> {
    let listed = members.join("</member><member>");
    let result = format!("<AutoScalingGroups><member>{listed}</member></AutoScalingGroups>");
    let replay = Replay::new([Reply::result("DescribeAutoScalingGroups", &result)]);
    Ok(replay.cloud().groups(&["g".to_owned()], None).await?.items)
}

async fn group(members: &str) -> Result<Group> {
    let mut groups = groups(&[format!("{REQUIRED}{members}")]).await?;
    groups.pop().context("no group")
}

#[tokio::test]
async fn a_group_is_read_whole() -> Result<()> {
    let group = group(
        "<AutoScalingGroupARN>arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:u:\
         autoScalingGroupName/g</AutoScalingGroupARN>\
         <DefaultCooldown>300</DefaultCooldown><DefaultInstanceWarmup>60</DefaultInstanceWarmup>\
         <AvailabilityZones><member>eu-central-1b</member><member>eu-central-1a</member></AvailabilityZones>\
         <HealthCheckType>EC2,EBS</HealthCheckType><HealthCheckGracePeriod>15</HealthCheckGracePeriod>\
         <VPCZoneIdentifier>subnet-2, subnet-1</VPCZoneIdentifier>\
         <NewInstancesProtectedFromScaleIn>true</NewInstancesProtectedFromScaleIn>\
         <Status>Delete in progress</Status>\
         <SuspendedProcesses><member><ProcessName>AZRebalance</ProcessName><SuspensionReason>User suspended\
         </SuspensionReason></member></SuspendedProcesses>\
         <Tags><member><Key>k</Key><Value>v</Value><PropagateAtLaunch>true</PropagateAtLaunch>\
         <ResourceId>g</ResourceId><ResourceType>auto-scaling-group</ResourceType></member>\
         <member><Key>bare</Key></member></Tags>\
         <LaunchTemplate><LaunchTemplateId>lt-1</LaunchTemplateId><LaunchTemplateName>n</LaunchTemplateName>\
         <Version>7</Version></LaunchTemplate>\
         <SomethingNew>1</SomethingNew>",
    )
    .await?;
    assert_eq!(group.account(), Some("123456789012"));
    assert_eq!(group.capacity, Capacity { min: 0, max: 6, desired: 3 });
    assert_eq!(group.zones, set(&["eu-central-1a", "eu-central-1b"]));
    assert!(group.is_deleting());
    assert_eq!(group.suspended_processes, map(&[("AZRebalance", "User suspended")]));
    assert_eq!(group.tags.get("k"), Some(&GroupTag { value: "v".to_owned(), propagate: true }));
    assert_eq!(group.tags.get("bare"), Some(&GroupTag { value: String::new(), propagate: false }));
    let settings = &group.settings;
    assert_eq!(settings.launch.template, TemplateRef { id: "lt-1".to_owned(), version: Some(7) });
    assert_eq!(settings.launch.mixed, None);
    assert_eq!(settings.subnets, set(&["subnet-1", "subnet-2"]));
    assert_eq!(settings.health_check_types, set(&["EC2", "EBS"]));
    assert_eq!((settings.health_check_grace_period, settings.default_cooldown), (15, 300));
    assert_eq!((settings.default_instance_warmup, settings.protect_new_instances), (Some(60), true));
    Ok(())
}

#[tokio::test]
async fn a_group_without_optional_members_is_read() -> Result<()> {
    let group = group("<VPCZoneIdentifier/><DefaultInstanceWarmup>-1</DefaultInstanceWarmup>").await?;
    assert_eq!(group.arn, "");
    assert!(!group.is_deleting());
    assert!(group.settings.subnets.is_empty() && group.instances.is_empty() && group.tags.is_empty());
    assert_eq!(group.settings.default_instance_warmup, None);
    assert_eq!(group.settings.health_check_types, set(&["EC2"]));
    assert_eq!(group.settings.launch.template, TemplateRef { id: String::new(), version: None });
    Ok(())
}

/// A group or instance that is not recognised would be made anew.
#[tokio::test]
async fn a_reply_without_names_is_refused() -> Result<()> {
    let without = REQUIRED.replace("<AutoScalingGroupName>g</AutoScalingGroupName>", "");
    let error = refused(groups(&[without]).await)?;
    assert_eq!(error.class, ErrorClass::Transient);
    assert_eq!(error.message, "the response has no AutoScalingGroupName");
    let nameless = format!("{REQUIRED}<Instances><member/></Instances>");
    let error = refused(groups(&[nameless]).await)?;
    assert_eq!(error.message, "the response has no Instances.InstanceId");
    Ok(())
}

#[tokio::test]
async fn a_mixed_instances_policy_is_read() -> Result<()> {
    let policy = |distribution: &str, version: &str| {
        format!(
            "<MixedInstancesPolicy><LaunchTemplate><LaunchTemplateSpecification><LaunchTemplateId>lt-1\
             </LaunchTemplateId><Version>{version}</Version></LaunchTemplateSpecification><Overrides>\
             <member><InstanceType>m6i.large</InstanceType></member><member><InstanceType>c5.large\
             </InstanceType></member></Overrides></LaunchTemplate>{distribution}</MixedInstancesPolicy>"
        )
    };
    let full = "<InstancesDistribution><OnDemandBaseCapacity>1</OnDemandBaseCapacity>\
                <OnDemandPercentageAboveBaseCapacity>25</OnDemandPercentageAboveBaseCapacity>\
                <OnDemandAllocationStrategy>lowest-price</OnDemandAllocationStrategy>\
                <SpotAllocationStrategy>capacity-optimized</SpotAllocationStrategy>\
                <SpotMaxPrice>0.07</SpotMaxPrice></InstancesDistribution>";
    let launch = group(&policy(full, "4")).await?.settings.launch;
    assert_eq!(launch.template, TemplateRef { id: "lt-1".to_owned(), version: Some(4) });
    let mixed = launch.mixed.context("a policy")?;
    assert_eq!(mixed.instance_types, ["m6i.large", "c5.large"]);
    assert_eq!(mixed.other_members, set(&[]));
    assert_eq!(
        mixed.distribution,
        InstancesDistribution {
            on_demand_base_capacity: 1,
            on_demand_percentage_above_base_capacity: 25,
            on_demand_allocation_strategy: "lowest-price".to_owned(),
            spot_allocation_strategy: "capacity-optimized".to_owned(),
            spot_max_price: Some("0.07".to_owned()),
        }
    );
    let launch = group(&policy("", "$Latest")).await?.settings.launch;
    assert_eq!(launch.template.version, None);
    assert_eq!(
        launch.mixed.context("a policy")?.distribution,
        InstancesDistribution {
            on_demand_base_capacity: 0,
            on_demand_percentage_above_base_capacity: 100,
            on_demand_allocation_strategy: "prioritized".to_owned(),
            spot_allocation_strategy: "lowest-price".to_owned(),
            spot_max_price: None,
        }
    );
    let empty_price = "<InstancesDistribution><SpotMaxPrice></SpotMaxPrice></InstancesDistribution>";
    let launch = group(&policy(empty_price, "$Default")).await?.settings.launch;
    assert_eq!(launch.mixed.context("a policy")?.distribution.spot_max_price, None);
    Ok(())
}

#[tokio::test]
async fn other_members_of_overrides_are_named() -> Result<()> {
    let own = |members: &str| format!("<member><InstanceType>m6i.large</InstanceType>{members}</member>");
    let overrides = [
        "<WeightedCapacity>2</WeightedCapacity><ImageId></ImageId>",
        "<WeightedCapacity>2</WeightedCapacity><LaunchTemplateSpecification><LaunchTemplateId>lt-2\
         </LaunchTemplateId></LaunchTemplateSpecification>",
        "<InstanceRequirements/>",
    ]
    .map(own)
    .concat();
    let members = format!(
        "<MixedInstancesPolicy><LaunchTemplate><Overrides>{overrides}</Overrides></LaunchTemplate>\
         </MixedInstancesPolicy>"
    );
    let mixed = group(&members).await?.settings.launch.mixed.context("a policy")?;
    let expected = ["InstanceRequirements", "LaunchTemplateSpecification", "WeightedCapacity"];
    assert_eq!(mixed.other_members, set(&expected));
    Ok(())
}

#[tokio::test]
async fn members_are_sorted_and_their_states_kept() -> Result<()> {
    let member = |id: &str, state: &str, health: &str, rest: &str| {
        format!(
            "<member><InstanceId>{id}</InstanceId><AvailabilityZone>eu-central-1a</AvailabilityZone>\
             <LifecycleState>{state}</LifecycleState><HealthStatus>{health}</HealthStatus>{rest}</member>"
        )
    };
    let full = "<InstanceType>m5.large</InstanceType><ProtectedFromScaleIn>true</ProtectedFromScaleIn>\
                <LaunchTemplate><LaunchTemplateId>lt-1</LaunchTemplateId><Version>3</Version></LaunchTemplate>";
    let listed = [
        member("i-3", "AStateOfTomorrow", "UNHEALTHY", ""),
        member("i-1", "InService", "Healthy", full),
        member("i-2", "Terminating:Wait", "Unhealthy", ""),
    ];
    let group = group(&format!("<Instances>{}</Instances>", listed.concat())).await?;
    let ids: Vec<&str> = group.instances.iter().map(|instance| instance.id.as_str()).collect();
    assert_eq!(ids, ["i-1", "i-2", "i-3"]);
    let [first, second, third] = group.instances.as_slice() else { anyhow::bail!("three members") };
    assert_eq!((first.lifecycle.clone(), first.health), (LifecycleState::InService, HealthStatus::Healthy));
    assert_eq!((first.template.clone(), first.protected), (Some(("lt-1".to_owned(), 3)), true));
    assert_eq!((first.instance_type.as_deref(), first.zone.as_str()), (Some("m5.large"), "eu-central-1a"));
    assert_eq!(
        (second.lifecycle.clone(), second.health),
        (LifecycleState::TerminatingWait, HealthStatus::Unhealthy)
    );
    assert_eq!(third.lifecycle, LifecycleState::Other("AStateOfTomorrow".to_owned()));
    assert_eq!((third.health, &third.template, third.protected), (HealthStatus::Unhealthy, &None, false));
    Ok(())
}

#[tokio::test]
async fn hooks_and_activities_are_read() -> Result<()> {
    let hooks = "<LifecycleHooks><member><LifecycleHookName>h</LifecycleHookName><LifecycleTransition>\
                 autoscaling:EC2_INSTANCE_TERMINATING</LifecycleTransition><HeartbeatTimeout>600\
                 </HeartbeatTimeout><DefaultResult>CONTINUE</DefaultResult></member><member>\
                 <LifecycleHookName>bare</LifecycleHookName></member></LifecycleHooks>";
    let hooks =
        Replay::new([Reply::result("DescribeLifecycleHooks", hooks)]).cloud().lifecycle_hooks("g").await?;
    let read: Vec<_> = hooks.iter().map(|h| (h.heartbeat_timeout, h.default_result.as_str())).collect();
    assert_eq!(read, [(600, "CONTINUE"), (3600, "ABANDON")]);
    assert_eq!(hooks[0].transition, "autoscaling:EC2_INSTANCE_TERMINATING");

    let activity = |id: &str, start: &str, rest: &str| {
        format!(
            "<member><ActivityId>{id}</ActivityId><AutoScalingGroupName>g</AutoScalingGroupName><Cause>why</Cause>\
             <StartTime>{start}</StartTime>{rest}</member>"
        )
    };
    let failed = "<EndTime>2026-05-01T12:00:00Z</EndTime><StatusCode>Failed</StatusCode>\
                  <Description>Launching a new EC2 instance</Description>\
                  <StatusMessage>We currently do not have sufficient m5.large capacity.</StatusMessage>\
                  <Details>{\"Subnet ID\":\"subnet-1\",\"Availability Zone\":\"eu-west-1a\"}</Details>";
    let listed = [
        activity("running", "2026-05-01T10:00:00Z", "<StatusCode>InProgress</StatusCode>"),
        activity("newest", "2026-05-01T11:00:00.250Z", failed),
        activity("oldest", "2026-05-01T09:00:00Z", "<StatusCode>CodeOfTomorrow</StatusCode>"),
    ];
    let result = format!("<Activities>{}</Activities>", listed.concat());
    let reply = Reply::result("DescribeScalingActivities", &result);
    let activities = Replay::new([reply]).cloud().scaling_activities("g", None).await?.items;
    let ids: Vec<_> = activities.iter().map(|a| (a.id.as_str(), a.status.as_str())).collect();
    assert_eq!(ids, [("running", "InProgress"), ("newest", "Failed"), ("oldest", "CodeOfTomorrow")]);
    let newest = &activities[1];
    assert_eq!(newest.started_at.to_rfc3339(), "2026-05-01T11:00:00.250+00:00");
    let ends: Vec<_> = activities.iter().map(|a| a.ended_at.map(|end| end.to_rfc3339())).collect();
    assert_eq!(ends, [None, Some("2026-05-01T12:00:00+00:00".to_owned()), None]);
    let words = newest.status_message.as_deref();
    assert_eq!(words, Some("We currently do not have sufficient m5.large capacity."));
    assert_eq!(newest.description.as_deref(), Some("Launching a new EC2 instance"));
    assert_eq!((newest.zone.as_deref(), newest.subnet.as_deref()), (Some("eu-west-1a"), Some("subnet-1")));
    assert_eq!((&activities[0].zone, &activities[0].subnet), (&None, &None));
    Ok(())
}

#[tokio::test]
async fn machines_are_read_over_reservations_and_pages() -> Result<()> {
    let machine = |id: &str, state: &str, rest: &str| {
        format!(
            "<item><instancesSet><item><instanceId>{id}</instanceId><instanceState><code>0</code><name>{state}\
             </name></instanceState>{rest}</item></instancesSet></item>"
        )
    };
    let full = "<privateIpAddress>10.0.0.7</privateIpAddress><privateDnsName>ip-10-0-0-7.internal\
                </privateDnsName><ipAddress>203.0.113.7</ipAddress><dnsName>ec2-203-0-113-7.example\
                </dnsName><ipv6Address>2001:db8::7</ipv6Address><networkInterfaceSet><item>\
                <ipv6AddressesSet><item><ipv6Address>2001:db8::7</ipv6Address></item><item>\
                <ipv6Address>2001:db8::8</ipv6Address></item></ipv6AddressesSet></item>\
                </networkInterfaceSet><instanceLifecycle>spot</instanceLifecycle><launchTime>2026-05-01T10:00:00.000Z\
                </launchTime><tagSet><item><key>aws:autoscaling:groupName</key><value>g</value></item></tagSet>";
    let listed = [
        machine("i-1", "running", full),
        machine("i-2", "terminated", "<privateDnsName></privateDnsName>"),
        machine("i-3", "stopping", "<instanceLifecycle>capacity-block</instanceLifecycle>"),
        machine("i-4", "shutting-down", ""),
        machine("i-5", "pending", ""),
        machine("i-6", "hibernating-tomorrow", ""),
    ];
    let body = format!(
        "<DescribeInstancesResponse><reservationSet>{}</reservationSet><nextToken>more</nextToken>\
         </DescribeInstancesResponse>",
        listed.concat()
    );
    let page = Replay::new([Reply::ok(&body)]).cloud().instances(&["i-1".to_owned()], None).await?;
    assert_eq!(page.next_token.as_deref(), Some("more"));
    let states: Vec<_> = page.items.iter().map(|facts| facts.state).collect();
    assert_eq!(
        states,
        [
            InstanceState::Running,
            InstanceState::Terminated,
            InstanceState::Stopped,
            InstanceState::Terminated,
            InstanceState::Pending,
            InstanceState::Running,
        ]
    );
    assert_eq!(
        page.items[0],
        InstanceFacts {
            id: "i-1".to_owned(),
            state: InstanceState::Running,
            private_ip: Some("10.0.0.7".to_owned()),
            ipv6: set(&["2001:db8::7", "2001:db8::8"]),
            private_dns: Some("ip-10-0-0-7.internal".to_owned()),
            public_ip: Some("203.0.113.7".to_owned()),
            public_dns: Some("ec2-203-0-113-7.example".to_owned()),
            purchase: PurchaseOption::Spot,
            launched_at: Some("2026-05-01T10:00:00Z".parse()?),
            tags: map(&[("aws:autoscaling:groupName", "g")]),
        }
    );
    assert!(page.items[1].ipv6.is_empty());
    assert_eq!((&page.items[1].private_dns, page.items[1].purchase), (&None, PurchaseOption::OnDemand));
    assert_eq!(page.items[2].purchase, PurchaseOption::Scheduled);
    Ok(())
}

#[tokio::test]
async fn launch_templates_are_read() -> Result<()> {
    let body = format!(
        "<DescribeLaunchTemplatesResponse><launchTemplates><item><launchTemplateId>{TEMPLATE}\
         </launchTemplateId><launchTemplateName>{GROUP}</launchTemplateName><defaultVersionNumber>2\
         </defaultVersionNumber><latestVersionNumber>5</latestVersionNumber><tagSet><item><key>k</key><value>v\
         </value></item></tagSet></item></launchTemplates></DescribeLaunchTemplatesResponse>"
    );
    let replay = Replay::new([Reply::ok(&body)]);
    let template = replay.cloud().launch_template(GROUP).await?.context("a template")?;
    assert_eq!(
        template,
        LaunchTemplate {
            id: TEMPLATE.to_owned(),
            name: GROUP.to_owned(),
            latest_version: 5,
            default_version: 2,
            tags: map(&[("k", "v")]),
        }
    );
    assert_eq!(replay.only()?.members, map(&[("LaunchTemplateName.1", GROUP)]));

    let versions = "<DescribeLaunchTemplateVersionsResponse><launchTemplateVersionSet><item><versionNumber>5\
                    </versionNumber><versionDescription>v1 content=aa</versionDescription><createTime>\
                    2026-05-01T10:00:00.000Z</createTime><launchTemplateData><imageId>ami-1</imageId><userData>\
                    c2VjcmV0</userData></launchTemplateData></item><item><versionNumber>4</versionNumber></item>\
                    </launchTemplateVersionSet><nextToken>n</nextToken></DescribeLaunchTemplateVersionsResponse>";
    let replay = Replay::new([Reply::ok(versions)]);
    let page = replay.cloud().launch_template_versions(TEMPLATE, None).await?;
    assert_eq!(replay.only()?.members, map(&[("LaunchTemplateId", TEMPLATE), ("MaxResults", "200")]));
    assert_eq!(page.next_token.as_deref(), Some("n"));
    let read: Vec<_> =
        page.items.iter().map(|v| (v.number, v.description.as_deref(), v.image_id.as_deref())).collect();
    assert_eq!(read, [(5, Some("v1 content=aa"), Some("ami-1")), (4, None, None)]);
    assert_eq!(page.items[0].created_at.to_rfc3339(), "2026-05-01T10:00:00+00:00");
    Ok(())
}

#[tokio::test]
async fn template_writes_answer_with_the_version() -> Result<()> {
    let created = format!(
        "<CreateLaunchTemplateResponse><launchTemplate><launchTemplateId>{TEMPLATE}</launchTemplateId>\
         <createTime>2026-05-01T10:00:00.000Z</createTime><latestVersionNumber>4</latestVersionNumber></launchTemplate></CreateLaunchTemplateResponse>"
    );
    let version = "<CreateLaunchTemplateVersionResponse><launchTemplateVersion><versionNumber>2</versionNumber>\
                   <createTime>2026-05-01T11:00:00.000Z</createTime></launchTemplateVersion>\
                   </CreateLaunchTemplateVersionResponse>";
    let cloud = Replay::new([Reply::ok(&created), Reply::ok(version)]).cloud();
    let mut numbers = Vec::new();
    for write in every_write() {
        let is_version =
            matches!(write, Write::CreateLaunchTemplate { .. } | Write::CreateLaunchTemplateVersion { .. });
        if is_version {
            numbers.push(cloud.write(&write).await?.written);
        }
    }
    let version = |number, created_at: &str| {
        let created_at = created_at.parse()?;
        anyhow::Ok(Written::Version { id: TEMPLATE.to_owned(), number, created_at })
    };
    assert_eq!(numbers, [version(1, "2026-05-01T10:00:00Z")?, version(2, "2026-05-01T11:00:00Z")?]);
    Ok(())
}

#[tokio::test]
async fn what_specs_name_is_read() -> Result<()> {
    let all = Selector::Ids(set(&["x"]));
    let subnets = "<DescribeSubnetsResponse><subnetSet><item><subnetId>subnet-1</subnetId><availabilityZone>\
                   eu-central-1a</availabilityZone><vpcId>vpc-1</vpcId></item></subnetSet><nextToken>n</nextToken>\
                   </DescribeSubnetsResponse>";
    let page = Replay::new([Reply::ok(subnets)]).cloud().subnets(&all, None).await?;
    let (id, zone, vpc) = ("subnet-1".to_owned(), "eu-central-1a".to_owned(), "vpc-1".to_owned());
    assert_eq!((page.items, page.next_token), (vec![Subnet { id, zone, vpc }], Some("n".to_owned())));

    let groups = "<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>sg-1</groupId><groupName>\
                  nodes</groupName><vpcId>vpc-1</vpcId></item></securityGroupInfo>\
                  </DescribeSecurityGroupsResponse>";
    let page = Replay::new([Reply::ok(groups)]).cloud().security_groups(&all, None).await?;
    let (id, name, vpc) = ("sg-1".to_owned(), "nodes".to_owned(), "vpc-1".to_owned());
    assert_eq!((page.items, page.next_token), (vec![SecurityGroup { id, name, vpc }], None));

    let associations = "<DescribeSecurityGroupVpcAssociationsResponse><securityGroupVpcAssociationSet><item><groupId>\
                        sg-1</groupId><vpcId>vpc-2</vpcId><state>associated</state></item>\
                        </securityGroupVpcAssociationSet></DescribeSecurityGroupVpcAssociationsResponse>";
    assert!(Replay::new([Reply::ok(associations)]).cloud().is_associated("sg-1", "vpc-2").await?);

    let types = "<DescribeInstanceTypesResponse><instanceTypeSet><item><instanceType>g6f.large</instanceType>\
                 <vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>8192</sizeInMiB>\
                 </memoryInfo><processorInfo><supportedArchitectures><item>x86_64</item></supportedArchitectures>\
                 </processorInfo><gpuInfo><gpus><item><manufacturer>NVIDIA</manufacturer><count>0</count>\
                 <logicalGpuCount>1</logicalGpuCount></item></gpus></gpuInfo></item></instanceTypeSet>\
                 <nextToken>n</nextToken></DescribeInstanceTypesResponse>";
    let page =
        Replay::new([Reply::ok(types)]).cloud().instance_types(&["g6f.large".to_owned()], None).await?;
    let [kind] = page.items.as_slice() else { anyhow::bail!("{page:?}") };
    assert_eq!((kind.vcpus, kind.memory_mib, page.next_token.as_deref()), (2, 8192, Some("n")));
    assert_eq!(kind.gpus, [Gpu { manufacturer: "NVIDIA".to_owned(), count: 1 }], "a part of a GPU is one");
    let lacking = types.replace("<vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo>", "");
    let replay = Replay::new([Reply::ok(&lacking)]);
    let error = refused(replay.cloud().instance_types(&["g6f.large".to_owned()], None).await)?;
    assert_eq!(error.code, "UnreadableReply");

    let replay = Replay::new([Reply::ok(r#"{"Parameter":{"Name":"/x","Value":"ami-9"}}"#)]);
    assert_eq!(replay.cloud().parameter("/x").await?.as_deref(), Some("ami-9"));
    assert_eq!(replay.only()?.body, r#"{"Name":"/x"}"#);

    let identity = Reply::result("GetCallerIdentity", "<Account>123456789012</Account>");
    assert_eq!(Replay::new([identity]).cloud().account().await?, "123456789012");
    Ok(())
}
