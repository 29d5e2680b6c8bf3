//! The ClusterClass that uses the extension, and its flavor: what the hooks answer to the requests that core makes of them.

use std::sync::Arc;

use async_trait::async_trait;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use capasg_api::names::addons::Phase;
use capasg_cloud::SystemClock;
use capasg_extensions::{
    DEFAULT_BUDGET, Extension, Reply, Services,
    blocks::{Blocks, Record},
    ports::{
        AddonFacts, Journal, Kind, Kubernetes, MachineFacts, Notice, Observer, Outcome, PoolList, ReadError,
        ReleaseRequest,
    },
    protocol::{API_VERSION, Cluster, ClusterKey, GeneratePatchesResponse, Hook},
};
use serde_json::{Value, json};

use super::{
    read,
    schema::{rejections, rejections_of_bootstrap},
};

/// Topology hooks need neither objects nor events.
struct Nothing;

#[async_trait]
impl Kubernetes for Nothing {
    async fn cluster(&self, _: &Cluster) -> Result<Option<Cluster>, ReadError> {
        unreachable!("topology hooks are pure")
    }

    async fn pools(&self, _: &ClusterKey) -> Result<PoolList, ReadError> {
        unreachable!("topology hooks are pure")
    }

    async fn machines(&self, _: &ClusterKey) -> Result<Vec<MachineFacts>, ReadError> {
        unreachable!("topology hooks are pure")
    }

    async fn addons(&self, _: &ClusterKey, _: Phase) -> Result<Vec<AddonFacts>, ReadError> {
        unreachable!("topology hooks are pure")
    }

    async fn object(&self, _: Kind, _: &str, _: &str) -> Result<Option<Value>, ReadError> {
        unreachable!("topology hooks are pure")
    }

    async fn record(&self, _: &ClusterKey) -> Result<Option<Record>, ReadError> {
        unreachable!("topology hooks are pure")
    }
}

impl Journal for Nothing {
    fn publish(&self, _: Notice) {
        unreachable!("topology hooks are pure")
    }

    fn record(&self, _: &ClusterKey, _: &Record) {
        unreachable!("topology hooks are pure")
    }

    fn request(&self, _: &ClusterKey, _: ReleaseRequest) {
        unreachable!("topology hooks are pure")
    }
}

impl Observer for Nothing {
    fn called(&self, _: Hook, _: Outcome, _: std::time::Duration) {}

    fn timed_out(&self, _: Hook) {}
}

async fn call(hook: Hook, mut request: Value) -> Value {
    let services = Services {
        kubernetes: Arc::new(Nothing),
        journal: Arc::new(Nothing),
        observer: Arc::new(Nothing),
        clock: Arc::new(SystemClock),
        gates: Vec::new(),
        blocks: Blocks::default(),
        unread: Blocks::default(),
        lookups: None,
    };
    request["apiVersion"] = json!(API_VERSION);
    request["kind"] = json!(format!("{hook}Request"));
    let body = request.to_string();
    let reply = Extension::new(services, &Hook::ALL).call(hook, body.as_bytes(), DEFAULT_BUDGET).await;
    let Reply::Processed(body) = reply else { panic!("{reply:?}") };
    let response: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(response["status"], "Success", "{response}");
    response
}

/// The class and its templates.
fn objects() -> Vec<Value> {
    serde_saphyr::from_multiple(&read("templates/clusterclass-asg-extension.yaml")).unwrap()
}

fn of_kind(kind: &str) -> Value {
    objects().into_iter().find(|object| object["kind"] == kind).unwrap()
}

fn external() -> Value {
    let class = of_kind("ClusterClass");
    let patches = class["spec"]["patches"].as_array().unwrap();
    // The last one, so that it overrides the others.
    patches.last().unwrap()["external"].clone()
}

/// The variables of the flavor, with values for what it requires.
fn variables_of_the_flavor() -> Vec<Value> {
    let mut text = read("templates/cluster-template-extension.yaml");
    for (name, value) in
        [("AWS_REGION", "eu-west-1"), ("AWS_NODE_IMAGE_PARAMETER", "/images/{architecture}/v{version}")]
    {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    let cluster: Value = serde_saphyr::from_str(&text).unwrap();
    let variables = cluster["spec"]["topology"]["variables"].as_array().unwrap();
    let discovered = |variable: &&Value| variable["name"].as_str().unwrap().starts_with("asg");
    // `${NAME:=default}`, as clusterctl replaces it.
    let with_defaults = |variable: &Value| {
        let text = variable.to_string().replace("${AWS_NODE_MACHINE_TYPE:=m7i.large}", "m7i.large");
        serde_json::from_str(&text).unwrap()
    };
    variables.iter().filter(discovered).map(with_defaults).collect()
}

/// The templates as core sends them: each with the object that uses it.
fn items(objects: &[Value]) -> Vec<Value> {
    let holder = |object: &Value| match object["kind"].as_str().unwrap() {
        "ASGMachinePoolTemplate" => ("MachinePool", "prod-workers", "spec.template.spec.infrastructureRef"),
        "KubeadmConfigTemplate" => ("MachinePool", "prod-workers", "spec.template.spec.bootstrap.configRef"),
        "AWSClusterTemplate" => ("Cluster", "prod", "spec.infrastructureRef"),
        "KubeadmControlPlaneTemplate" => ("Cluster", "prod", "spec.controlPlaneRef"),
        _ => ("KubeadmControlPlane", "prod", "spec.machineTemplate.infrastructureRef"),
    };
    let item = |object: &Value| {
        let (kind, name, path) = holder(object);
        json!({
            "uid": object["kind"], "object": object,
            "holderReference": {
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "namespace": "teams", "name": name, "fieldPath": path,
            },
            "variables": [{"name": "builtin", "value": {"machinePool": {"topologyName": "workers", "version": "v1.36.3"}}}],
        })
    };
    objects.iter().filter(|object| object["kind"] != "ClusterClass").map(item).collect()
}

/// The templates after the patches for these variables, which `ValidateTopology` accepts; and the kinds that changed.
async fn patched(variables: Vec<Value>) -> (Vec<Value>, Vec<String>) {
    let mut objects = objects();
    let request = json!({"variables": variables, "items": items(&objects)});
    let response = call(Hook::GeneratePatches, request).await;
    let response: GeneratePatchesResponse = serde_json::from_value(response).unwrap();
    let mut changed = Vec::new();
    for item in response.items {
        let patch = BASE64_STANDARD.decode(&item.patch).unwrap();
        let object = objects.iter_mut().find(|object| object["kind"] == item.uid.as_str()).unwrap();
        json_patch::merge(object, &serde_json::from_slice(&patch).unwrap());
        changed.push(item.uid);
    }
    call(Hook::ValidateTopology, json!({"variables": variables, "items": items(&objects)})).await;
    changed.sort();
    (objects, changed)
}

// Rules: R15
#[test]
fn the_class_refers_to_handlers_of_the_shipped_extension_config() {
    let config: Value = serde_saphyr::from_str(&read("config/extension/extensionconfig.yaml")).unwrap();
    let config = config["metadata"]["name"].as_str().unwrap().to_owned();
    let handler = |hook: Hook| format!("{}.{config}", hook.handler());
    let expected = json!({
        "discoverVariablesExtension": handler(Hook::DiscoverVariables),
        "generatePatchesExtension": handler(Hook::GeneratePatches),
        "validateTopologyExtension": handler(Hook::ValidateTopology),
    });
    assert_eq!(external(), expected);
}

/// Core rejects a class that defines a variable in two forms.
#[tokio::test]
async fn variables_that_are_also_inline_have_the_same_definition() {
    let discovered = call(Hook::DiscoverVariables, json!({})).await["variables"].clone();
    let discovered = discovered.as_array().unwrap();
    let class = of_kind("ClusterClass");
    let inline = class["spec"]["variables"].as_array().unwrap();
    let both = inline
        .iter()
        .filter_map(|own| Some((own, discovered.iter().find(|one| one["name"] == own["name"])?)));
    let both: Vec<_> = both.collect();
    assert_eq!(both.len(), 1);
    for (own, other) in both {
        assert_eq!(own, other);
    }
    for variable in variables_of_the_flavor() {
        assert!(discovered.iter().any(|one| one["name"] == variable["name"]), "{variable}");
    }
    let documented = read("docs/users/runtime-extension-variables.md");
    for variable in discovered {
        let name = variable["name"].as_str().unwrap();
        assert!(
            documented.contains(&format!("`{name}`")),
            "docs/users/runtime-extension-variables.md does not name {name}"
        );
    }
}

// Rules: R9
#[tokio::test]
async fn the_flavor_patches_the_templates_of_the_class() {
    let (objects, changed) = patched(variables_of_the_flavor()).await;
    assert_eq!(changed, ["ASGMachinePoolTemplate"]);
    let template = objects.iter().find(|object| object["kind"] == "ASGMachinePoolTemplate").unwrap();
    assert_eq!(rejections("ASGMachinePoolTemplate", template), Vec::<String>::new());
    let spec = &template["spec"]["template"]["spec"];
    assert_eq!(spec["region"], "eu-west-1");
    assert_eq!(spec["machine"]["image"], json!({"ssmParameter": "/images/amd64/v{version}"}));
    // What the variables do not set stays.
    assert_eq!(spec["machine"]["rootVolume"], json!({"sizeGiB": 80}));
}

// Rules: R9
#[tokio::test]
async fn every_variable_gives_templates_that_the_definition_accepts() {
    let variables = json!([
        {"name": "asgRegion", "value": "eu-west-1"},
        {"name": "asgInstances", "value": {"class": "gpu", "size": "2xlarge"}},
        {"name": "asgImage", "value": {"ssmParameter": "/images/{architecture}/{minor}/v{version}"}},
        {"name": "asgPurchaseOptions", "value": {
            "onDemandBaseCapacity": 1, "onDemandPercentageAboveBaseCapacity": 20,
            "onDemandAllocationStrategy": "prioritized", "spotAllocationStrategy": "price-capacity-optimized",
        }},
        {"name": "asgRootVolume", "value": {"sizeGiB": 100, "type": "gp3", "iops": 3000, "throughputMiBps": 250}},
        {"name": "asgDataVolumes", "value": [
            {"deviceName": "/dev/xvdb", "sizeGiB": 200, "fileSystem": {"mountPath": "/var/lib/containerd"}},
            {"deviceName": "/dev/xvdc", "snapshotID": "snap-0a1b2c3d", "encryption": "Encrypted", "onTermination": "Retain"},
        ]},
        {"name": "asgTags", "value": {"team": "a"}},
        {"name": "asgSubnets", "value": {"eu-west-1a": ["subnet-0a1b2c3d"], "eu-west-1b": ["subnet-1a2b3c4d"]}},
        {"name": "asgRollout", "value": {
            "mode": "Automatic", "progressDeadlineSeconds": 600, "maxInstanceLifetimeSeconds": 86400,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
        }},
        {"name": "asgDisruption", "value": {
            "maxDisrupted": 1, "windows": [{"schedule": "0 22 * * 6", "durationSeconds": 14400, "timeZone": "Europe/Dublin"}],
        }},
    ]);
    let discovered = call(Hook::DiscoverVariables, json!({})).await["variables"].as_array().unwrap().len();
    let variables = variables.as_array().unwrap().clone();
    assert_eq!(variables.len(), discovered);
    let (objects, changed) = patched(variables).await;
    assert_eq!(changed, ["ASGMachinePoolTemplate", "KubeadmConfigTemplate"]);
    let template = objects.iter().find(|object| object["kind"] == "ASGMachinePoolTemplate").unwrap();
    assert_eq!(rejections("ASGMachinePoolTemplate", template), Vec::<String>::new());
    let bootstrap = objects.iter().find(|object| object["kind"] == "KubeadmConfigTemplate").unwrap();
    assert_eq!(rejections_of_bootstrap(bootstrap), Vec::<String>::new());
    let spec = &bootstrap["spec"]["template"]["spec"];
    assert_eq!(spec["mounts"], json!([["LABEL=data-xvdb", "/var/lib/containerd", "ext4"]]));
    assert!(spec["joinConfiguration"].is_object(), "what the template has stays");
}
