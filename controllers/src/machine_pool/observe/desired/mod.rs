//! Makes the desired state from a pool's spec, its MachinePool and the resolved references. Pure.

mod block_devices;

use std::collections::BTreeSet;

use capasg_api::{
    ASGMachinePoolSpec,
    capi::MachinePool,
    names::{TERMINATE_HOOK, annotations},
    pool::{
        AdoptionPolicy, ChangePolicy, DeletionPolicy, OnCloudTermination, OnPoolDeletion,
        RebalanceRecommendationPolicy, RemediationPolicy, ZoneRebalancePolicy,
    },
};
use capasg_cloud::{
    InstancesDistribution, LaunchTemplateData, LifecycleHook, MetadataOptions, MixedInstances, UserData,
};
use chrono::TimeDelta;
use kube::ResourceExt;

use block_devices::block_devices;

use crate::machine_pool::model::launch_content::{content_hash, rollout_hash};
use crate::machine_pool::model::stamp::{SpecSeen, Stamp};
use crate::machine_pool::model::{
    Desired, DesiredBootstrap, DesiredLaunch, DesiredSettings, MachinePoolRef, PoolObjects, References,
    ReplicaOwner, ScaleInOrder, image_source, replicas,
};
use crate::machine_pool::observe::bootstrap::Bootstrap;
use crate::names::{group_tags, template_tags};

/// The desired state, as far as it is known; `used_groups` are the security groups of the version that the group is pinned
/// to. `None` without a Cluster name, MachinePool or owner ID.
#[must_use]
pub fn desired(
    objects: &PoolObjects,
    references: &References,
    bootstrap: Option<&Bootstrap>,
    used_groups: Option<&BTreeSet<String>>,
) -> Option<Desired> {
    let spec = &objects.pool.spec;
    let owner = objects.machine_pool.as_ref()?;
    let (replicas, _) = replicas(spec, owner);
    let mut desired = identity(objects, owner.node_drain_timeout_seconds())?;
    desired.replicas = replicas;
    desired.rollout = spec.rollout(replicas);
    desired.rotates = bootstrap.is_none_or(|bootstrap| bootstrap.digest.rotates);
    desired.disruption = spec.disruption(replicas);
    desired.min_ready = TimeDelta::seconds(i64::from(owner.min_ready_seconds()));
    desired.machine_pool = Some(MachinePoolRef {
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        resource_version: owner.resource_version().unwrap_or_default(),
        replicas: owner.replicas(),
    });
    desired.settings.subnets.clone_from(&references.subnets);
    desired.bootstrap = bootstrap.map(|own| DesiredBootstrap {
        user_data: user_data(own),
        is_read: own.data.is_some(),
        content: own.digest.content.clone(),
        data: own.digest.data.clone(),
    });
    desired.launch = launch(objects, owner, references, bootstrap, &desired);
    if references.lacks_subnets()
        && used_groups.is_none_or(|used| !used.iter().eq(&references.security_groups))
    {
        // The group keeps its subnets, which may be in another VPC than other security groups.
        desired.launch = DesiredLaunch::Unknown;
    }
    Some(desired)
}

/// The desired state without what must be read from AWS: sufficient to delete a pool whose MachinePool is deleted (E4).
#[must_use]
pub fn identity(objects: &PoolObjects, core_drain_timeout: Option<i32>) -> Option<Desired> {
    let spec = &objects.pool.spec;
    let cluster = objects.cluster_name.as_deref()?;
    let owner_id = objects.owner_id()?;
    let (group, template) = objects.cloud_names()?;
    let drain = spec.drain(core_drain_timeout);
    let hook = (drain.on_cloud_termination == OnCloudTermination::Drain).then(|| LifecycleHook {
        name: TERMINATE_HOOK.to_owned(),
        transition: "autoscaling:EC2_INSTANCE_TERMINATING".to_owned(),
        heartbeat_timeout: drain.hook_timeout_seconds(),
        default_result: "CONTINUE".to_owned(),
    });
    Some(Desired {
        pool: objects.key.clone(),
        group,
        template,
        owner_id: owner_id.to_owned(),
        replicas: 0,
        ceiling: None,
        owner: ReplicaOwner::MachinePool,
        machine_pool: None,
        settings: settings(spec),
        instance_types: spec.instance_type_names(),
        tags: group_tags(&spec.tags, owner_id, &objects.key.namespace, cluster, &objects.key.name),
        suspended_processes: spec.suspended_processes().iter().map(|p| p.as_str().to_owned()).collect(),
        hook,
        launch: DesiredLaunch::Unknown,
        rollout: spec.rollout(0),
        stopped: objects.pool.annotations().get(annotations::ROLLOUT_STOPPED).cloned(),
        disruption: spec.disruption(0),
        refresh: spec.instance_refresh(),
        rotates: true,
        retry: spec.retry_token.clone(),
        min_ready: TimeDelta::zero(),
        remediate: spec.remediation_policy() == RemediationPolicy::Replace,
        rebalance: spec.rebalance_recommendation_policy() == RebalanceRecommendationPolicy::Replace,
        balances_zones: spec.zone_rebalance_policy() == ZoneRebalancePolicy::Replace,
        timeouts: objects.machine_pool.as_ref().map(|owner| owner.machine_deletion()),
        drain_limit: TimeDelta::seconds(i64::from(drain.timeout_seconds)),
        scale_in_order: match spec.scale_in_order() {
            capasg_api::pool::ScaleInOrder::Oldest => ScaleInOrder::Oldest,
            capasg_api::pool::ScaleInOrder::Newest => ScaleInOrder::Newest,
        },
        previews: spec.change_policy() == ChangePolicy::Preview,
        adopts: spec.adoption_policy() == AdoptionPolicy::Adopt,
        adoption_denied: objects.access.guards.adoption(),
        shown: objects.pool.status.as_ref().map(|status| status.pending_changes.clone()).unwrap_or_default(),
        bootstrap: None,
        orphan_on_deletion: spec.deletion_policy() == DeletionPolicy::Orphan,
        drain_on_deletion: drain.on_pool_deletion == OnPoolDeletion::Drain,
        provider_id: spec.provider_id.clone(),
    })
}

fn settings(spec: &ASGMachinePoolSpec) -> DesiredSettings {
    let mixed = spec.is_mixed().then(|| {
        let wanted = spec.instances_distribution();
        MixedInstances {
            instance_types: spec.instance_type_names(),
            other_members: BTreeSet::new(),
            distribution: InstancesDistribution {
                on_demand_base_capacity: wanted.on_demand_base_capacity,
                on_demand_percentage_above_base_capacity: wanted.on_demand_percentage_above_base_capacity,
                on_demand_allocation_strategy: wanted.on_demand_allocation_strategy.as_str().to_owned(),
                spot_allocation_strategy: wanted.spot_allocation_strategy.as_str().to_owned(),
                spot_max_price: wanted.spot_max_price,
            },
        }
    });
    DesiredSettings {
        mixed,
        subnets: BTreeSet::new(),
        health_check_types: spec.health_check_types().iter().map(|t| t.as_str().to_owned()).collect(),
        health_check_grace_period: spec.health_check_grace_period_seconds(),
        default_cooldown: spec.default_cooldown_seconds(),
        default_instance_warmup: spec.default_instance_warmup_seconds(),
        protect_new_instances: true,
        capacity_rebalance: false,
        maintenance_policy: None,
        retains_abandoned: false,
    }
}

fn user_data(bootstrap: &Bootstrap) -> UserData {
    bootstrap.data.clone().map(UserData::new).unwrap_or_default()
}

fn launch(
    objects: &PoolObjects,
    owner: &MachinePool,
    references: &References,
    bootstrap: Option<&Bootstrap>,
    desired: &Desired,
) -> DesiredLaunch {
    let spec = &objects.pool.spec;
    let (Some(bootstrap), Some(image), Some(source), false) =
        (bootstrap, &references.image, image_source(spec, owner.version()), references.holds_launch)
    else {
        return DesiredLaunch::Unknown;
    };
    let machine = &spec.machine;
    let options = machine.metadata_options();
    let data = LaunchTemplateData {
        image_id: image.id.clone(),
        instance_type: desired.instance_types.first().cloned().unwrap_or_default(),
        iam_instance_profile: machine.iam_instance_profile.clone(),
        key_name: machine.ssh_key_name.clone(),
        security_group_ids: references.security_groups.clone(),
        block_devices: block_devices(machine, image),
        metadata_options: MetadataOptions {
            http_tokens: options.http_tokens.as_str().to_owned(),
            http_put_response_hop_limit: options.http_put_response_hop_limit,
            http_endpoint: options.http_endpoint.as_str().to_owned(),
            http_protocol_ipv6: options.http_protocol_ipv6.as_str().to_owned(),
            instance_metadata_tags: "disabled".to_owned(),
        },
        user_data: user_data(bootstrap),
        tags: template_tags(&desired.tags),
        spot: spec.launches_only_spot(),
    };
    let stamp = Stamp {
        content: content_hash(&data, &bootstrap.digest.content),
        rollout: rollout_hash(&data, spec, owner.version()),
        image_source: source,
        bootstrap_spec: bootstrap.digest.spec.clone(),
        bootstrap_data: bootstrap.digest.data.clone(),
        spec_seen: Some(SpecSeen {
            spec: bootstrap.digest.spec.clone(),
            rendering: Some(bootstrap.digest.content.clone()),
        }),
    };
    DesiredLaunch::Known { data: Box::new(data), stamp, has_user_data: bootstrap.data.is_some() }
}

#[cfg(test)]
mod tests;
