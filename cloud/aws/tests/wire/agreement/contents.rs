//! Generated contents of writes: full, minimal, and at the limits of their types. What AWS would reject is among them,
//! since both adapters have to send the same of that as well.

use std::collections::{BTreeMap, BTreeSet};

use capasg_cloud::{
    BlockDevice, Capacity, CreateGroup, GroupChange, GroupSettings, GroupTag, InstancesDistribution, Launch,
    LaunchTemplateData, LifecycleHook, MaintenancePolicy, MetadataOptions, MixedInstances,
    RefreshPreferences, StartRefresh, TemplateRef, UserData, Write,
};
use proptest::{
    collection::{btree_map, btree_set, vec},
    option,
    prelude::*,
};

/// A text: none, a usual one, one with all that encodings treat in a way of their own, or any.
pub fn text() -> BoxedStrategy<String> {
    let special = " a&b=c+d%7E~?*\\\"'<>/;,\r\n\t";
    prop_oneof![Just(String::new()), Just("web-1".to_owned()), Just(special.to_owned()), "\\PC{1,12}",]
        .boxed()
}

/// Texts.
pub fn texts() -> BoxedStrategy<BTreeSet<String>> {
    btree_set(text(), 0..4).boxed()
}

/// Tags by key.
pub fn tags() -> BoxedStrategy<BTreeMap<String, String>> {
    btree_map(text(), text(), 0..4).boxed()
}

fn number() -> BoxedStrategy<i32> {
    prop_oneof![Just(0), Just(-1), Just(i32::MIN), Just(i32::MAX), any::<i32>()].boxed()
}

/// Writes of the same variant: the compiler sees to it that a new one is added here.
pub fn like(write: &Write) -> BoxedStrategy<Write> {
    match write {
        Write::CreateLaunchTemplate { .. } => (text(), data(), text(), tags(), text())
            .prop_map(|(name, data, description, tags, client_token)| Write::CreateLaunchTemplate {
                name,
                data,
                description,
                tags,
                client_token,
            })
            .boxed(),
        Write::CreateLaunchTemplateVersion { .. } => (text(), data(), text(), text())
            .prop_map(|(id, data, description, client_token)| Write::CreateLaunchTemplateVersion {
                id,
                data,
                description,
                client_token,
            })
            .boxed(),
        Write::DeleteLaunchTemplateVersions { .. } => (text(), btree_set(any::<i64>(), 0..12))
            .prop_map(|(id, versions)| Write::DeleteLaunchTemplateVersions { id, versions })
            .boxed(),
        Write::DeleteLaunchTemplate { .. } => {
            text().prop_map(|id| Write::DeleteLaunchTemplate { id }).boxed()
        }
        Write::CreateGroup(_) => {
            create_group().prop_map(|create| Write::CreateGroup(Box::new(create))).boxed()
        }
        Write::UpdateGroup { .. } => (text(), change())
            .prop_map(|(group, change)| Write::UpdateGroup { group, change: Box::new(change) })
            .boxed(),
        Write::SetDesiredCapacity { .. } => (text(), number())
            .prop_map(|(group, desired)| Write::SetDesiredCapacity { group, desired })
            .boxed(),
        Write::TerminateInstances { .. } => (text(), texts(), any::<bool>())
            .prop_map(|(group, instances, decrement)| Write::TerminateInstances {
                group,
                instances,
                decrement,
            })
            .boxed(),
        Write::SetInstanceProtection { .. } => (text(), texts(), any::<bool>())
            .prop_map(|(group, instances, protected)| Write::SetInstanceProtection {
                group,
                instances,
                protected,
            })
            .boxed(),
        Write::SuspendProcesses { .. } => (text(), texts())
            .prop_map(|(group, processes)| Write::SuspendProcesses { group, processes })
            .boxed(),
        Write::ResumeProcesses { .. } => (text(), texts())
            .prop_map(|(group, processes)| Write::ResumeProcesses { group, processes })
            .boxed(),
        Write::StartInstanceRefresh(_) => {
            start_refresh().prop_map(|start| Write::StartInstanceRefresh(Box::new(start))).boxed()
        }
        Write::CancelInstanceRefresh { .. } => {
            text().prop_map(|group| Write::CancelInstanceRefresh { group }).boxed()
        }
        Write::RollbackInstanceRefresh { .. } => {
            text().prop_map(|group| Write::RollbackInstanceRefresh { group }).boxed()
        }
        Write::PutLifecycleHook { .. } => {
            (text(), hook()).prop_map(|(group, hook)| Write::PutLifecycleHook { group, hook }).boxed()
        }
        Write::DeleteLifecycleHook { .. } => {
            (text(), text()).prop_map(|(group, hook)| Write::DeleteLifecycleHook { group, hook }).boxed()
        }
        Write::CompleteLifecycleAction { .. } => (text(), text(), text())
            .prop_map(|(group, hook, instance)| Write::CompleteLifecycleAction { group, hook, instance })
            .boxed(),
        Write::RecordLifecycleActionHeartbeat { .. } => (text(), text(), text())
            .prop_map(|(group, hook, instance)| Write::RecordLifecycleActionHeartbeat {
                group,
                hook,
                instance,
            })
            .boxed(),
        Write::TagGroup { .. } => {
            (text(), group_tags()).prop_map(|(group, tags)| Write::TagGroup { group, tags }).boxed()
        }
        Write::UntagGroup { .. } => {
            (text(), texts()).prop_map(|(group, keys)| Write::UntagGroup { group, keys }).boxed()
        }
        Write::DeleteGroup { .. } => {
            (text(), any::<bool>()).prop_map(|(group, force)| Write::DeleteGroup { group, force }).boxed()
        }
    }
}

fn data() -> BoxedStrategy<Box<LaunchTemplateData>> {
    let profile = prop_oneof![text(), Just("arn:aws:iam::123456789012:instance-profile/nodes".to_owned())];
    // A few bytes would be found in messages, and taken for an echo of the user data.
    let user_data = prop_oneof![Just(Vec::new()), vec(any::<u8>(), 12..40)];
    let first = (text(), text(), option::of(profile), option::of(text()), vec(text(), 0..4));
    let second = (vec(block_device(), 0..3), metadata_options(), user_data, tags(), any::<bool>());
    (first, second)
        .prop_map(|(first, second)| {
            let (image_id, instance_type, iam_instance_profile, key_name, security_group_ids) = first;
            let (block_devices, metadata_options, user_data, tags, spot) = second;
            Box::new(LaunchTemplateData {
                image_id,
                instance_type,
                iam_instance_profile,
                key_name,
                security_group_ids,
                block_devices,
                metadata_options,
                user_data: UserData::new(user_data),
                tags,
                spot,
            })
        })
        .boxed()
}

fn block_device() -> BoxedStrategy<BlockDevice> {
    let size = (option::of(number()), text(), option::of(number()), option::of(number()));
    let rest = (option::of(any::<bool>()), option::of(text()), option::of(text()), any::<bool>());
    (text(), size, rest)
        .prop_map(|(device_name, size, rest)| {
            let (size_gib, volume_type, iops, throughput_mibps) = size;
            let (encrypted, kms_key_id, snapshot_id, delete_on_termination) = rest;
            BlockDevice {
                device_name,
                size_gib,
                volume_type,
                iops,
                throughput_mibps,
                encrypted,
                kms_key_id,
                snapshot_id,
                delete_on_termination,
            }
        })
        .boxed()
}

fn metadata_options() -> BoxedStrategy<MetadataOptions> {
    (text(), number(), text(), text(), text())
        .prop_map(|(http_tokens, hop_limit, http_endpoint, http_protocol_ipv6, instance_metadata_tags)| {
            MetadataOptions {
                http_tokens,
                http_put_response_hop_limit: hop_limit,
                http_endpoint,
                http_protocol_ipv6,
                instance_metadata_tags,
            }
        })
        .boxed()
}

fn launch() -> BoxedStrategy<Launch> {
    let distribution = (number(), number(), text(), text(), option::of(text())).prop_map(
        |(base, percentage, on_demand, spot, spot_max_price)| InstancesDistribution {
            on_demand_base_capacity: base,
            on_demand_percentage_above_base_capacity: percentage,
            on_demand_allocation_strategy: on_demand,
            spot_allocation_strategy: spot,
            spot_max_price,
        },
    );
    let mixed = (vec(text(), 0..4), distribution).prop_map(|(instance_types, distribution)| MixedInstances {
        instance_types,
        other_members: BTreeSet::new(),
        distribution,
    });
    (text(), option::of(any::<i64>()), option::of(mixed))
        .prop_map(|(id, version, mixed)| Launch { template: TemplateRef { id, version }, mixed })
        .boxed()
}

fn maintenance_policy() -> BoxedStrategy<MaintenancePolicy> {
    (number(), number())
        .prop_map(|(min_healthy_percentage, max_healthy_percentage)| MaintenancePolicy {
            min_healthy_percentage,
            max_healthy_percentage,
        })
        .boxed()
}

fn create_group() -> BoxedStrategy<CreateGroup> {
    let capacity =
        (number(), number(), number()).prop_map(|(min, max, desired)| Capacity { min, max, desired });
    (text(), capacity, settings(), group_tags(), vec(hook(), 0..3))
        .prop_map(|(name, capacity, settings, tags, hooks)| CreateGroup {
            name,
            capacity,
            settings,
            tags,
            hooks,
        })
        .boxed()
}

fn settings() -> BoxedStrategy<GroupSettings> {
    let first = (launch(), texts(), texts(), number(), number());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (first, option::of(number()), option::of(maintenance_policy()), flags)
        .prop_map(|(first, default_instance_warmup, maintenance_policy, flags)| {
            let (launch, subnets, health_check_types, health_check_grace_period, default_cooldown) = first;
            let (protect_new_instances, capacity_rebalance, retains_abandoned) = flags;
            GroupSettings {
                launch,
                subnets,
                health_check_types,
                health_check_grace_period,
                default_cooldown,
                default_instance_warmup,
                protect_new_instances,
                capacity_rebalance,
                maintenance_policy,
                retains_abandoned,
            }
        })
        .boxed()
}

fn change() -> BoxedStrategy<GroupChange> {
    let some_number = || option::of(number());
    let flag = || option::of(any::<bool>());
    let sets = (option::of(launch()), option::of(texts()), option::of(texts()));
    let seconds = (some_number(), some_number(), some_number());
    let flags = (flag(), flag(), flag(), option::of(maintenance_policy()));
    let capacity = (some_number(), some_number(), some_number());
    (sets, seconds, flags, capacity)
        .prop_map(|(sets, seconds, flags, (min, max, desired))| {
            let (launch, subnets, health_check_types) = sets;
            let (health_check_grace_period, default_cooldown, default_instance_warmup) = seconds;
            let (protect_new_instances, capacity_rebalance, retains_abandoned, maintenance_policy) = flags;
            GroupChange {
                launch,
                subnets,
                health_check_types,
                health_check_grace_period,
                default_cooldown,
                default_instance_warmup,
                protect_new_instances,
                capacity_rebalance,
                maintenance_policy,
                retains_abandoned,
                min,
                max,
                desired,
            }
        })
        .boxed()
}

fn start_refresh() -> BoxedStrategy<StartRefresh> {
    let percentages = (number(), option::of(number()), vec(number(), 0..3));
    let seconds = (option::of(number()), option::of(number()), option::of(number()));
    let rest = (vec(text(), 0..3), any::<bool>(), any::<bool>(), text(), text());
    let preferences = (percentages, seconds, rest).prop_map(|(percentages, seconds, rest)| {
        let (min_healthy_percentage, max_healthy_percentage, checkpoint_percentages) = percentages;
        let (instance_warmup, checkpoint_delay, bake_time) = seconds;
        let (alarms, skip_matching, auto_rollback, protected_instances, standby_instances) = rest;
        RefreshPreferences {
            min_healthy_percentage,
            max_healthy_percentage,
            instance_warmup,
            checkpoint_percentages,
            checkpoint_delay,
            bake_time,
            alarms,
            skip_matching,
            auto_rollback,
            protected_instances,
            standby_instances,
        }
    });
    (text(), option::of(launch()), preferences)
        .prop_map(|(group, desired, preferences)| StartRefresh { group, desired, preferences })
        .boxed()
}

fn hook() -> BoxedStrategy<LifecycleHook> {
    (text(), text(), number(), text())
        .prop_map(|(name, transition, heartbeat_timeout, default_result)| LifecycleHook {
            name,
            transition,
            heartbeat_timeout,
            default_result,
        })
        .boxed()
}

fn group_tags() -> BoxedStrategy<BTreeMap<String, GroupTag>> {
    let tag = (text(), any::<bool>()).prop_map(|(value, propagate)| GroupTag { value, propagate });
    btree_map(text(), tag, 0..4).boxed()
}
