//! Patches and validation through their hooks.

mod data_volumes;
mod planned;

use std::time::Instant;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use capasg_api::ASGMachinePoolSpec;
use capasg_test_objects::with;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Variables, variables};
use crate::{
    protocol::{API_VERSION, Hook, Variable},
    testing::{World, call},
};

fn template() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachinePoolTemplate",
        "metadata": {"name": "workers", "namespace": "teams"},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "region": "us-east-1", "subnets": [{"tags": {"role": "private"}}], "instanceTypes": [{"type": "m7i.large"}],
            "tags": {"team": "a"},
            "machine": {
                "image": {"id": "ami-0a1b2c3d", "updatePolicy": "WithVersion"}, "securityGroups": [{"id": "sg-0a1b2c3d"}],
                "rootVolume": {"sizeGiB": 80, "type": "gp3"},
            },
        }}},
    })
}

fn item(object: &Value, variables: &Value) -> Value {
    json!({
        "uid": "a-uid", "object": object, "variables": variables,
        "holderReference": {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "namespace": "teams", "name": "prod-workers",
            "fieldPath": "spec.template.spec.infrastructureRef",
        },
    })
}

fn request(hook: Hook, settings: &Value, variables: &Value, items: &[Value]) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": format!("{hook}Request"), "settings": settings, "variables": variables,
        "items": items,
    })
}

fn variable(name: &str, value: impl Into<Value>) -> Value {
    json!({"name": name, "value": value.into()})
}

async fn answer(request: &Value) -> Value {
    let hook = request["kind"].as_str().unwrap().trim_end_matches("Request").parse().unwrap();
    call(&World::empty().extension(), hook, request).await
}

fn patch_of(item: &Value) -> Value {
    assert_eq!(item["patchType"], "JSONMergePatch");
    serde_json::from_slice(&BASE64_STANDARD.decode(item["patch"].as_str().unwrap()).unwrap()).unwrap()
}

async fn patched(settings: Value, variables: Value) -> Value {
    let request = request(Hook::GeneratePatches, &settings, &variables, &[item(&template(), &json!([]))]);
    let response = answer(&request).await;
    assert_eq!(response["status"], "Success", "{response}");
    let mut object = template();
    for item in response["items"].as_array().into_iter().flatten() {
        assert_eq!(item["uid"], "a-uid");
        let patch = patch_of(item);
        let below = |value: &Value, name: &str| value.as_object().unwrap().keys().eq([name]);
        assert!(
            below(&patch, "spec")
                && below(&patch["spec"], "template")
                && below(&patch["spec"]["template"], "spec")
        );
        json_patch::merge(&mut object, &patch);
    }
    object["spec"]["template"]["spec"].clone()
}

// Rules: R9
#[tokio::test]
async fn variables_change_the_fields_of_the_template() {
    let spec = patched(
        json!({}),
        json!([
            variable("asgRegion", json!("eu-west-1")),
            variable("asgInstances", json!({"class": "memory", "size": "xlarge", "architecture": "arm64"})),
            variable("asgImage", json!({"ssmParameter": "/images/{architecture}/v{version}"})),
            variable("asgPurchaseOptions", json!({"onDemandPercentageAboveBaseCapacity": 20})),
            variable("asgRootVolume", json!({"sizeGiB": 120})),
            variable("asgTags", json!({"cost": "b", "team": "c"})),
            variable("asgSubnets", json!({"eu-west-1b": ["subnet-2"], "eu-west-1a": ["subnet-1"]})),
            variable("asgRollout", json!({"strategy": {"rollingUpdate": {"maxSurge": 2}}})),
            variable("asgDisruption", json!({"maxDisrupted": "25%"})),
            variable("other", json!("of another patch")),
        ]),
    )
    .await;
    let expected = json!({
        "region": "eu-west-1", "subnets": [{"id": "subnet-1"}, {"id": "subnet-2"}],
        "instanceTypes": [{"type": "r8g.xlarge"}, {"type": "r7g.xlarge"}, {"type": "r6g.xlarge"}],
        "tags": {"team": "c", "cost": "b"},
        "instancesDistribution": {"onDemandPercentageAboveBaseCapacity": 20},
        "machine": {
            "image": {"ssmParameter": "/images/arm64/v{version}", "updatePolicy": "WithVersion"},
            "securityGroups": [{"id": "sg-0a1b2c3d"}],
            "rootVolume": {"sizeGiB": 120, "type": "gp3"},
        },
        "rollout": {"strategy": {"rollingUpdate": {"maxSurge": 2}}},
        "disruption": {"maxDisrupted": "25%"},
    });
    assert_eq!(spec, expected);
    serde_json::from_value::<ASGMachinePoolSpec>(spec).unwrap();
}

// Rules: R9
#[tokio::test]
async fn nothing_is_patched_where_nothing_changes() {
    let none = request(Hook::GeneratePatches, &json!({}), &json!([]), &[item(&template(), &json!([]))]);
    assert_eq!(answer(&none).await.get("items"), None);
    let same = json!([
        variable("asgInstances", json!({"types": [{"type": "m7i.large"}]})),
        variable("asgTags", json!({"team": "a"}))
    ]);
    let same = request(Hook::GeneratePatches, &json!({}), &same, &[item(&template(), &json!([]))]);
    assert_eq!(answer(&same).await.get("items"), None);
    // Templates of other kinds are not ours to patch.
    let mut other = template();
    other["kind"] = json!("KubeadmConfigTemplate");
    let region = json!([variable("asgRegion", json!("eu-west-1"))]);
    let other = request(Hook::GeneratePatches, &json!({}), &region, &[item(&other, &json!([]))]);
    assert_eq!(answer(&other).await.get("items"), None);
}

#[tokio::test]
async fn the_setting_of_the_image_follows_the_architecture_of_the_types() {
    let settings = json!({"imageParameter": "/images/{architecture}/{minor}/v{version}"});
    let spec = patched(settings.clone(), json!([])).await;
    assert_eq!(
        spec["machine"]["image"],
        json!({"ssmParameter": "/images/amd64/{minor}/v{version}", "updatePolicy": "WithVersion"})
    );
    let arm = json!([variable("asgInstances", json!({"types": [{"type": "c7g.large"}]}))]);
    let spec = patched(settings.clone(), arm).await;
    assert_eq!(spec["machine"]["image"]["ssmParameter"], "/images/arm64/{minor}/v{version}");
    let spec = patched(settings, json!([variable("asgImage", json!({"id": "ami-11111111"}))])).await;
    assert_eq!(spec["machine"]["image"], json!({"id": "ami-11111111", "updatePolicy": "WithVersion"}));
}

#[tokio::test]
async fn a_variable_of_a_pool_overrides_that_of_all() {
    let all = json!([
        variable("asgInstances", json!({"types": [{"type": "m7i.large"}]})),
        variable("builtin", json!({"cluster": {"name": "prod"}}))
    ]);
    let own = json!([
        variable("asgInstances", json!({"types": [{"type": "c7i.large"}]})),
        variable("builtin", json!({"machinePool": {"topologyName": "workers"}}))
    ]);
    let response =
        answer(&request(Hook::GeneratePatches, &json!({}), &all, &[item(&template(), &own)])).await;
    let patch = patch_of(&response["items"][0]);
    assert_eq!(patch, json!({"spec": {"template": {"spec": {"instanceTypes": [{"type": "c7i.large"}]}}}}));
    let own = json!([
        variable("asgInstances", json!({"class": "cheap"})),
        variable("builtin", json!({"machinePool": {"topologyName": "workers"}}))
    ]);
    let response =
        answer(&request(Hook::GeneratePatches, &json!({}), &all, &[item(&template(), &own)])).await;
    assert_eq!(response["status"], "Failure");
    assert!(
        response["message"].as_str().unwrap().starts_with("machine pool workers: variable asgInstances: "),
        "{response}"
    );
}

/// An edit of a spec.
type Change = fn(&mut Value);

#[tokio::test]
async fn what_is_wrong_with_a_template_is_said_in_words() {
    let validated = async |change: Change, version: &str| {
        let mut object = template();
        change(&mut object["spec"]["template"]["spec"]);
        let own = json!([variable(
            "builtin",
            json!({"machinePool": {"topologyName": "workers", "version": version}})
        )]);
        let response =
            answer(&request(Hook::ValidateTopology, &json!({}), &json!([]), &[item(&object, &own)])).await;
        let message = response["message"].as_str().map(str::to_owned);
        assert_eq!(response["status"], if message.is_some() { "Failure" } else { "Success" });
        message.map(|message| message.trim_start_matches("machine pool workers: ").to_owned())
    };
    assert_eq!(validated(|_| {}, "v1.36.3").await, None);
    let cases: [(Change, &str); 9] = [
        (
            |spec| spec["instanceTypes"] = json!([{"type": "m7i.large"}, {"type": "m7g.large"}]),
            "instanceTypes: all instance types must have the architecture of the image",
        ),
        (
            |spec| spec["instanceTypes"] = json!([{"type": "m7i.large"}, {"type": "m7i.large"}]),
            "instanceTypes: must not contain a type twice",
        ),
        (|spec| spec["instanceTypes"] = json!([]), "instanceTypes: must have 1 to 40 instance types"),
        (
            |spec| spec["machine"]["securityGroups"] = json!([]),
            "machine.securityGroups: must have 1 to 16 selectors",
        ),
        (
            |spec| spec["machine"]["image"] = json!({}),
            "machine.image: set exactly one of id and ssmParameter",
        ),
        (
            |spec| spec["machine"]["image"] = json!({"ssmParameter": "/images/{architecture}"}),
            "machine.image.ssmParameter: only the placeholders {version} and {minor} are allowed",
        ),
        (
            |spec| spec["subnets"] = json!([{"id": "subnet-1", "tags": {"a": "b"}}]),
            "subnets: set exactly one of id and tags in each",
        ),
        (
            |spec| {
                spec["minSize"] = json!(3);
                spec["maxSize"] = json!(2);
            },
            "minSize: must not be greater than maxSize",
        ),
        (
            |spec| spec["region"] = json!(7),
            "spec.template.spec: invalid type: integer `7`, expected a string",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(validated(change, "v1.36.3").await.as_deref(), Some(expected));
    }
    let image =
        validated(|spec| spec["machine"]["image"] = json!({"ssmParameter": "/images/{version}"}), "latest")
            .await;
    assert!(image.unwrap().contains("which is \"latest\""));
    let window = validated(
        |spec| spec["disruption"] = json!({"windows": [{"schedule": "0 0 30 2 *", "durationSeconds": 900}]}),
        "v1.36.3",
    )
    .await;
    assert!(window.unwrap().contains("matches no day"));
}

#[test]
fn every_variable_has_a_structural_schema_and_is_optional() {
    fn check(path: &str, schema: &Value) {
        assert!(schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == true, "{path}");
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{path}.{name}");
            check(&format!("{path}.{name}"), property);
        }
        for name in ["items", "additionalProperties"] {
            if !schema[name].is_null() {
                check(&format!("{path}.{name}"), &schema[name]);
            }
        }
    }
    let all = variables::all();
    assert_eq!(all.len(), 10);
    for variable in all {
        assert_eq!(variable.required, Some(false));
        assert!(variable.name.starts_with("asg"), "{}", variable.name);
        check(&variable.name, &variable.schema["openAPIV3Schema"]);
    }
}

#[test]
fn the_variable_of_the_instance_types_has_the_rule_of_the_field() {
    let pool = capasg_api::crd::crds().into_iter().find(|crd| crd.spec.names.kind == "ASGMachinePool");
    let pool = serde_json::to_value(pool).unwrap();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let field = pool.pointer(spec).unwrap()["instanceTypes"]["x-kubernetes-validations"][0]["rule"].clone();
    assert!(field.is_string());
    let variable = variables::all().into_iter().find(|variable| variable.name == "asgInstances").unwrap();
    let types = &variable.schema["openAPIV3Schema"]["properties"]["types"];
    assert_eq!(types["x-kubernetes-validations"][0]["rule"], field);
}

/// A value that a schema allows; `choice` decides among them.
fn sample(schema: &Value, name: &str, choice: usize) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return values[choice % values.len()].clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if choice.is_multiple_of(2) { json!(1) } else { json!("25%") };
    }
    match schema["type"].as_str().unwrap() {
        "string" => match name {
            "schedule" => json!("0 22 * * *"),
            "timeZone" => json!("Europe/Dublin"),
            "ssmParameter" => json!("/images/{architecture}/v{version}"),
            "deviceName" => json!("/dev/xvdb"),
            "mountPath" | "device" => json!("/data"),
            "snapshotID" => json!("snap-0a1b2c3d"),
            _ => json!("large"),
        },
        "integer" => schema["minimum"].clone(),
        "array" => json!([sample(&schema["items"], name, choice)]),
        _ if !schema["additionalProperties"].is_null() => {
            json!({"a": sample(&schema["additionalProperties"], name, choice)})
        }
        _ => {
            let properties = schema["properties"].as_object().unwrap().iter();
            // The validation of the image allows one of its two fields.
            let properties = properties.filter(|(name, _)| name.as_str() != "id" || choice.is_multiple_of(2));
            let properties =
                properties.filter(|(name, _)| name.as_str() != "ssmParameter" || choice % 2 == 1);
            properties.map(|(name, property)| (name.clone(), sample(property, name, choice))).collect()
        }
    }
}

proptest! {
    /// What the schemas allow, the patches accept; the result is a spec, and a second call changes nothing.
    #[test]
    fn what_the_schemas_allow_is_patched_once(choices in prop::collection::vec(prop::option::of(0..6_usize), 10)) {
        let set: Vec<Variable> = variables::all()
            .into_iter()
            .zip(choices)
            .filter_map(|(variable, choice)| {
                let value = sample(&variable.schema["openAPIV3Schema"], &variable.name, choice?);
                Some(Variable { name: variable.name, value })
            })
            .collect();
        let variables = Variables::of(&set, &[]);
        let settings = crate::settings::Settings::default();
        for before in [template(), data_volumes::bootstrap_template()] {
            let mut object = before.clone();
            if let Some(patch) = super::patch(&object, &variables, &settings).unwrap() {
                json_patch::merge(&mut object, &patch);
            }
            prop_assert_eq!(super::patch(&object, &variables, &settings).unwrap(), None);
            prop_assert_eq!(&object["metadata"], &before["metadata"]);
            prop_assert_eq!(&object["spec"]["template"]["metadata"], &before["spec"]["template"]["metadata"]);
            if object["kind"] == "ASGMachinePoolTemplate" {
                serde_json::from_value::<ASGMachinePoolSpec>(object["spec"]["template"]["spec"].clone()).unwrap();
            }
        }
    }
}

/// 20 pools: the limit is 50 ms in a release; an unoptimized build takes longer, and a busy machine too.
#[tokio::test]
async fn a_topology_of_20_pools_is_patched_fast() {
    let own = json!([
        variable("asgInstances", json!({"class": "general", "size": "large"})),
        variable("asgTags", json!({"b": "c"}))
    ]);
    let items: Vec<Value> = (0..20).map(|_| item(&template(), &own)).collect();
    let request = request(Hook::GeneratePatches, &json!({}), &json!([]), &items);
    let mut times = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        let response = answer(&request).await;
        assert_eq!(response["items"].as_array().unwrap().len(), 20);
        times.push(started.elapsed());
    }
    times.sort();
    assert!(times[10].as_millis() < 1000, "{times:?}");
}

// Rules: R9
#[tokio::test]
async fn an_answer_is_not_many_times_larger_than_its_request() {
    let items: Vec<Value> = (0..1000).map(|_| item(&template(), &json!([]))).collect();
    let tags: serde_json::Map<String, Value> =
        (0..40).map(|number| (format!("tag-{number}"), "x".repeat(1000).into())).collect();
    let patches = request(Hook::GeneratePatches, &json!({}), &json!([variable("asgTags", tags)]), &items);
    let response = answer(&patches).await;
    assert_eq!((&response["status"], &response["items"]), (&json!("Failure"), &Value::Null));
    assert_eq!(response["message"], "the patches have more than 4194304 bytes");

    let builtin = variable("builtin", json!({"machinePool": {"topologyName": "x".repeat(100_000)}}));
    let broken = with(template(), "spec/template/spec/subnets", json!([]));
    let items: Vec<Value> = (0..100).map(|_| item(&broken, &json!([]))).collect();
    let response = answer(&request(Hook::ValidateTopology, &json!({}), &json!([builtin]), &items)).await;
    let message = response["message"].as_str().unwrap();
    assert!(message.len() < 16 * 1024 && message.ends_with("; and 90 more"), "{} bytes", message.len());
}
