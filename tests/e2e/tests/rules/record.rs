//! Records what a release writes, for the proof that later ones leave it alone: docs/contributors/testing.md tells how.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context as _, Result};
use capasg_e2e::{CLUSTER, Pool, Rig, Setup, rule};
use capasg_fake_aws::{LogEntry, LogFilter, Outcome, Service, Tree};
use serde_json::{Value, json};

/// The folder that recordings are written to.
const FOLDER: &str = "CAPASG_RECORDINGS";

/// Everything that says something about a pool, owners before what they own.
const KINDS: [&str; 7] =
    ["clusters", "kubeadmconfigs", "secrets", "machinepools", "asgmachinepools", "asgmachines", "machines"];

/// A pool that sets what has a say in the launch template and the group.
fn full(rig: &Rig<'_>) -> Pool {
    rig.pool("full")
        .replicas(3)
        .with("spec/subnets", json!([{"id": "subnet-0a1b2c3d"}, {"id": "subnet-0b1c2d3e"}]))
        .with("spec/minSize", 1)
        .with("spec/maxSize", 9)
        .with("spec/instanceTypes", json!([{"type": "m7i.large"}, {"type": "m6i.large"}, {"type": "m5.large"}]))
        .with(
            "spec/instancesDistribution",
            json!({"onDemandBaseCapacity": 1, "onDemandPercentageAboveBaseCapacity": 50}),
        )
        .with("spec/tags", json!({"team": "night shift", "cost-center": "42"}))
        .with("spec/machine/image", json!({"ssmParameter": "/images/node/v{version}"}))
        .with("spec/machine/iamInstanceProfile", "prod-nodes")
        .with("spec/machine/sshKeyName", "ops")
        .with("spec/machine/securityGroups", json!([{"id": "sg-0a1b2c3d"}]))
        .with("spec/machine/rootVolume", json!({"sizeGiB": 80, "iops": 4000, "throughputMiBps": 250}))
        .with("spec/machine/dataVolumes", json!([{"deviceName": "/dev/xvdb", "sizeGiB": 20}]))
        .with("spec/machine/metadataOptions", json!({"httpPutResponseHopLimit": 2}))
        .with("spec/drain", json!({"timeoutSeconds": 600}))
        .with(
            "spec/group",
            json!({"healthCheckGracePeriodSeconds": 120, "defaultCooldownSeconds": 60, "defaultInstanceWarmupSeconds": 90}),
        )
}

#[tokio::test]
#[ignore = "writes files; run by hand for a release"]
async fn record_pools_with_a_secret() -> Result<()> {
    rule("record-secret", Setup::default(), async |rig| {
        rig.run(&rig.pool("minimal").replicas(2), 2).await?;
        rig.guard("profiles", &json!({"instanceProfiles": ["*"]})).await?;
        rig.run(&full(rig), 3).await?;
        write(rig, "secret").await
    })
    .await
}

#[tokio::test]
#[ignore = "writes files; run by hand for a release"]
async fn record_a_pool_of_kubeadm() -> Result<()> {
    rule("record-kubeadm", Setup::in_memory(), async |rig| {
        rig.run(&rig.pool("workers").replicas(2), 2).await?;
        write(rig, "kubeadm").await
    })
    .await
}

async fn write(rig: &Rig<'_>, name: &str) -> Result<()> {
    let folder =
        std::env::var_os(FOLDER).map(PathBuf::from).with_context(|| format!("{FOLDER} is not set"))?;
    // Everything as it stands once the controllers have nothing more to do.
    rig.stop_manager().await?;
    let mut objects = Vec::new();
    for kind in KINDS {
        let list = rig.scenario.kubectl(&["get", kind, "--output=json"]).await?;
        let mut list: Value = serde_json::from_str(&list)?;
        objects.extend(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default());
    }
    // Nothing of the control plane, whose Secrets hold keys.
    let names: BTreeSet<String> = objects.iter().filter_map(boots_from).collect();
    objects.retain(|object| match object["kind"].as_str() {
        Some("Secret" | "KubeadmConfig") => {
            object["metadata"]["name"].as_str().is_some_and(|name| names.contains(name))
        }
        Some("Machine") => object["metadata"]["labels"]["cluster.x-k8s.io/pool-name"].is_string(),
        _ => true,
    });
    for object in &mut objects {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("managedFields");
        }
    }
    let log = LogFilter::region(&rig.scenario.region).mutations();
    let calls: Vec<Value> = rig
        .scenario
        .simulator()
        .log(&log)
        .iter()
        .filter(|entry| entry.outcome == Outcome::Ok)
        .map(|entry| call(rig, entry))
        .collect::<Result<_>>()?;
    let cloud = rig.scenario.simulator().dump(Some(&rig.scenario.region));
    let recording = json!({
        "cluster": CLUSTER,
        "namespace": rig.scenario.namespace,
        "region": rig.scenario.region,
        "calls": calls,
        "cloud": cloud.first().context("an empty cloud")?,
        "objects": objects,
    });
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{name}.json")), serde_json::to_string_pretty(&recording)? + "\n")?;
    Ok(())
}

/// The Secret that a MachinePool boots from.
fn boots_from(object: &Value) -> Option<String> {
    let of_pool = object["kind"] == "MachinePool";
    let name = object.pointer("/spec/template/spec/bootstrap/dataSecretName").filter(|_| of_pool)?;
    name.as_str().map(str::to_owned)
}

/// A logged call with the user data that the log leaves out.
fn call(rig: &Rig<'_>, entry: &LogEntry) -> Result<Value> {
    let mut params = entry.params.clone();
    if params.pointer("/LaunchTemplateData/UserData").is_some() {
        let description = params["VersionDescription"].as_str().context("a version without description")?;
        params["LaunchTemplateData"]["UserData"] = json!(user_data(rig, description)?);
    }
    Ok(json!({"time": entry.time, "service": entry.service, "action": entry.action, "params": params}))
}

/// The user data of the version with this description.
fn user_data(rig: &Rig<'_>, description: &str) -> Result<String> {
    for template in rig.templates() {
        let params = Tree::new().with("LaunchTemplateId", template.id);
        let reply = rig
            .scenario
            .simulator()
            .call(&rig.scenario.scope(), Service::Ec2, "DescribeLaunchTemplateVersions", params)
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        for version in reply.items_of("LaunchTemplateVersions") {
            if version.text_of("VersionDescription") == Some(description) {
                let data = version.at("LaunchTemplateData.UserData").and_then(Tree::text);
                return data.map(str::to_owned).context("a version without user data");
            }
        }
    }
    anyhow::bail!("the version {description} is gone")
}
