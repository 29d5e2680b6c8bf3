//! K12, K14: `clusterctl upgrade` from the release before, under pools that it left running.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, anyhow, ensure};
use capasg_api::{ASGMachine, ASGMachinePool};
use capasg_e2e::{DEADLINE, Rig, Setup, eventually, rule, text};
use capasg_environment::{
    ApiServer, Cloud, Join, KubeletOptions, Kubelets, Look, Management, ManagementOptions, Manager,
    ManagerOptions, Release, WorkloadCluster, dynamic, wait_for_object,
};
use capasg_fake_aws::{LogFilter, Recording};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// The release before this one, as users installed it.
const BEFORE: &str = "v0.3.0";
/// What it left.
const RECORDING: &str = include_str!("../../../fixtures/recordings/v0.3.0/secret.json");

/// A repository with both releases, for a management cluster that begins with the first.
fn repository(rig: &Rig<'_>) -> Result<Release> {
    let environment = &rig.scenario.environment;
    let today = environment.settings().release.clone().context("no release")?;
    let folder = environment.run().path().join("upgrade/infrastructure-asg");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/infrastructure-asg");
    for from in [fixtures.join(BEFORE), today] {
        let to = folder.join(from.file_name().context("a release without version")?);
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Release::at(&folder.join(BEFORE))
}

/// Puts the recorded objects in as they were, but for what an API server gives itself.
async fn put_objects(client: &Client, recording: &Recording, objects: &[Value]) -> Result<()> {
    let mut uids: Vec<(String, String)> = Vec::new();
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        // The Cluster is there, and core makes the Machines.
        if ["Cluster", "Machine"].contains(&kind) {
            continue;
        }
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &recording.namespace, &resource);
        let mut fresh = object.clone();
        let meta = fresh["metadata"].as_object_mut().context("no metadata")?;
        for given in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            meta.remove(given);
        }
        if let Some(owners) = meta.get_mut("ownerReferences").and_then(Value::as_array_mut) {
            owners.retain_mut(|owner| match uids.iter().find(|(old, _)| owner["uid"] == *old) {
                Some((_, new)) => {
                    owner["uid"] = json!(new);
                    true
                }
                None => false,
            });
        }
        let made = api.create(&PostParams::default(), &serde_json::from_value(fresh)?).await?;
        let old = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        uids.push((old, made.metadata.uid.context("no uid")?));
        if kind.starts_with("ASG") {
            let name = made.metadata.name.as_deref().unwrap_or_default();
            let status = Patch::Merge(json!({"status": object["status"]}));
            api.patch_status(name, &PatchParams::default(), &status).await?;
        }
    }
    Ok(())
}

struct Upgraded {
    cloud: Cloud,
    recording: Recording,
    client: Client,
    _workload: ApiServer,
}

impl Upgraded {
    fn calls(&self, mark: u64) -> Vec<String> {
        let log = LogFilter::region(&self.recording.region).since(mark).mutations();
        self.cloud.simulator().log(&log).into_iter().map(|call| call.action).collect()
    }

    fn mark(&self) -> u64 {
        self.cloud.simulator().counts(&LogFilter::default()).last_sequence
    }

    /// Waits until core finds a pool running with so many nodes.
    async fn running(&self, name: &str, replicas: usize) -> Result<()> {
        let owners =
            dynamic(&self.client, &self.recording.namespace, "cluster.x-k8s.io", "v1beta2", "MachinePool");
        wait_for_object(&owners, name, DEADLINE, |owner| {
            let nodes = owner.data.pointer("/status/nodeRefs").and_then(Value::as_array).map_or(0, Vec::len);
            let phase = text(owner, "/status/phase");
            Look::when(phase == "Running" && nodes == replicas, format!("{phase}, {nodes} nodes"))
        })
        .await
    }

    fn pools(&self) -> Api<ASGMachinePool> {
        Api::namespaced(self.client.clone(), &self.recording.namespace)
    }
}

/// Waits until the manager has looked at each pool, twice on average.
async fn looked(manager: &Manager, pools: usize) -> Result<()> {
    eventually("it has looked at the pools", async || {
        let metrics = manager.metrics().await?;
        let lines = metrics.lines().filter(|line| line.starts_with("capasg_reconciles_total{"));
        let count: f64 = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        Ok(Look::when(count >= f64::from(u32::try_from(2 * pools)?), metrics))
    })
    .await
}

async fn bring_up(rig: &Rig<'_>) -> Result<(Upgraded, Management, Kubelets)> {
    let environment = &rig.scenario.environment;
    let recording: Recording = serde_json::from_str(RECORDING)?;
    let cloud = Cloud::start(1, Cloud::quick()).await?;
    recording.replay(cloud.simulator()).map_err(|error| anyhow!("{error}"))?;
    let options = ManagementOptions {
        name: "upgraded".to_owned(),
        release: Some(repository(rig)?),
        ..ManagementOptions::default()
    };
    let management = environment.second_management(options).await?;
    let client = management.api().client().await?;

    // The cluster of the recording, on an API server of its own: its nodes are called like those of other tests.
    let workload = environment.workload_api().await?;
    let tools = environment.tools();
    management.api().kubectl().run(["create", "namespace", &recording.namespace]).await?;
    let cluster =
        WorkloadCluster::stub(&management, tools, &recording.namespace, &recording.cluster, &workload)
            .await?;
    let options = KubeletOptions {
        join: Join::Marker(format!("canary-of-{}-0451", recording.namespace)),
        version: tools.kubernetes_version().to_owned(),
        remove_nodes: false,
    };
    let kubelets = Kubelets::start(&cluster, cloud.instances(&recording.region), options).await?;
    eventually("the recorded instances are there", async || {
        let missing = recording.missing(cloud.simulator());
        Ok(Look::when(missing.is_empty(), format!("{missing:?}")))
    })
    .await?;
    let names = recording.names(cloud.simulator());
    let objects: Vec<Value> = recording.objects.iter().map(|object| names.put_into(object)).collect();
    put_objects(&client, &recording, &objects).await?;
    Ok((Upgraded { cloud, recording, client, _workload: workload }, management, kubelets))
}

// Rules: K12, K14
#[tokio::test]
async fn pools_of_the_previous_release_keep_running_through_an_upgrade() -> Result<()> {
    rule("k12-upgrade", Setup::bare().without_manager(), async |rig| {
        let (upgraded, management, _kubelets) = bring_up(rig).await?;
        for (name, replicas) in [("minimal", 2), ("full", 3)] {
            upgraded.running(name, replicas).await.context("under the definitions of the release before")?;
        }
        let dump = || upgraded.cloud.simulator().dump(Some(&upgraded.recording.region));
        let (mark, before) = (upgraded.mark(), dump());

        let today = environment_version(rig)?;
        let plan = management.clusterctl().runner().run(["upgrade", "plan"]).await?;
        let line =
            plan.lines().find(|line| line.starts_with("infrastructure-asg")).context("not in the plan")?;
        ensure!(line.contains(BEFORE) && line.contains(&today), "{line}");
        let ours = format!("capasg-system/asg:{today}");
        management.clusterctl().runner().run(["upgrade", "apply", "--infrastructure", &ours]).await?;
        management.reconcile_webhooks().await?;

        let program = rig.scenario.environment.settings().manager.clone().context("no manager")?;
        let options = ManagerOptions {
            leader_elect: true,
            webhooks: true,
            env: upgraded.cloud.env(),
            ..ManagerOptions::default()
        };
        let manager = management.plan_manager("infrastructure-asg", &program, &options).await?;
        let manager = manager.start_ready().await?;
        looked(&manager, 2).await?;
        for (name, replicas) in [("minimal", 2), ("full", 3)] {
            upgraded.running(name, replicas).await?;
            let status = upgraded.pools().get(name).await?.status.unwrap_or_default();
            ensure!(usize::try_from(status.replicas)? == replicas, "{name}: {status:?}");
            ensure!(
                status.up_to_date_replicas == status.replicas,
                "{name}: outdated by our upgrade: {status:?}"
            );
        }
        let calls = upgraded.calls(mark);
        ensure!(calls.is_empty(), "the upgrade asked AWS for {calls:?}");
        ensure!(dump() == before, "the cloud differs");

        // It is this release's from here on: one more, from the same version of the template.
        let owners = dynamic(
            &upgraded.client,
            &upgraded.recording.namespace,
            "cluster.x-k8s.io",
            "v1beta2",
            "MachinePool",
        );
        let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
        owners.patch("minimal", &PatchParams::default(), &patch).await?;
        upgraded.running("minimal", 3).await?;
        let made = upgraded.calls(mark);
        let templates = ["CreateLaunchTemplate", "CreateLaunchTemplateVersion", "CreateAutoScalingGroup"];
        ensure!(!made.iter().any(|call| templates.contains(&call.as_str())), "{made:?}");

        // The provider goes, pools stay as they are.
        tokio::time::timeout(Duration::from_mins(1), manager.stop()).await??;
        let mark = upgraded.mark();
        management.clusterctl().runner().run(["delete", "--infrastructure", "asg"]).await?;
        let machines: Api<ASGMachine> =
            Api::namespaced(upgraded.client.clone(), &upgraded.recording.namespace);
        ensure!(machines.list(&kube::api::ListParams::default()).await?.items.len() == 6);
        ensure!(upgraded.calls(mark).is_empty());
        management.stop().await
    })
    .await
}

/// The version of the release that the tests install.
fn environment_version(rig: &Rig<'_>) -> Result<String> {
    let release = rig.scenario.environment.settings().release.clone().context("no release")?;
    Ok(Release::at(&release)?.version().to_owned())
}
