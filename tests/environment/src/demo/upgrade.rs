//! A safe upgrade: the Runtime Extension holds it until the image exists, a window is open and a user approves, and verifies
//! the nodes at its end.

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{
    Environment, Kubelets, Look, Manager, ManagerOptions, Runner, free_port, wait_for_object, wait_gone,
    wait_until,
};
use capasg_fake_aws::Scope;
use chrono::{Datelike as _, Utc};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    cluster::control_plane,
    objects::{DEADLINE, NAMESPACE, Objects},
    stage::Stage,
    steps::Steps,
};

/// The version before that of the tools; the simulated AWS has its image.
pub const BEFORE: &str = "v1.35.4";
/// An image that does not exist, and the one of the new version.
const NO_IMAGE: &str = "ami-0fffffff";
const IMAGE: &str = "ami-0a1b2c3d";
const NODES: usize = 2;

/// The environment with the Runtime Extension.
pub struct Upgrade<'a> {
    environment: &'a Environment,
    objects: Objects<'a>,
    version: String,
    /// The one replica.
    pub extension: Manager,
}

impl<'a> Upgrade<'a> {
    /// Starts the extension and registers it for the namespace of the demo.
    pub async fn start(environment: &'a Environment, stage: &mut Stage) -> Result<Self> {
        stage.section("The Runtime Extension");
        stage.print(
            "Core calls the extension at points of a Cluster's lifecycle. Its ExtensionConfig requires an approval of \
             each upgrade.",
        );
        let objects = Objects::of(environment).await?;
        let port = free_port()?;
        let args = vec![
            format!("--core-version={}", environment.tools().cluster_api_version()),
            "--aws-api-share=0.1".to_owned(),
        ];
        let options = ManagerOptions { name: "extension".to_owned(), args, ..ManagerOptions::default() };
        let extension = environment.plan_extension(options, port).await?.start_ready().await?;
        let label = "asg.infrastructure.cluster.x-k8s.io/runtime-extension=enabled";
        stage.run("kubectl", objects.kubectl, &["label", "namespace", NAMESPACE, label]).await?;
        let configs = configs(&objects.client);
        configs.create(&PostParams::default(), &config(environment, port)?).await?;
        wait_for_object(&configs, "asg", DEADLINE, |config| {
            let handlers = config.data["status"]["handlers"].as_array().map_or(0, Vec::len);
            Look::when(handlers > 0, "its handlers are not discovered")
        })
        .await?;
        stage.reached("core has discovered the handlers of ExtensionConfig asg");
        let version = environment.tools().kubernetes_version().to_owned();
        Ok(Self { environment, objects, version, extension })
    }

    /// Tells the story.
    pub async fn show(&self, stage: &mut Stage, keep: bool) -> Result<Kubelets> {
        self.set_image(NO_IMAGE);
        let kubelets = self.create(stage).await?;
        self.request(stage).await?;
        self.release(stage).await?;
        self.verify(stage).await?;
        if keep {
            stage.section("The environment keeps running");
        } else {
            self.delete(stage).await?;
        }
        Ok(kubelets)
    }

    async fn create(&self, stage: &mut Stage) -> Result<Kubelets> {
        stage.section(&format!("A cluster of {BEFORE} with a pool of {NODES} nodes"));
        let generate = [
            "generate",
            "cluster",
            Steps::CLUSTER,
            "--infrastructure=asg",
            "--flavor=development-topology",
            &format!("--kubernetes-version={BEFORE}"),
            &format!("--worker-machine-count={NODES}"),
            &format!("--target-namespace={NAMESPACE}"),
        ];
        let runner = self.environment.management().clusterctl().runner();
        let manifest = runner.run(generate).await?;
        // A Cluster is rejected until the controller of its class has observed the class.
        let applied = wait_until(DEADLINE, "the class and the Cluster are applied", || async {
            self.objects.kubectl.feed(["apply", "--filename=-"], &manifest).await.map(Look::Done)
        })
        .await?;
        stage.show(&format!("clusterctl {} | kubectl apply -f -", generate.join(" ")), &applied);
        let (_, kubelets) = control_plane(self.environment, stage).await?;
        self.nodes_run(BEFORE).await?;
        stage.reached(&format!("{NODES} nodes run {BEFORE}"));
        self.show_machines(stage).await?;
        Ok(kubelets)
    }

    async fn request(&self, stage: &mut Stage) -> Result<()> {
        stage.section(&format!("Request an upgrade to {}", self.version));
        stage.print(
            "There is no image of the new version in the region yet, no maintenance window is open, and the upgrade \
             is not approved.",
        );
        // A month that is not near.
        let month = (Utc::now().month() + 5) % 12 + 1;
        let window = format!("[{{schedule: '0 0 1 {month} *', durationSeconds: 900}}]");
        self.annotate(stage, &format!("maintenance-windows={window}")).await?;
        let patch = format!(r#"{{"spec":{{"topology":{{"version":"{}"}}}}}}"#, self.version);
        let args = ["patch", "cluster", Steps::CLUSTER, "--type=merge", "-p", &patch];
        self.objects.run(stage, &args).await?;
        for words in ["images of ASGMachinePool", "no maintenance window is open", "is not approved"] {
            self.says(words).await?;
        }
        stage.reached("the upgrade waits for all three");
        self.why(stage).await
    }

    async fn release(&self, stage: &mut Stage) -> Result<()> {
        stage.section("Publish the image, open a window, approve");
        self.set_image(IMAGE);
        self.no_longer_says("images of ASGMachinePool").await?;
        stage.reached(&format!("the image of {} exists: the upgrade waits for the rest", self.version));
        self.annotate(stage, "maintenance-windows-").await?;
        self.no_longer_says("no maintenance window is open").await?;
        stage.reached("a window is open");
        self.annotate(stage, &format!("upgrade-approved={}", self.version)).await?;
        let planes = self.objects.api("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane");
        wait_until(DEADLINE, "the control plane is upgraded", || async {
            let planes = planes.list(&ListParams::default()).await?;
            let begun = planes.iter().any(|plane| plane.data["spec"]["version"] == self.version.as_str());
            Ok(Look::when(begun, "its version is the old one"))
        })
        .await?;
        stage.reached("the upgrade has begun");
        Ok(())
    }

    async fn verify(&self, stage: &mut Stage) -> Result<()> {
        stage.section("The upgrade is verified");
        stage.print(
            "The control plane is upgraded first, then the pool: one additional instance joins, and each outdated one is drained \
             and terminated. After each step the extension compares the versions that nodes report.",
        );
        self.nodes_run(&self.version).await?;
        let words = "all nodes of the control plane and of ASGMachinePools report";
        wait_until(DEADLINE, words, || async {
            let events = self.events().await?;
            Ok(Look::when(events.contains(words), events))
        })
        .await?;
        stage.reached(&format!("all nodes report {}", self.version));
        self.show_machines(stage).await?;
        stage.show("(the events of the extension)", &self.events().await?);
        Ok(())
    }

    async fn delete(&self, stage: &mut Stage) -> Result<()> {
        stage.section("Delete the cluster, then the ExtensionConfig");
        self.objects.run(stage, &["delete", "cluster", Steps::CLUSTER, "--wait=false"]).await?;
        wait_gone(&self.objects.api("cluster.x-k8s.io", "v1beta2", "Cluster"), Steps::CLUSTER, DEADLINE)
            .await?;
        stage.run("kubectl", self.objects.kubectl, &["delete", "extensionconfig", "asg"]).await?;
        let left = self.environment.cloud().simulator().leftovers(None);
        ensure!(left.is_empty(), "AWS resources remain: {}", left.join(", "));
        stage.reached("no AWS resources remain");
        Ok(())
    }

    /// The parameter of the new version names an image.
    fn set_image(&self, image: &str) {
        let name = format!("/images/node/{}", self.version);
        self.environment.cloud().simulator().put_parameter(&Scope::region(Steps::REGION), &name, image);
    }

    async fn annotate(&self, stage: &Stage, annotation: &str) -> Result<()> {
        let annotation = format!("asg.infrastructure.cluster.x-k8s.io/{annotation}");
        self.objects.run(stage, &["annotate", "cluster", Steps::CLUSTER, &annotation]).await.map(drop)
    }

    /// The message of the condition `TopologyReconciled`.
    async fn message(&self) -> Result<String> {
        let clusters = self.objects.api("cluster.x-k8s.io", "v1beta2", "Cluster");
        let cluster = clusters.get(Steps::CLUSTER).await?;
        let conditions = cluster.data["status"]["conditions"].as_array().into_iter().flatten();
        let mut found = conditions.filter(|condition| condition["type"] == "TopologyReconciled");
        Ok(found.next().and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned())
    }

    async fn says(&self, words: &str) -> Result<()> {
        wait_until(DEADLINE, &format!("TopologyReconciled: {words}"), || async {
            let message = self.message().await?;
            Ok(Look::when(message.contains(words), message))
        })
        .await
    }

    async fn no_longer_says(&self, words: &str) -> Result<()> {
        wait_until(DEADLINE, &format!("TopologyReconciled without: {words}"), || async {
            let message = self.message().await?;
            Ok(Look::when(!message.contains(words), message))
        })
        .await
    }

    /// Waits until each node of the pool reports a version.
    async fn nodes_run(&self, version: &str) -> Result<()> {
        let machines = self.objects.api("cluster.x-k8s.io", "v1beta2", "Machine");
        wait_until(DEADLINE, &format!("all nodes run {version}"), || async {
            let machines = machines.list(&ListParams::default()).await?;
            let of_pool = machines
                .iter()
                .filter(|machine| machine.data["spec"]["infrastructureRef"]["kind"] == "ASGMachine");
            let versions: Vec<&Value> =
                of_pool.map(|machine| &machine.data["status"]["nodeInfo"]["kubeletVersion"]).collect();
            let all = versions.len() == NODES && versions.iter().all(|one| *one == version);
            Ok(Look::when(all, format!("{versions:?}")))
        })
        .await
    }

    /// The events of the extension, oldest first.
    async fn events(&self) -> Result<String> {
        let columns = "custom-columns=HOOK:.action,REASON:.reason,NOTE:.note";
        let args = [
            "get",
            "events.events.k8s.io",
            "--field-selector=reportingController=capasg-extension",
            "--sort-by=.metadata.creationTimestamp",
            "--output",
            columns,
        ];
        self.objects.read(&args).await
    }

    async fn why(&self, stage: &Stage) -> Result<()> {
        let program = self.environment.settings().manager.clone().context("no program")?;
        let kubeconfig = self.environment.management().api().kubeconfig().display().to_string();
        let capasg = Runner::new(program);
        let args = ["why", Steps::CLUSTER, "--namespace", NAMESPACE];
        let with = [&args[..], &["--kubeconfig", &kubeconfig]].concat();
        let output = capasg.run(&with).await?;
        stage.show(&format!("capasg {}", args.join(" ")), &output);
        Ok(())
    }

    async fn show_machines(&self, stage: &Stage) -> Result<()> {
        let columns = "custom-columns=NAME:.metadata.name,NODE VERSION:.status.nodeInfo.kubeletVersion";
        self.objects.run(stage, &["get", "machines", "--output", columns]).await.map(drop)
    }
}

fn configs(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// The shipped `ExtensionConfig`, with the URL of the replica and the settings of the demo.
fn config(environment: &Environment, port: u16) -> Result<DynamicObject> {
    let mut config = environment.extension_config(port)?;
    config["spec"]["settings"] = json!({"requireApproval": "true"});
    Ok(serde_json::from_value(config)?)
}
