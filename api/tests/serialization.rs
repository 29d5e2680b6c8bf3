//! What goes over the wire: exact names, zeros and false kept, nothing lost on the way through our types.

#![cfg(test)]

use capasg_api::{
    ASGGuard, ASGIdentity, ASGMachine, ASGMachinePool, ASGMachinePoolSpec, ASGMachinePoolStatus,
    ASGMachinePoolTemplate, ASGMachineSpec, ASGMachineStatus,
    pool::{
        DeletionPolicy, Drain, Group, HealthCheckType, HttpTokens, InstancesDistribution, MetadataOptions,
        RootVolume, ScaleInOrder, ScalingProcess, VolumeType,
    },
};
use capasg_test_objects::{maximal_pool, minimal_pool, valid_cases, with, without};
use serde_json::{Value, json};

fn spec(object: &Value) -> ASGMachinePoolSpec {
    serde_json::from_value(object["spec"].clone()).unwrap()
}

// Rules: B5, B6
#[test]
fn a_new_status_has_false_and_zero() {
    assert_eq!(
        serde_json::to_value(ASGMachinePoolStatus::default()).unwrap(),
        json!({
            "ready": false,
            "initialization": { "provisioned": false },
            "replicas": 0,
            "observedGeneration": 0,
            "desiredReplicas": 0,
            "readyReplicas": 0,
            "upToDateReplicas": 0,
        })
    );
    assert_eq!(
        serde_json::to_value(ASGMachineStatus::default()).unwrap(),
        json!({ "initialization": { "provisioned": false }, "observedGeneration": 0, "interruptible": false })
    );
}

// Rules: B5, B6
#[test]
fn provisioned_sets_both_fields() {
    let mut status = ASGMachinePoolStatus::default();
    status.set_provisioned();
    let json = serde_json::to_value(status).unwrap();
    assert_eq!((&json["ready"], &json["initialization"]["provisioned"]), (&json!(true), &json!(true)));
}

// Rules: B11
#[test]
fn an_absent_machine_kind_is_not_serialized() {
    let mut status = ASGMachinePoolStatus::default();
    assert!(serde_json::to_value(&status).unwrap().get("infrastructureMachineKind").is_none());
    status.infrastructure_machine_kind = Some("ASGMachine".to_owned());
    assert_eq!(serde_json::to_value(&status).unwrap()["infrastructureMachineKind"], "ASGMachine");
}

// Rules: A10
#[test]
fn every_valid_object_survives_our_types_unchanged() {
    for case in valid_cases() {
        if case.name.ends_with("-null-fields") {
            continue;
        }
        let object = case.object;
        let back = match object["kind"].as_str() {
            Some("ASGMachinePool") => {
                serde_json::to_value(serde_json::from_value::<ASGMachinePool>(object.clone()).unwrap())
            }
            Some("ASGMachinePoolTemplate") => serde_json::to_value(
                serde_json::from_value::<ASGMachinePoolTemplate>(object.clone()).unwrap(),
            ),
            Some("ASGIdentity") => {
                serde_json::to_value(serde_json::from_value::<ASGIdentity>(object.clone()).unwrap())
            }
            Some("ASGGuard") => {
                serde_json::to_value(serde_json::from_value::<ASGGuard>(object.clone()).unwrap())
            }
            _ => serde_json::to_value(serde_json::from_value::<ASGMachine>(object.clone()).unwrap()),
        };
        // An emptied list and an absent one are the same to us.
        let expected = match case.name.as_str() {
            "pool-list-emptied" => without(object, "spec/providerIDList"),
            _ => object,
        };
        assert_eq!(back.unwrap(), expected, "{}", case.name);
    }
}

#[test]
fn null_fields_are_absent_fields() {
    let nulls = with(with(minimal_pool(), "spec/minSize", Value::Null), "spec/drain", Value::Null);
    assert_eq!(spec(&nulls), spec(&minimal_pool()));
}

#[test]
fn an_object_made_by_new_carries_nothing_but_its_name() {
    let pool = ASGMachinePool::new("workers", spec(&minimal_pool()));
    let json = serde_json::to_value(pool).unwrap();
    assert_eq!(json["metadata"], json!({ "name": "workers" }));
    assert_eq!(json["apiVersion"], format!("{}/{}", capasg_api::GROUP, capasg_api::VERSION));
}

#[test]
fn fields_unknown_to_us_do_not_stop_a_watch() {
    let later = with(minimal_pool(), "spec/warmPool", json!({ "minSize": 1 }));
    assert_eq!(spec(&later), spec(&minimal_pool()));
}

// Pains: P4, W3
#[test]
fn absent_empty_and_default_settings_are_equal() {
    let absent = spec(&minimal_pool());
    let empty = spec(
        &[
            ("spec/instancesDistribution", json!({})),
            ("spec/drain", json!({})),
            ("spec/group", json!({})),
            ("spec/machine/rootVolume", json!({})),
            ("spec/machine/metadataOptions", json!({})),
        ]
        .into_iter()
        .fold(minimal_pool(), |pool, (path, value)| with(pool, path, value)),
    );
    let explicit = ASGMachinePoolSpec {
        scale_in_order: Some(ScaleInOrder::Oldest),
        deletion_policy: Some(DeletionPolicy::Delete),
        drain: Some(Drain { timeout_seconds: Some(3600), ..Drain::default() }),
        group: Some(Group {
            health_check_types: Some(vec![HealthCheckType::Ec2]),
            health_check_grace_period_seconds: Some(300),
            suspended_processes: Some(vec![ScalingProcess::AzRebalance]),
            default_cooldown_seconds: Some(300),
            ..Group::default()
        }),
        instances_distribution: Some(InstancesDistribution {
            on_demand_base_capacity: Some(0),
            on_demand_percentage_above_base_capacity: Some(100),
            ..InstancesDistribution::default()
        }),
        machine: capasg_api::pool::MachineTemplate {
            root_volume: Some(RootVolume { volume_type: Some(VolumeType::Gp3), ..RootVolume::default() }),
            metadata_options: Some(MetadataOptions {
                http_tokens: Some(HttpTokens::Required),
                http_put_response_hop_limit: Some(1),
                ..MetadataOptions::default()
            }),
            ..absent.machine.clone()
        },
        ..absent.clone()
    };
    for other in [empty, explicit] {
        assert_eq!(other.drain(None), absent.drain(None));
        assert_eq!(other.deletion_policy(), absent.deletion_policy());
        assert_eq!(other.scale_in_order(), absent.scale_in_order());
        assert_eq!(other.instances_distribution(), absent.instances_distribution());
        assert_eq!(other.health_check_types(), absent.health_check_types());
        assert_eq!(other.health_check_grace_period_seconds(), absent.health_check_grace_period_seconds());
        assert_eq!(other.suspended_processes(), absent.suspended_processes());
        assert_eq!(other.default_cooldown_seconds(), absent.default_cooldown_seconds());
        assert_eq!(other.default_instance_warmup_seconds(), absent.default_instance_warmup_seconds());
        assert_eq!(other.machine.root_volume(), absent.machine.root_volume());
        assert_eq!(other.machine.data_volumes(), absent.machine.data_volumes());
        assert_eq!(other.machine.metadata_options(), absent.machine.metadata_options());
    }
}

#[test]
fn a_setting_of_a_user_is_kept() {
    let pool = spec(&maximal_pool());
    let drain = pool.drain(None);
    assert_eq!((drain.timeout_seconds, drain.hook_timeout_seconds()), (172_800, 7200));
    assert_eq!(pool.suspended_processes().len(), ScalingProcess::ALL.len());
    assert_eq!(pool.machine.root_volume().settings.throughput_mibps, Some(2000));
    assert!(!pool.machine.root_volume().settings.delete_on_termination);
    assert_eq!(pool.machine.metadata_options().http_tokens, HttpTokens::Optional);
    let volumes = pool.machine.data_volumes();
    assert_eq!(volumes.len(), 27);
    assert!(volumes.is_sorted_by_key(|volume| volume.device_name.clone()));
}

// Rules: D6
#[test]
fn an_instance_carries_the_id_that_its_node_will_have() {
    let spec = ASGMachineSpec::new("eu-west-1a", "i-0a1b2c3d4e5f60718");
    assert_eq!(
        serde_json::to_value(spec).unwrap(),
        json!({ "providerID": "aws:///eu-west-1a/i-0a1b2c3d4e5f60718", "instanceID": "i-0a1b2c3d4e5f60718" })
    );
}
