//! Values that tests send: each member set, so that one that gets lost is seen.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{
    BlockDevice, Capacity, CreateGroup, GroupChange, GroupSettings, GroupTag, InstancesDistribution, Launch,
    LaunchTemplateData, LifecycleHook, MetadataOptions, MixedInstances, RefreshPreferences, StartRefresh,
    TemplateRef, UserData, Write,
};

/// The group of all fixtures.
pub const GROUP: &str = "default-demo-workers-x7k2p";
/// The launch template's id.
pub const TEMPLATE: &str = "lt-0123456789abcdef0";
/// The terminate hook.
pub const HOOK: &str = "capasg-drain";
/// An instance.
pub const INSTANCE: &str = "i-0aaaaaaaaaaaaaaa1";

/// A set of strings.
pub fn set(items: &[&str]) -> BTreeSet<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// A map of strings.
pub fn map(items: &[(&str, &str)]) -> BTreeMap<String, String> {
    items.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Every member of a launch-template version.
pub fn template_data(user_data: &str) -> LaunchTemplateData {
    LaunchTemplateData {
        image_id: "ami-0123456789abcdef0".to_owned(),
        instance_type: "m5.large".to_owned(),
        iam_instance_profile: Some("nodes.example.io".to_owned()),
        key_name: Some("ops".to_owned()),
        security_group_ids: vec!["sg-0bbb".to_owned(), "sg-0aaa".to_owned()],
        block_devices: vec![BlockDevice {
            device_name: "/dev/xvda".to_owned(),
            size_gib: Some(80),
            volume_type: "gp3".to_owned(),
            iops: Some(4000),
            throughput_mibps: Some(250),
            encrypted: Some(true),
            kms_key_id: Some("alias/nodes".to_owned()),
            snapshot_id: Some("snap-0123456789abcdef0".to_owned()),
            delete_on_termination: true,
        }],
        metadata_options: MetadataOptions {
            http_tokens: "required".to_owned(),
            http_put_response_hop_limit: 1,
            http_endpoint: "enabled".to_owned(),
            http_protocol_ipv6: "disabled".to_owned(),
            instance_metadata_tags: "disabled".to_owned(),
        },
        user_data: UserData::new(user_data.as_bytes().to_vec()),
        tags: map(&[("kubernetes.io/cluster/demo", "owned"), ("Name", "workers")]),
        spot: true,
    }
}

/// A mixed instances policy over a pinned version.
pub fn launch() -> Launch {
    Launch {
        template: TemplateRef { id: TEMPLATE.to_owned(), version: Some(3) },
        mixed: Some(MixedInstances {
            instance_types: vec!["m6i.large".to_owned(), "m5.large".to_owned(), "c5.large".to_owned()],
            other_members: BTreeSet::new(),
            distribution: InstancesDistribution {
                on_demand_base_capacity: 1,
                on_demand_percentage_above_base_capacity: 25,
                on_demand_allocation_strategy: "prioritized".to_owned(),
                spot_allocation_strategy: "price-capacity-optimized".to_owned(),
                spot_max_price: None,
            },
        }),
    }
}

/// The terminate hook as the provider sets it.
pub fn hook() -> LifecycleHook {
    LifecycleHook {
        name: HOOK.to_owned(),
        transition: "autoscaling:EC2_INSTANCE_TERMINATING".to_owned(),
        heartbeat_timeout: 600,
        default_result: "CONTINUE".to_owned(),
    }
}

/// Tags of a group, one propagated.
pub fn group_tags() -> BTreeMap<String, GroupTag> {
    let tag = |value: &str, propagate| GroupTag { value: value.to_owned(), propagate };
    BTreeMap::from([
        ("capasg-owner".to_owned(), tag("0f2c", false)),
        ("kubernetes.io/cluster/demo".to_owned(), tag("owned", true)),
    ])
}

/// A group with every member.
pub fn create_group() -> CreateGroup {
    CreateGroup {
        name: GROUP.to_owned(),
        capacity: Capacity { min: 0, max: 6, desired: 3 },
        settings: GroupSettings {
            launch: launch(),
            subnets: set(&["subnet-0bbb", "subnet-0aaa"]),
            health_check_types: set(&["EC2", "EBS"]),
            health_check_grace_period: 300,
            default_cooldown: 0,
            default_instance_warmup: Some(60),
            protect_new_instances: true,
            capacity_rebalance: false,
            maintenance_policy: None,
            retains_abandoned: false,
        },
        tags: group_tags(),
        hooks: vec![hook()],
    }
}

/// A refresh with every member.
pub fn start_refresh() -> StartRefresh {
    StartRefresh {
        group: GROUP.to_owned(),
        desired: Some(launch()),
        preferences: RefreshPreferences {
            min_healthy_percentage: 100,
            max_healthy_percentage: Some(110),
            instance_warmup: Some(0),
            checkpoint_percentages: vec![20, 100],
            checkpoint_delay: Some(600),
            bake_time: Some(900),
            alarms: vec!["errors".to_owned(), "latency".to_owned()],
            skip_matching: true,
            auto_rollback: true,
            protected_instances: "Refresh".to_owned(),
            standby_instances: "Ignore".to_owned(),
        },
    }
}

/// Each variant of `Write` once: the compiler sees to it that a new one is added here.
pub fn every_write() -> Vec<Write> {
    std::iter::successors(Some(create_template()), after).collect()
}

fn create_template() -> Write {
    Write::CreateLaunchTemplate {
        name: GROUP.to_owned(),
        data: Box::new(template_data("#cloud-config\n")),
        description: "v1 content=aa rollout=bb".to_owned(),
        tags: map(&[("capasg-owner", "0f2c")]),
        client_token: "token-1".to_owned(),
    }
}

fn after(write: &Write) -> Option<Write> {
    let (group, id, hook_name, instance) =
        (GROUP.to_owned(), TEMPLATE.to_owned(), HOOK.to_owned(), INSTANCE.to_owned());
    let instances = set(&[INSTANCE]);
    Some(match write {
        Write::CreateLaunchTemplate { .. } => Write::CreateLaunchTemplateVersion {
            id,
            data: Box::new(template_data("#cloud-config\n")),
            description: "v1 content=cc rollout=bb".to_owned(),
            client_token: "token-2".to_owned(),
        },
        Write::CreateLaunchTemplateVersion { .. } => {
            Write::DeleteLaunchTemplateVersions { id, versions: BTreeSet::from([1]) }
        }
        Write::DeleteLaunchTemplateVersions { .. } => Write::CreateGroup(Box::new(create_group())),
        Write::CreateGroup(_) => Write::UpdateGroup {
            group,
            change: Box::new(GroupChange { max: Some(7), desired: Some(3), ..GroupChange::default() }),
        },
        Write::UpdateGroup { .. } => Write::SetDesiredCapacity { group, desired: 4 },
        Write::SetDesiredCapacity { .. } => Write::TerminateInstances { group, instances, decrement: true },
        Write::TerminateInstances { .. } => {
            Write::SetInstanceProtection { group, instances, protected: false }
        }
        Write::SetInstanceProtection { .. } => {
            Write::SuspendProcesses { group, processes: set(&["AZRebalance"]) }
        }
        Write::SuspendProcesses { .. } => Write::ResumeProcesses { group, processes: set(&["AZRebalance"]) },
        Write::ResumeProcesses { .. } => Write::StartInstanceRefresh(Box::new(start_refresh())),
        Write::StartInstanceRefresh(_) => Write::CancelInstanceRefresh { group },
        Write::CancelInstanceRefresh { .. } => Write::RollbackInstanceRefresh { group },
        Write::RollbackInstanceRefresh { .. } => Write::PutLifecycleHook { group, hook: hook() },
        Write::PutLifecycleHook { .. } => Write::CompleteLifecycleAction { group, hook: hook_name, instance },
        Write::CompleteLifecycleAction { .. } => {
            Write::RecordLifecycleActionHeartbeat { group, hook: hook_name, instance }
        }
        Write::RecordLifecycleActionHeartbeat { .. } => Write::TagGroup { group, tags: group_tags() },
        Write::TagGroup { .. } => Write::UntagGroup { group, keys: set(&["old"]) },
        Write::UntagGroup { .. } => Write::DeleteLifecycleHook { group, hook: hook_name },
        Write::DeleteLifecycleHook { .. } => Write::DeleteGroup { group, force: true },
        Write::DeleteGroup { .. } => Write::DeleteLaunchTemplate { id },
        Write::DeleteLaunchTemplate { .. } => return None,
    })
}
