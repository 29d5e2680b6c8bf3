//! Requests of hooks from seeds: as core sends them, with something else where something was, and no requests at all.

use capasg_test_objects::{Generator, Random, foreign, minimal_pool, template_of, with};

use super::*;

/// Makes requests.
#[derive(Default)]
pub(super) struct Requests(Generator);

impl Requests {
    /// The body of a seed. The same seed gives the same bytes.
    pub(super) fn body(&self, hook: Hook, seed: u64) -> Vec<u8> {
        let random = &mut Random::new(seed);
        let mut request = json!({
            "apiVersion": API_VERSION, "kind": format!("{hook}Request"), "settings": settings(random),
            "cluster": if random.chance(15) { foreign(seed) } else { cluster(random) },
            "fromKubernetesVersion": version(random), "toKubernetesVersion": version(random),
            "fromControlPlaneKubernetesVersion": version(random), "fromWorkersKubernetesVersion": version(random),
            "kubernetesVersion": version(random),
            "controlPlaneUpgrades": [{"version": version(random)}], "workersUpgrades": [],
            "variables": variables(random), "items": self.items(random, seed),
        });
        for _ in 0..random.index(3) {
            make_odd(random, &mut request, 0);
        }
        let mut body = request.to_string().into_bytes();
        match random.index(50) {
            0 => body.truncate(random.index(body.len())),
            1 => body = b"[]".to_vec(),
            _ => {}
        }
        body
    }

    /// A request for patches of a topology of so many pools.
    pub(super) fn topology(pools: usize) -> Value {
        let holder = |number: usize, field: &str| {
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "namespace": "teams",
                "name": format!("prod-{number}"), "fieldPath": format!("spec.template.spec.{field}"),
            })
        };
        let own = json!([
            {"name": "asgInstances", "value": {"class": "memory", "size": "xlarge", "architecture": "arm64"}},
            {"name": "asgImage", "value": {"ssmParameter": "/images/{architecture}/v{version}"}},
            {"name": "asgTags", "value": {"team": "a"}},
            {"name": "asgDataVolumes", "value": [
                {"deviceName": "/dev/xvdb", "sizeGiB": 200, "fileSystem": {"mountPath": "/var/lib/containerd"}},
            ]},
        ]);
        let of_pool = |number: usize| {
            [(pool_template(), "infrastructureRef"), (bootstrap_template(), "bootstrap.configRef")].map(
                |(object, field)| {
                    json!({
                        "uid": format!("{number}-{field}"), "object": object, "variables": own,
                        "holderReference": holder(number, field),
                    })
                },
            )
        };
        json!({
            "apiVersion": API_VERSION, "kind": "GeneratePatchesRequest",
            "items": (0..pools).flat_map(of_pool).collect::<Vec<_>>(),
        })
    }

    fn items(&self, random: &mut Random, seed: u64) -> Vec<Value> {
        let item = |number: usize, random: &mut Random| {
            let object = match random.index(4) {
                0 => self.0.object(seed),
                1 => bootstrap_template(),
                _ => pool_template(),
            };
            json!({
                "uid": format!("uid-{number}"), "object": object, "variables": variables(random),
                "holderReference": {"kind": "MachinePool", "namespace": "teams", "name": format!("pool-{}", number / 2)},
            })
        };
        (0..random.index(5)).map(|number| item(number, random)).collect()
    }
}

fn pool_template() -> Value {
    let pool = with(minimal_pool(), "spec/tags", json!({"team": "a", "cost-center": "b"}));
    let pool = with(pool, "spec/machine/rootVolume", json!({"sizeGiB": 80, "type": "gp3"}));
    template_of(&with(pool, "spec/rollout", json!({"strategy": {"rollingUpdate": {"maxSurge": 1}}})))
}

fn bootstrap_template() -> Value {
    json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate", "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"joinConfiguration": {"nodeRegistration": {}}, "mounts": [["/dev/xvdz", "/mnt"]]}}},
    })
}

fn version(random: &mut Random) -> Value {
    let versions = ["v1.34.8", "v1.35.4", "v1.36.3", "v1.36.3", "v1.36.3+a", "1.36", ""];
    json!(random.one_of(&versions))
}

fn settings(random: &mut Random) -> Value {
    let all = [
        ("requireApproval", "true"),
        ("requireApproval", "no"),
        ("blockTimeoutSeconds", "60"),
        ("degradedPoolTimeoutSeconds", "0"),
        ("maintenanceWindows", "[{schedule: '0 22 * * 6', durationSeconds: 14400, timeZone: Europe/Dublin}]"),
        ("maintenanceWindows", "[]"),
        ("kubernetesVersions", "v1.34.8,v1.35.4,v1.36.3"),
        ("imageParameter", "/images/{architecture}/v{version}"),
        ("onBlockTimeout", "Block"),
        ("other", ""),
    ];
    let chosen = all.iter().filter(|_| random.chance(15));
    chosen.map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
}

/// A third of the Clusters has pools, as the fake of these tests decides by the name.
fn cluster(random: &mut Random) -> Value {
    let all = [
        ("deletion-protection", "true"),
        ("deletion-protection", "maybe"),
        ("upgrade-approved", "v1.36.3"),
        ("skip-hook", "BeforeClusterUpgrade, AfterClusterUpgrade"),
        ("maintenance-windows", "[{schedule: '0 0 * * *', durationSeconds: 86400}]"),
        ("maintenance-windows", "nights"),
    ];
    let chosen = all.iter().filter(|_| random.chance(10));
    let annotations = chosen
        .map(|(name, value)| (format!("asg.infrastructure.cluster.x-k8s.io/{name}"), json!(value)))
        .collect::<serde_json::Map<_, _>>();
    let names = ["empty", "ready", "rolling", "degraded"];
    json!({
        "apiVersion": if random.chance(50) { "cluster.x-k8s.io/v1beta1" } else { "cluster.x-k8s.io/v1beta2" },
        "kind": "Cluster",
        "metadata": {
            "name": random.one_of(&names), "namespace": "teams", "uid": "1", "annotations": annotations,
            "deletionTimestamp": "2026-03-01T00:00:00Z",
        },
        "spec": {"topology": {"version": version(random)}},
        "status": {"conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]},
    })
}

fn variables(random: &mut Random) -> Value {
    let all = [
        json!({"name": "asgRegion", "value": "eu-west-1"}),
        json!({"name": "asgInstances", "value": {"class": "gpu", "size": "large"}}),
        json!({"name": "asgInstances", "value": {"class": "cheap"}}),
        json!({"name": "asgImage", "value": {"ssmParameter": "/images/{architecture}/v{version}"}}),
        json!({"name": "asgImage", "value": {}}),
        json!({"name": "asgRootVolume", "value": {"sizeGiB": 120}}),
        json!({"name": "asgDataVolumes", "value": [{"deviceName": "/dev/xvdb", "sizeGiB": 1, "fileSystem": {"mountPath": "/a"}}]}),
        json!({"name": "asgSubnets", "value": {"a": ["subnet-1"]}}),
        json!({"name": "asgTags", "value": null}),
        json!({"name": "builtin", "value": {"machinePool": {"topologyName": "workers", "version": "v1.36.3"}}}),
        json!({"name": "other", "value": [1]}),
    ];
    let chosen: Vec<&Value> = all.iter().filter(|_| random.chance(20)).collect();
    json!(chosen)
}

/// Puts something else in one place.
fn make_odd(random: &mut Random, value: &mut Value, depth: usize) {
    if depth < 8 && random.chance(85) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let names: Vec<String> = members.keys().cloned().collect();
                let name = random.one_of(&names);
                return make_odd(random, &mut members[name], depth + 1);
            }
            Value::Array(items) if !items.is_empty() => {
                let index = random.index(items.len());
                return make_odd(random, &mut items[index], depth + 1);
            }
            _ => {}
        }
    }
    let others = [
        json!(null),
        json!({}),
        json!([]),
        json!([[]]),
        json!(""),
        json!("é漢🦀\u{0}"),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(true),
        json!("x".repeat(5000)),
    ];
    *value = random.one_of(&others).clone();
}
