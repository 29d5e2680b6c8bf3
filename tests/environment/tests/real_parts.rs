//! The environment does what its users rely on.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{
    Instance, Instances, Join, KubeletOptions, Kubelets, Look, ManagementOptions, ManagerOptions, PATIENCE,
    Scenario, dynamic, scenario, wait_for_object, wait_gone, wait_until,
};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::{Api, api::ListParams};
use serde_json::json;

/// A cloud that runs what a test says.
#[derive(Default)]
struct Machines(Mutex<Vec<Instance>>);

impl Machines {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Instance>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn run(&self, id: &str, user_data: &[u8]) {
        self.all().push(Instance {
            id: id.to_owned(),
            zone: "eu-west-1a".to_owned(),
            instance_type: "m7i.large".to_owned(),
            image: "ami-0a1b2c3d".to_owned(),
            version: None,
            hostname: format!("{id}.internal"),
            address: String::new(),
            user_data: user_data.to_vec(),
        });
    }

    fn end(&self, id: &str) {
        self.all().retain(|instance| instance.id != id);
    }
}

impl Instances for Machines {
    fn running(&self) -> Vec<Instance> {
        self.all().clone()
    }
}

fn options(scenario: &Scenario, join: Join) -> KubeletOptions {
    let version = scenario.environment.tools().kubernetes_version().to_owned();
    KubeletOptions { join, version, remove_nodes: false }
}

#[tokio::test]
async fn an_in_memory_cluster_comes_up_and_nodes_join_with_its_bootstrap_data() -> Result<()> {
    scenario("in-memory", async |scenario| {
        let cluster = scenario.in_memory_cluster("one").await?;

        // The pool's own kind is not needed for bootstrap data.
        let pool = json!({
            "apiVersion": "v1", "kind": "List", "items": [
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
                "metadata": {"name": "workers"},
                "spec": {"clusterName": "one", "replicas": 1, "template": {"spec": {
                    "clusterName": "one", "version": "v1.36.3",
                    "bootstrap": {"configRef": {
                        "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "workers",
                    }},
                    "infrastructureRef": {
                        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": "workers",
                    },
                }}},
            },
            {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
                "metadata": {"name": "workers"},
                "spec": {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [
                    {"name": "cloud-provider", "value": "external"},
                ]}}},
            }],
        });
        scenario.apply(&pool.to_string()).await?;
        let pools = dynamic(&scenario.client, &scenario.namespace, "cluster.x-k8s.io", "v1beta2", "MachinePool");
        let secret = wait_for_object(&pools, "workers", PATIENCE, |pool| {
            let name = pool.data["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"].as_str();
            Look::from_option(name.map(str::to_owned), "no bootstrap data")
        })
        .await?;
        let secrets: Api<Secret> = Api::namespaced(scenario.client.clone(), &scenario.namespace);
        let data = secrets.get(&secret).await?.data.context("an empty Secret")?["value"].0.clone();

        let machines = Arc::new(Machines::default());
        let kubelets =
            Kubelets::start(&cluster, Arc::clone(&machines) as _, options(scenario, Join::BootstrapToken)).await?;
        let nodes: Api<Node> = Api::all(cluster.client().await?);

        machines.run("i-1", &data);
        let node = wait_for_object(&nodes, "i-1.internal", PATIENCE, |node| Look::Done(node.clone())).await?;
        let spec = node.spec.context("a Node without spec")?;
        ensure!(spec.provider_id.as_deref() == Some("aws:///eu-west-1a/i-1"));
        let told = String::from_utf8_lossy(&data).contains("node.cluster.x-k8s.io/uninitialized");
        ensure!(spec.taints.is_some_and(|taints| !taints.is_empty()) == told);

        // A token that the cluster does not know lets nobody in, and other clusters' machines are no business of it.
        let text = String::from_utf8(data)?;
        let token = text.lines().find_map(|line| line.trim().strip_prefix("token: ")).context("no token")?;
        machines.run("i-2", text.replace(token, "zzzzzz.0123456789abcdef").as_bytes());
        machines.run("i-3", text.replace(cluster.endpoint(), "10.0.0.1:6443").as_bytes());
        wait_until(PATIENCE, "a refusal", || async {
            let refusals = kubelets.refusals();
            Ok(Look::when(refusals.get("i-2").is_some_and(|why| why.contains("has no")), format!("{refusals:?}")))
        })
        .await?;
        ensure!(!kubelets.refusals().contains_key("i-3"));
        ensure!(kubelets.nodes().into_keys().collect::<Vec<_>>() == ["i-1"]);

        let described = scenario.clusterctl(&["describe", "cluster", "one"]).await?;
        ensure!(described.contains("KubeadmControlPlane") && described.contains("one-control-plane"), "{described}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_real_workload_api_guards_pods_from_eviction() -> Result<()> {
    scenario("real-workload", async |scenario| {
        let api = scenario.environment.workload_api().await?;
        let cluster = scenario.stub_cluster("two", &api).await?;
        let machines = Arc::new(Machines::default());
        let join = options(scenario, Join::Marker("join two".to_owned()));
        let kubelets = Kubelets::start(&cluster, Arc::clone(&machines) as _, join).await?;
        machines.run("i-1", b"please join two");
        machines.run("i-2", b"please join two");

        let workload = json!({"apiVersion": "v1", "kind": "List", "items": [
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "replicas": 2,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "web", "image": "web"}]},
                    },
                },
            },
            {
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
            },
        ]});
        cluster.kubectl().feed(["apply", "-f", "-"], &workload.to_string()).await?;
        let pods: Api<Pod> = Api::namespaced(cluster.client().await?, "default");
        let victim = wait_until(PATIENCE, "two pods run, one on each node", || async {
            let all = pods.list(&ListParams::default().labels("app=web")).await?.items;
            let placed: Vec<_> = all
                .iter()
                .filter(|pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running"))
                .filter_map(|pod| Some((pod.metadata.name.clone()?, pod.spec.as_ref()?.node_name.clone()?)))
                .collect();
            let found = placed.iter().find(|(_, node)| node == "i-1.internal").map(|(pod, _)| pod.clone());
            Ok(Look::from_option(found.filter(|_| placed.len() == 2), format!("{placed:?}")))
        })
        .await?;

        let drain = ["drain", "i-1.internal", "--ignore-daemonsets", "--timeout=3s"];
        let refused = cluster.kubectl().output(drain, None).await?;
        ensure!(!refused.success && refused.stderr.contains("disruption budget"), "{refused:?}");
        pods.get(&victim).await?;

        cluster.kubectl().run(["delete", "poddisruptionbudget", "web", "--namespace=default"]).await?;
        cluster.kubectl().run(["drain", "i-1.internal", "--ignore-daemonsets", "--timeout=60s"]).await?;
        wait_gone(&pods, &victim, Duration::from_secs(10)).await?;
        let evictions: Vec<_> = api.writes()?.into_iter().filter(|write| write.subresource == "eviction").collect();
        ensure!(evictions.iter().any(|write| write.code == 429) && evictions.iter().any(|write| write.code == 201));

        // Nodes of machines that are gone stay: nobody but the cloud provider's controller removes them.
        machines.end("i-2");
        wait_until(PATIENCE, "the kubelet is gone", || async {
            Ok(Look::when(!kubelets.nodes().contains_key("i-2"), "it is there"))
        })
        .await?;
        let nodes: Api<Node> = Api::all(cluster.client().await?);
        nodes.get("i-2.internal").await?;
        api.stop().await
    })
    .await
}

#[tokio::test]
async fn our_manager_runs_as_its_deployment_says_and_can_be_ended_in_every_way() -> Result<()> {
    scenario("manager", async |scenario| {
        let plan = scenario.plan_manager(ManagerOptions::default()).await?;
        ensure!(plan.namespace() == "capasg-system" && plan.service_account() == "capasg-manager");
        let manager = plan.start_ready().await?;
        ensure!(manager.health("/healthz").await?.is_success());
        let first = manager.process().pid();
        let killed = manager.kill().await?;
        ensure!(killed.code().is_none(), "{killed}");

        let manager = plan.start_ready().await?;
        ensure!(manager.process().pid() != first);
        let options = ManagerOptions { name: "replica".to_owned(), ..ManagerOptions::default() };
        let second = scenario.plan_manager(options).await?.start_ready().await?;
        ensure!(second.process().log() != manager.process().log());
        let stopped = manager.stop().await?;
        ensure!(stopped.success(), "{stopped}");
        let stopped = second.stop().await?;
        ensure!(stopped.success(), "{stopped}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_second_management_cluster_has_the_same_providers() -> Result<()> {
    scenario("second", async |scenario| {
        let options = ManagementOptions { name: "target".to_owned(), ..ManagementOptions::default() };
        let target = scenario.environment.second_management(options).await?;
        let providers =
            ["get", "providers", "--all-namespaces", "--output=jsonpath={.items[*].metadata.name}"];
        let there = target.api().kubectl().run(providers).await?;
        ensure!(there == scenario.environment.management().api().kubectl().run(providers).await?, "{there}");
        ensure!(there.contains("infrastructure-asg"), "{there}");

        // Webhooks answer, also after the second pass that an upgrade needs.
        for _ in 0..2 {
            let refused = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": {"name": "one", "namespace": "default"},
                "spec": {"topology": {"classRef": {"name": "absent"}, "version": "nonsense"}},
            });
            let apply = ["create", "--filename=-"];
            let output = target.api().kubectl().output(apply, Some(&refused.to_string())).await?;
            ensure!(output.stderr.contains("must be a valid semantic version"), "{}", output.stderr);
            target.reconcile_webhooks().await?;
        }
        target.stop().await
    })
    .await
}
