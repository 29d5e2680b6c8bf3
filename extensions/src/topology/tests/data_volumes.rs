//! Data volumes in both templates of a pool: attached by one, mounted by the other.

use super::*;

/// The bootstrap template of the shipped classes, with disks and mounts of its own.
pub(super) fn bootstrap_template() -> Value {
    json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfigTemplate",
        "metadata": {"name": "workers", "namespace": "teams"},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "joinConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data.local_hostname }}"}},
            "diskSetup": {
                "partitions": [{"device": "/dev/xvdz", "layout": true}],
                "filesystems": [{"device": "/dev/xvdz", "filesystem": "ext4"}, {"device": "/dev/xvdb", "filesystem": "xfs"}],
            },
            "mounts": [["/dev/xvdz", "/mnt"], ["/dev/xvdy", "/var/lib/containerd"]],
        }}},
    })
}

/// A template that the holder of a pool uses, or another one.
fn used_by(holder: &str, uid: &str, object: &Value) -> Value {
    let mut item = item(object, &json!([]));
    item["uid"] = json!(uid);
    item["holderReference"]["name"] = json!(holder);
    item
}

fn volumes(entries: Value) -> Value {
    json!([variable("asgDataVolumes", entries)])
}

/// The specs of both templates of a pool, patched.
async fn both(entries: Value) -> (Value, Value) {
    let (mut pool, mut bootstrap) = (template(), bootstrap_template());
    let items = [used_by("prod-workers", "p", &pool), used_by("prod-workers", "b", &bootstrap)];
    let response = answer(&request(Hook::GeneratePatches, &json!({}), &volumes(entries), &items)).await;
    assert_eq!(response["status"], "Success", "{response}");
    for item in response["items"].as_array().into_iter().flatten() {
        let object = if item["uid"] == "p" { &mut pool } else { &mut bootstrap };
        json_patch::merge(object, &patch_of(item));
    }
    let spec = |object: &Value| object["spec"]["template"]["spec"].clone();
    (spec(&pool), spec(&bootstrap))
}

// Rules: R9
#[tokio::test]
async fn a_volume_is_attached_by_the_pool_and_mounted_by_the_bootstrap_template() {
    let (pool, bootstrap) = both(json!([
        {"deviceName": "/dev/xvdb", "sizeGiB": 200, "fileSystem": {"mountPath": "/var/lib/containerd", "type": "xfs"}},
        {"deviceName": "/dev/xvdc", "snapshotID": "snap-0a1b2c3d", "fileSystem": {"mountPath": "/data", "device": "/dev/nvme2n1"}},
        {"deviceName": "/dev/xvdd", "sizeGiB": 10, "type": "gp2"},
    ]))
    .await;
    let attached = json!([
        {"deviceName": "/dev/xvdb", "sizeGiB": 200},
        {"deviceName": "/dev/xvdc", "snapshotID": "snap-0a1b2c3d"},
        {"deviceName": "/dev/xvdd", "sizeGiB": 10, "type": "gp2"},
    ]);
    assert_eq!(pool["machine"]["dataVolumes"], attached);
    serde_json::from_value::<ASGMachinePoolSpec>(pool).unwrap();
    // What the template has for other devices and paths stays. The file system of a snapshot is not created again.
    let setup = json!({
        "partitions": [{"device": "/dev/xvdz", "layout": true}],
        "filesystems": [
            {"device": "/dev/xvdz", "filesystem": "ext4"},
            {"device": "/dev/xvdb", "filesystem": "xfs", "label": "data-xvdb", "partition": "none", "overwrite": false},
        ],
    });
    assert_eq!(bootstrap["diskSetup"], setup);
    let mounts = json!([
        ["/dev/xvdz", "/mnt"],
        ["/dev/nvme2n1", "/data", "ext4"],
        ["LABEL=data-xvdb", "/var/lib/containerd", "xfs"],
    ]);
    assert_eq!(bootstrap["mounts"], mounts);
    assert_eq!(
        bootstrap["joinConfiguration"],
        bootstrap_template()["spec"]["template"]["spec"]["joinConfiguration"]
    );
}

// Rules: R9
#[tokio::test]
async fn only_bootstrap_templates_of_our_pools_with_file_systems_are_patched() {
    let with_file_system =
        json!([{"deviceName": "/dev/xvdb", "sizeGiB": 1, "fileSystem": {"mountPath": "/data"}}]);
    let mut control_plane = bootstrap_template();
    control_plane["kind"] = json!("KubeadmControlPlaneTemplate");
    let items = [
        used_by("prod-workers", "bootstrap", &bootstrap_template()),
        used_by("prod-workers", "pool", &template()),
        used_by("prod-deployment", "of another", &bootstrap_template()),
        used_by("prod-workers", "of another kind", &control_plane),
    ];
    let patched = async |entries: Value| {
        let response = answer(&request(Hook::GeneratePatches, &json!({}), &volumes(entries), &items)).await;
        let items = response["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["uid"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(patched(with_file_system).await, ["bootstrap", "pool"]);
    assert_eq!(patched(json!([{"deviceName": "/dev/xvdb", "sizeGiB": 1}])).await, ["pool"]);
    // A template without a spec gets one.
    let mut bare = bootstrap_template();
    bare["spec"]["template"] = json!({});
    let variables =
        volumes(json!([{"deviceName": "/dev/xvdb", "sizeGiB": 1, "fileSystem": {"mountPath": "/data"}}]));
    let items = [used_by("a", "b", &bare), used_by("a", "p", &template())];
    let response = answer(&request(Hook::GeneratePatches, &json!({}), &variables, &items)).await;
    let patch = patch_of(&response["items"][0]);
    assert_eq!(patch["spec"]["template"]["spec"]["mounts"], json!([["LABEL=data-xvdb", "/data", "ext4"]]));
}

#[tokio::test]
async fn file_systems_that_no_node_would_create_are_rejected() {
    let variables =
        volumes(json!([{"deviceName": "/dev/xvdb", "sizeGiB": 1, "fileSystem": {"mountPath": "/data"}}]));
    let message = async |variables: &Value, items: &[Value]| {
        let response = answer(&request(Hook::ValidateTopology, &json!({}), variables, items)).await;
        response["message"].as_str().unwrap_or_default().to_owned()
    };
    let pool = used_by("prod-workers", "p", &template());
    let mut other = bootstrap_template();
    other["kind"] = json!("TalosConfigTemplate");
    for items in [
        vec![pool.clone()],
        vec![pool.clone(), used_by("prod-workers", "b", &other)],
        vec![pool.clone(), used_by("prod-deployment", "b", &bootstrap_template())],
    ] {
        assert_eq!(
            message(&variables, &items).await,
            "machine pool prod-workers: variable asgDataVolumes: file systems require a KubeadmConfigTemplate as bootstrap template"
        );
    }
    let mut ignition = bootstrap_template();
    ignition["spec"]["template"]["spec"]["format"] = json!("ignition");
    let items = [pool.clone(), used_by("prod-workers", "b", &ignition)];
    assert!(message(&variables, &items).await.contains("require the format cloud-config"));
    let items = [pool.clone(), used_by("prod-workers", "b", &bootstrap_template())];
    assert_eq!(message(&variables, &items).await, "");
    let without = volumes(json!([{"deviceName": "/dev/xvdb", "sizeGiB": 1}]));
    assert_eq!(message(&without, &[pool]).await, "");
}

#[tokio::test]
async fn a_volume_that_cannot_be_mounted_fails_the_hook() {
    let variables =
        volumes(json!([{"deviceName": "/dev/xvdb", "sizeGiB": 1, "fileSystem": {"mountPath": "data"}}]));
    let items = [used_by("prod-workers", "p", &template())];
    let response = answer(&request(Hook::GeneratePatches, &json!({}), &variables, &items)).await;
    assert_eq!(response["status"], "Failure");
    assert!(
        response["message"].as_str().unwrap().contains("variable asgDataVolumes: volume /dev/xvdb: "),
        "{response}"
    );
}
