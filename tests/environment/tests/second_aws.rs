//! The real Cluster API Provider AWS and our manager on a second implementation of AWS.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{
    Etcd, Join, KubeletOptions, Kubelets, Look, Management, ManagementOptions, ManagerOptions, Moto, Release,
    RunFolder, Settings, Tools, WorkloadCluster, capa, dynamic,
    road::{aws, control_plane::ControlPlane},
    wait_for_object, wait_gone, wait_until,
};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

const REGION: &str = "eu-west-1";
const IMAGES: [&str; 2] = ["ami-0a1b2c3d4e5f60718", "ami-0b1b2c3d4e5f60718"];
const PATIENCE: Duration = Duration::from_mins(5);

fn say(line: &str) {
    eprintln!("second aws: {line}");
}

#[tokio::test]
#[ignore = "builds Cluster API Provider AWS"]
async fn a_pool_lives_in_a_network_that_capa_made() -> Result<()> {
    let run = Arc::new(RunFolder::new()?);
    let result = live(&run).await;
    if result.is_err() {
        run.keep();
        say(&format!("logs in {}", run.path().display()));
    }
    result
}

async fn live(run: &Arc<RunFolder>) -> Result<()> {
    let tools = tokio::task::spawn_blocking(|| Tools::ready(&say)).await??;
    let for_capa = tools.clone();
    let capa = tokio::task::spawn_blocking(move || capa(&for_capa, &say)).await??;
    let settings = Settings::from_env();
    let etcd = Etcd::start(&tools, run).await?;
    let moto = Moto::start(run).await?;
    moto.seed(REGION, &aws::account()).await?;
    for image in IMAGES {
        moto.seed(REGION, &aws::image(image, tools.kubernetes_version())).await?;
    }
    let release: PathBuf = settings.release.context("no release")?;
    let options = ManagementOptions { release: Some(Release::at(&release)?), ..ManagementOptions::default() };
    let management = Management::start(&tools, run, &etcd, &options).await?;
    aws::install(&management, &tools, &capa).await?;
    let capa = aws::start(&management, &capa, &moto, REGION).await?;
    say("CAPA is ready");
    let ours = ManagerOptions { env: moto.env(REGION), webhooks: true, ..ManagerOptions::default() };
    let program = settings.manager.context("no manager")?;
    let manager = management.plan_manager("infrastructure-asg", &program, &ours).await?.start_ready().await?;

    let variables: BTreeMap<&str, &str> =
        [("AWS_REGION", REGION), ("AWS_NODE_AMI_ID", IMAGES[0]), ("AWS_SSH_KEY_NAME", "default")].into();
    let mut clusterctl = management.clusterctl().runner().clone();
    for (name, value) in variables {
        clusterctl = clusterctl.env(name, value);
    }
    let version = tools.kubernetes_version();
    let generated = clusterctl
        .run([
            "generate",
            "cluster",
            "prod",
            "--infrastructure",
            "asg",
            "--target-namespace",
            "default",
            "--kubernetes-version",
            version,
            "--worker-machine-count",
            "2",
        ])
        .await?;
    management.api().kubectl().feed(["apply", "-f", "-"], &generated).await?;
    let control_plane = ControlPlane::stand_up(&management, &tools, &etcd, "default", "prod").await?;
    say("the control plane stands");
    let cluster = WorkloadCluster::existing(&management, &tools, "default", "prod", true).await?;
    say("the control plane is initialized");
    let options =
        KubeletOptions { join: Join::BootstrapToken, version: version.to_owned(), remove_nodes: true };
    let kubelets = Kubelets::start(&cluster, moto.instances(REGION), options).await?;

    let client = management.api().client().await?;
    let pools = dynamic(&client, "default", "cluster.x-k8s.io", "v1beta2", "MachinePool");
    let own = dynamic(&client, "default", "infrastructure.cluster.x-k8s.io", "v1alpha1", "ASGMachinePool");
    let settled = async |replicas: u64, image: &str| -> Result<()> {
        wait_for_object(&pools, "prod-workers", PATIENCE, |pool| {
            let status = &pool.data["status"];
            let done = status["phase"] == "Running"
                && ["readyReplicas", "upToDateReplicas", "replicas"]
                    .iter()
                    .all(|field| status[*field] == json!(replicas));
            Look::when(done, status.to_string())
        })
        .await?;
        let running = moto.instances(REGION);
        wait_until(PATIENCE, "instances of the pool", || async {
            let nodes = kubelets.nodes();
            let images: Vec<String> = running
                .running()
                .into_iter()
                .filter(|instance| nodes.contains_key(&instance.id))
                .map(|instance| instance.image)
                .collect();
            let done = images.len() as u64 == replicas && images.iter().all(|one| one == image);
            Ok(Look::when(done, format!("{images:?}, refused {:?}", kubelets.refusals())))
        })
        .await
    };
    settled(2, IMAGES[0]).await?;
    say("two nodes");
    let scale = async |replicas: u64| -> Result<()> {
        let patch = json!({"spec": {"replicas": replicas}});
        pools.patch("prod-workers", &PatchParams::default(), &Patch::Merge(patch)).await?;
        settled(replicas, IMAGES[0]).await
    };
    scale(3).await?;
    say("three nodes");
    scale(1).await?;
    say("one node");
    let image = json!({"spec": {"machine": {"image": {"id": IMAGES[1]}}}});
    own.patch("prod-workers", &PatchParams::default(), &Patch::Merge(image)).await?;
    settled(1, IMAGES[1]).await?;
    say("another image");
    say(&format!("corrections: {:?}", moto.corrections().await?));

    let clusters = dynamic(&client, "default", "cluster.x-k8s.io", "v1beta2", "Cluster");
    clusters.delete("prod", &kube::api::DeleteParams::default()).await?;
    wait_gone(&clusters, "prod", Duration::from_mins(10)).await?;
    let left = moto.left(REGION).await?;
    say(&moto.summary()?.to_string());
    let _: Value = json!(moto.corrections().await?);
    say(&format!("corrections: {:?}", moto.corrections().await?));
    ensure!(left.is_empty(), "left in AWS: {left}");
    drop((manager, capa, kubelets));
    control_plane.stop().await?;
    management.stop().await
}
