//! The sections: each does one thing with kubectl or clusterctl, waits for what must follow, and shows it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{
    Environment, Look, Runner, WorkloadCluster, wait_for_object, wait_gone, wait_until,
};
use capasg_fake_aws::{LogFilter, Scope, ec2::Image};
use chrono::Utc;
use kube::{
    Api,
    api::{DynamicObject, ListParams},
};

use super::{
    objects::{DEADLINE, NAMESPACE, Objects},
    stage::Stage,
    timeline,
};

/// What the sections have in common.
pub struct Steps<'a> {
    environment: &'a Environment,
    objects: Objects<'a>,
    kubectl: &'a Runner,
}

/// The kinds that a pool consists of.
const POOL_KINDS: &str = "machinepools,asgmachinepools,machines,asgmachines";

impl<'a> Steps<'a> {
    /// The workload cluster's name; its pool is called `<cluster>-workers`.
    pub const CLUSTER: &'static str = "demo";
    /// The region of the template's default.
    pub const REGION: &'static str = "eu-west-1";
    const POOL: &'static str = "demo-workers";

    pub async fn new(environment: &'a Environment) -> Result<Self> {
        let objects = Objects::of(environment).await?;
        Ok(Self { environment, kubectl: objects.kubectl, objects })
    }

    pub async fn apply(&self, stage: &mut Stage) -> Result<()> {
        stage.section("A cluster with a pool of three nodes");
        stage.print(
            "The template holds a Cluster, a control plane in memory, and a MachinePool whose machines come from an \
             Auto Scaling group.",
        );
        let version = self.environment.tools().kubernetes_version();
        let generate = [
            "generate",
            "cluster",
            Self::CLUSTER,
            "--infrastructure=asg",
            "--flavor=development",
            &format!("--kubernetes-version={version}"),
            "--worker-machine-count=3",
            &format!("--target-namespace={NAMESPACE}"),
        ];
        let manifest = self.environment.management().clusterctl().runner().run(generate).await?;
        let applied = self.kubectl.feed(["apply", "--filename=-"], &manifest).await?;
        stage.show(&format!("clusterctl {} | kubectl apply -f -", generate.join(" ")), &applied);
        Ok(())
    }

    pub async fn running(&self, stage: &mut Stage, cluster: &WorkloadCluster) -> Result<()> {
        self.wait_running(3).await?;
        stage.reached("MachinePool Running 3/3, every instance has joined as a Node");
        self.show_cluster(stage, cluster).await?;
        let describe = ["describe", "cluster", Self::CLUSTER, "--namespace", NAMESPACE];
        stage.run("clusterctl", self.environment.management().clusterctl().runner(), &describe).await?;
        Ok(())
    }

    pub async fn scale_out(&self, stage: &mut Stage, cluster: &WorkloadCluster) -> Result<()> {
        stage.section("Scale out to five");
        stage.print("One call sets the desired capacity of the group; the new instances join the cluster.");
        self.scale(stage, 5).await?;
        self.wait_running(5).await?;
        stage.reached("MachinePool Running 5/5");
        self.show_cluster(stage, cluster).await
    }

    pub async fn scale_in(&self, stage: &mut Stage, cluster: &WorkloadCluster) -> Result<()> {
        stage.section("Scale in to two");
        stage.print(
            "The group never chooses victims: CAPASG annotates and deletes Machines, core drains their Nodes, and only \
             then each instance is terminated by its ID, with the desired capacity lowered by one.",
        );
        let since = Utc::now();
        self.scale(stage, 2).await?;
        self.wait_running(2).await?;
        stage.reached("MachinePool Running 2/2");
        let timeline = timeline::terminations_since(self.environment, NAMESPACE, Self::REGION, since)?;
        stage.show("(the API server's audit log and the log of AWS, merged)", &timeline);
        self.show_cluster(stage, cluster).await
    }

    pub async fn replace(&self, stage: &mut Stage, cluster: &WorkloadCluster) -> Result<()> {
        stage.section("An instance fails");
        let victim = self.instances().pop_first().context("no instance runs")?;
        stage.print(&format!(
            "{victim} fails in EC2. The group replaces it, and CAPASG deletes its Machine; the Node is deleted with it."
        ));
        ensure!(
            self.environment.cloud().simulator().kill(&Scope::region(Self::REGION), &victim),
            "no {victim}"
        );
        wait_until(DEADLINE, &format!("the Machine of {victim} deleted and another Running"), || async {
            let machines =
                self.api("cluster.x-k8s.io", "v1beta2", "Machine").list(&ListParams::default()).await?;
            let there = machines.iter().any(|machine| provider_id(machine).ends_with(&victim));
            Ok(Look::when(!there && !self.instances().contains(&victim), "its Machine is there"))
        })
        .await?;
        self.wait_running(2).await?;
        stage.reached(&format!("{victim} is replaced"));
        self.show_cluster(stage, cluster).await
    }

    pub async fn rotate(&self, stage: &mut Stage, cluster: &WorkloadCluster) -> Result<()> {
        stage.section("Rotate the bootstrap token");
        stage.print(
            "The bootstrap provider replaces the token every few minutes. New instances need it, running ones do not: \
             the launch template gets a new version, and no instance is replaced.",
        );
        let before = self.instances();
        let version = self.template_version();
        let log = self.environment.cloud().simulator().counts(&LogFilter::default()).last_sequence;
        let (old, new) = cluster.rotate_bootstrap_token(Self::POOL).await?;
        stage.reached(&format!("{old} is replaced by {new}"));
        wait_until(DEADLINE, "a new version of the launch template", || async {
            let now = self.template_version();
            Ok(Look::when(now != version, format!("it is still {now}")))
        })
        .await?;
        self.wait_running(2).await?;
        let ends = LogFilter::region(Self::REGION).since(log).action("TerminateInstanceInAutoScalingGroup");
        let ended = self.environment.cloud().simulator().counts(&ends).calls;
        ensure!(self.instances() == before && ended == 0, "instances were replaced");
        stage.reached(&format!(
            "launch template version {version} -> {}, no instance replaced",
            self.template_version()
        ));
        stage.print("The next instance joins with the new token:");
        self.scale(stage, 3).await?;
        self.wait_running(3).await?;
        stage.reached("MachinePool Running 3/3");
        self.show_cluster(stage, cluster).await
    }

    pub async fn roll(&self, stage: &mut Stage, cluster: &WorkloadCluster) -> Result<()> {
        stage.section("Roll out a new image");
        stage.print(
            "All instances are outdated now. One additional instance joins first; then each outdated one is drained and \
             terminated, so that there are always at least three nodes.",
        );
        let simulator = self.environment.cloud().simulator();
        simulator.put_image(&Scope::region(Self::REGION), Image::new(NEW_IMAGE, "node-next", "x86_64"));
        let (since, before) = (Utc::now(), self.instances());
        let patch = format!(r#"{{"spec":{{"machine":{{"image":{{"id":"{NEW_IMAGE}"}}}}}}}}"#);
        let args =
            ["patch", "asgmachinepool", Self::POOL, "--namespace", NAMESPACE, "--type=merge", "-p", &patch];
        stage.run("kubectl", self.kubectl, &args).await?;
        let own = self.api("infrastructure.cluster.x-k8s.io", "v1alpha1", "ASGMachinePool");
        wait_for_object(&own, Self::POOL, DEADLINE, |pool| {
            let rollout = &pool.data["status"]["rollout"];
            Look::when(rollout["updated"].as_i64() > Some(0), format!("status.rollout is {rollout}"))
        })
        .await?;
        let rollout = "--output=jsonpath={.status.rollout}";
        let args = ["get", "asgmachinepool", Self::POOL, "--namespace", NAMESPACE, rollout];
        stage.run("kubectl", self.kubectl, &args).await?;
        wait_until(DEADLINE, "all instances of the new image", || async {
            let left = self.instances().intersection(&before).count();
            Ok(Look::when(left == 0, format!("{left} outdated instances run")))
        })
        .await?;
        self.wait_running(3).await?;
        stage.reached("all three are replaced, MachinePool Running 3/3");
        let timeline = timeline::terminations_since(self.environment, NAMESPACE, Self::REGION, since)?;
        stage.show("(the API server's audit log and the log of AWS, merged)", &timeline);
        self.show_cluster(stage, cluster).await
    }

    pub async fn delete(&self, stage: &mut Stage) -> Result<()> {
        stage.section("Delete the cluster");
        let pool = ["delete", "cluster", Self::CLUSTER, "--namespace", NAMESPACE, "--wait=false"];
        stage.run("kubectl", self.kubectl, &pool).await?;
        wait_gone(&self.api("cluster.x-k8s.io", "v1beta2", "Cluster"), Self::CLUSTER, DEADLINE).await?;
        stage.reached("the Cluster and everything in it are deleted");
        let kinds = format!("clusters,{POOL_KINDS}");
        let left = self.kubectl.output(["get", &kinds, "--namespace", NAMESPACE], None).await?;
        stage.show(&format!("kubectl get {kinds} --namespace {NAMESPACE}"), &(left.stdout + &left.stderr));
        let left = self.environment.cloud().simulator().leftovers(None);
        ensure!(left.is_empty(), "AWS resources remain: {}", left.join(", "));
        stage.print("No AWS resources remain.");
        Ok(())
    }

    async fn scale(&self, stage: &Stage, replicas: usize) -> Result<()> {
        let replicas = format!("--replicas={replicas}");
        let args = ["scale", "machinepool", Self::POOL, "--namespace", NAMESPACE, &replicas];
        stage.run("kubectl", self.kubectl, &args).await?;
        Ok(())
    }

    /// Waits until core calls the pool Running with exactly this many Nodes, and each has its Machine.
    async fn wait_running(&self, replicas: usize) -> Result<()> {
        let pools = self.api("cluster.x-k8s.io", "v1beta2", "MachinePool");
        let own = self.api("infrastructure.cluster.x-k8s.io", "v1alpha1", "ASGMachinePool");
        let machines = self.api("infrastructure.cluster.x-k8s.io", "v1alpha1", "ASGMachine");
        wait_for_object(&pools, Self::POOL, DEADLINE, |pool| {
            let (spec, status) = (&pool.data["spec"], &pool.data["status"]);
            let nodes = status["nodeRefs"].as_array().map_or(0, Vec::len);
            let running = status["phase"] == "Running"
                && spec["replicas"] == replicas
                && status["replicas"] == replicas
                && status["readyReplicas"] == replicas
                && nodes == replicas;
            let (phase, count, ready) = (&status["phase"], &status["replicas"], &status["readyReplicas"]);
            Look::when(running, format!("phase {phase}, {count} replicas, {nodes} nodes, {ready} ready"))
        })
        .await?;
        wait_for_object(&own, Self::POOL, DEADLINE, |pool| {
            let status = &pool.data["status"];
            let settled = ["replicas", "readyReplicas", "upToDateReplicas"]
                .iter()
                .all(|name| status[*name] == replicas);
            Look::when(settled, format!("the ASGMachinePool's status is {status}"))
        })
        .await?;
        wait_until(DEADLINE, &format!("{replicas} ASGMachines"), || async {
            let there = machines.list(&ListParams::default()).await?.items.len();
            Ok(Look::when(there == replicas, format!("there are {there}")))
        })
        .await
    }

    async fn show_cluster(&self, stage: &Stage, cluster: &WorkloadCluster) -> Result<()> {
        stage.run("kubectl", self.kubectl, &["get", POOL_KINDS, "--namespace", NAMESPACE]).await?;
        let nodes = ["get", "nodes", "--output", NODE_COLUMNS];
        stage.run(&format!("kubectl --kubeconfig {}.yaml", Self::CLUSTER), cluster.kubectl(), &nodes).await?;
        Ok(())
    }

    fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        self.objects.api(group, version, kind)
    }

    /// The running instances of the region.
    fn instances(&self) -> BTreeSet<String> {
        let running = self.environment.cloud().instances(Self::REGION).running();
        running.into_iter().map(|instance| instance.id).collect()
    }

    /// The version of the launch template that the group is pinned to.
    fn template_version(&self) -> String {
        let dumps = self.environment.cloud().simulator().dump(Some(Self::REGION));
        let mut groups = dumps.into_iter().flat_map(|dump| dump.groups);
        groups.next().map(|group| group.template.1).unwrap_or_default()
    }
}

/// What the pool is rolled to.
const NEW_IMAGE: &str = "ami-0f1e2d3c";

/// The in-memory API cannot print tables.
const NODE_COLUMNS: &str = "custom-columns=NAME:.metadata.name,PROVIDER ID:.spec.providerID,\
    READY:.status.conditions[?(@.type==\"Ready\")].status,VERSION:.status.nodeInfo.kubeletVersion";

fn provider_id(machine: &DynamicObject) -> &str {
    machine.data["spec"]["providerID"].as_str().unwrap_or_default()
}
