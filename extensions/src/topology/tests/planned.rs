//! What is known of pools before they are created.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{template, variable};
use crate::{
    protocol::Cluster,
    settings::Settings,
    topology::{PlannedPool, planned_pools, templates_of},
};

const OF_WORKERS: &str =
    r#"{"kind": "ASGMachinePoolTemplate", "matchResources": {"machinePoolClass": {"names": ["def*"]}}}"#;

fn class(patches: &[Value]) -> Value {
    let pool = |class: &str, kind: &str| {
        json!({"class": class, "failureDomains": ["eu-west-1a"], "infrastructure": {"templateRef": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": kind, "name": "workers",
        }}})
    };
    let pools = [pool("default", "ASGMachinePoolTemplate"), pool("other", "AWSMachinePoolTemplate")];
    json!({"spec": {"workers": {"machinePools": pools}, "patches": patches}})
}

fn inline(path: &str, change: &Value) -> Value {
    let mut change = change.clone();
    change["op"] = json!("replace");
    change["path"] = json!(format!("/spec/template/spec/{path}"));
    let selector: Value = serde_json::from_str(OF_WORKERS).unwrap();
    json!({"name": "a", "definitions": [{"selector": selector, "jsonPatches": [change]}]})
}

fn external(handler: &str, settings: &Value) -> Value {
    json!({"name": "e", "external": {"generatePatchesExtension": handler, "settings": settings}})
}

fn planned(patches: &[Value], variables: &[Value], overrides: &[Value]) -> Option<PlannedPool> {
    let topology = json!({
        "variables": variables,
        "workers": {"machinePools": [
            {"class": "default", "name": "workers", "replicas": 2, "variables": {"overrides": overrides}},
            {"class": "other", "name": "others"},
        ]},
    });
    let cluster = Cluster::from(json!({"spec": {"topology": topology}}));
    let class = class(patches);
    assert_eq!(templates_of(&class), BTreeMap::from([("default", "workers")]));
    let templates = BTreeMap::from([("default".to_owned(), template())]);
    let mut pools = planned_pools(&cluster, &class, &templates, &Settings::default());
    assert!(pools.len() <= 1, "{pools:?}");
    pools.pop()
}

#[test]
fn a_pool_is_planned_from_its_template() {
    let pool = planned(&[], &[], &[]).unwrap();
    assert_eq!((pool.name.as_str(), pool.region.as_str(), pool.replicas), ("workers", "us-east-1", 2));
    assert_eq!(pool.zones, ["eu-west-1a".to_owned()].into());
    assert_eq!(pool.types.unwrap(), ["m7i.large"]);
    assert_eq!(pool.image.unwrap().id.unwrap(), "ami-0a1b2c3d");
    assert_eq!(pool.security_groups.unwrap()[0].id.as_deref(), Some("sg-0a1b2c3d"));
    assert!(pool.subnets.unwrap()[0].tags.is_some());
}

#[test]
fn inline_patches_with_values_and_variables_are_applied() {
    let patches = [
        inline("region", &json!({"valueFrom": {"variable": "region"}})),
        inline("machine/image", &json!({"value": {"ssmParameter": "/a"}})),
    ];
    let pool = planned(&patches, &[variable("region", "eu-west-1")], &[]).unwrap();
    assert_eq!(pool.region, "eu-west-1");
    assert_eq!(pool.image.unwrap().ssm_parameter.as_deref(), Some("/a"));
    let own = [variable("region", "eu-west-2")];
    assert_eq!(planned(&patches, &[variable("region", "eu-west-1")], &own).unwrap().region, "eu-west-2");
}

#[test]
fn what_other_patches_change_is_not_known() {
    let template = json!({"valueFrom": {"template": "- id: {{ .subnet }}"}});
    let pool = planned(&[inline("subnets", &template)], &[], &[]).unwrap();
    assert_eq!(pool.subnets, None);
    assert!(pool.types.is_some());
    let pool = planned(&[inline("instanceTypes/0/type", &json!({"value": "m9.huge"}))], &[], &[]).unwrap();
    assert_eq!(pool.types, None);
    let pool = planned(&[inline("machine", &template)], &[], &[]).unwrap();
    assert_eq!((pool.image, pool.security_groups), (None, None));
    let mut conditional = inline("instanceTypes", &json!({"value": []}));
    conditional["enabledIf"] = json!("{{ .a }}");
    assert_eq!(planned(&[conditional], &[], &[]).unwrap().types, None);
    // Without its region nothing of a pool can be checked.
    let unset = inline("region", &json!({"valueFrom": {"variable": "region"}}));
    assert_eq!(planned(&[unset], &[], &[]), None);
    assert_eq!(planned(&[external("patch.other", &json!({}))], &[], &[]), None);
}

#[test]
fn patches_of_this_extension_are_applied() {
    let subnets = inline("subnets", &json!({"valueFrom": {"template": "[]"}}));
    let ours =
        external("generate-patches.asg", &json!({"imageParameter": "/images/{architecture}/{version}"}));
    let patches = [subnets, ours];
    let variables = [
        variable("asgInstances", json!({"types": [{"type": "m7g.large"}]})),
        variable("asgSubnets", json!({"eu-west-1a": ["subnet-0a1b2c3d"]})),
    ];
    let pool = planned(&patches, &variables, &[]).unwrap();
    assert_eq!(pool.types.unwrap(), ["m7g.large"]);
    assert_eq!(pool.image.unwrap().ssm_parameter.as_deref(), Some("/images/arm64/{version}"));
    assert_eq!(pool.subnets.unwrap()[0].id.as_deref(), Some("subnet-0a1b2c3d"), "it overrides the template");
    let pool = planned(&patches, &[], &[]).unwrap();
    assert_eq!(pool.subnets, None);
    let invalid = [variable("asgInstances", 7)];
    assert_eq!(planned(&patches, &invalid, &[]), None);
}

#[test]
fn purchase_options_are_known_unless_a_patch_makes_them_unknown() {
    let percentage = |pool: Option<PlannedPool>| {
        let distribution = pool.unwrap().distribution?;
        Some(distribution.resolve().on_demand_percentage_above_base_capacity)
    };
    let distribution = json!({"onDemandPercentageAboveBaseCapacity": 20});
    assert_eq!(percentage(planned(&[], &[], &[])), Some(100), "the default");
    let known = inline("instancesDistribution", &json!({"value": distribution}));
    assert_eq!(percentage(planned(&[known], &[], &[])), Some(20));
    let unknown = inline("instancesDistribution", &json!({"valueFrom": {"template": "{}"}}));
    assert_eq!(percentage(planned(std::slice::from_ref(&unknown), &[], &[])), None);
    let patches = [unknown, external("generate-patches.asg", &json!({}))];
    let variables = [variable("asgPurchaseOptions", distribution)];
    assert_eq!(percentage(planned(&patches, &variables, &[])), Some(20));
    assert_eq!(percentage(planned(&patches, &[], &[])), None);
}
