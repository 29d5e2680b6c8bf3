//! N: the manager is run like every other provider's.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use capasg_e2e::{CLUSTER, Setup, eventually, rule};
use capasg_environment::{Look, ManagerOptions, Runner};
use chrono::Utc;
use k8s_openapi::api::{authorization::v1::SelfSubjectAccessReview, coordination::v1::Lease};
use kube::{Api, ResourceExt as _, api::PostParams};
use serde_json::json;
use tokio::process::Command;

// Rules: N1
#[tokio::test]
async fn flags_and_endpoints_are_those_of_other_providers() -> Result<()> {
    rule("n1-flags", Setup::default(), async |rig| {
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        let program = rig.scenario.environment.settings().manager.clone().context("no manager")?;
        let help = Command::new(&program).args(["manager", "--help"]).output().await?;
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        for flag in [
            "--leader-elect",
            "--namespace",
            "--watch-filter",
            "--health-addr",
            "--diagnostics-address",
            "--webhook-port",
            "--webhook-cert-dir",
            "--sync-period",
            "--feature-gates",
            "--kubeconfig",
            "-v",
        ] {
            ensure!(help.contains(flag), "{flag} is missing:\n{help}");
        }
        let of_pool =
            format!("{{namespace=\"{}\",cluster=\"{CLUSTER}\",pool=\"workers\"}}", rig.scenario.namespace);
        eventually("the metrics of the pool", async || {
            let metrics = rig.metrics().await?;
            let ready = format!("capasg_pool_replicas_ready{of_pool} 1");
            let startups = format!("capasg_pool_node_startups_total{of_pool} 1");
            let missing = [&ready, &startups, "process_resident_memory_bytes"]
                .into_iter()
                .find(|line| !metrics.lines().any(|written| written.starts_with(*line)));
            Ok(Look::when(missing.is_none(), format!("{missing:?} is not in\n{metrics}")))
        })
        .await?;
        for path in ["/healthz", "/readyz"] {
            let answer = rig.health(path).await?;
            ensure!(answer.is_success(), "{path}: {answer:?}");
        }
        // One JSON object a line.
        for line in rig.manager_log().lines() {
            let entry: serde_json::Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            ensure!(entry["timestamp"].is_string() && entry["level"].is_string(), "{line}");
        }
        rig.delete("workers").await?;
        eventually("the metrics of the pool end with it", async || {
            let metrics = rig.metrics().await?;
            Ok(Look::when(!metrics.contains(&rig.scenario.namespace), metrics))
        })
        .await
    })
    .await
}

// Rules: C5, N1
#[tokio::test]
async fn a_watch_filter_selects_labelled_pools() -> Result<()> {
    rule("n1-filter", Setup::default().arg("--watch-filter=blue"), async |rig| {
        rig.apply(&rig.pool("red").replicas(1)).await?;
        let label = json!({"cluster.x-k8s.io/watch-filter": "blue"});
        rig.run(&rig.pool("blue").replicas(1).with("metadata/labels", label), 1).await?;
        let red = rig.pools().get("red").await?;
        ensure!(red.finalizers().is_empty() && red.status.is_none(), "{red:?}");
        ensure!(rig.groups().len() == 1);
        // An ASGMachine may be older than the label of its pool: it is drained and terminated all the same.
        let unlabel = ["label", "asgmachines", "--all", "cluster.x-k8s.io/watch-filter-"];
        rig.scenario.kubectl(&unlabel).await?;
        rig.delete("blue").await
    })
    .await
}

// Rules: N2
#[tokio::test]
async fn the_lease_is_released_on_shutdown() -> Result<()> {
    rule("n2-lease", Setup::default().without_manager(), async |rig| {
        let plan = async |name: &str| {
            let options =
                ManagerOptions { name: name.to_owned(), leader_elect: true, ..ManagerOptions::default() };
            rig.scenario.plan_manager(options).await
        };
        let (one, two) = (plan("n2-one").await?, plan("n2-two").await?);
        let leases: Api<Lease> = Api::namespaced(rig.scenario.client.clone(), one.namespace());
        let lease = async || -> Result<Lease> { Ok(leases.get("controller-leader-election-capasg").await?) };
        let holder = |lease: &Lease| {
            lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default()
        };

        let first = one.start_ready().await?;
        rig.run(&rig.pool("workers").replicas(1), 1).await?;
        ensure!(holder(&lease().await?).starts_with("n2-one"), "{:?}", lease().await?);
        // The second waits, is alive, and does nothing.
        let second = two.start()?;
        eventually("the second is alive", async || {
            let answer = second.health("/healthz").await?;
            Ok(Look::when(answer.is_success(), answer.body))
        })
        .await?;

        let status = first.stop().await?;
        let stopped = Utc::now();
        ensure!(status.success(), "the first ended with {status}");
        let taken = eventually("the second leads", async || {
            let lease = lease().await?;
            Ok(Look::from_option(holder(&lease).starts_with("n2-two").then(|| lease.clone()), holder(&lease)))
        })
        .await?;
        let acquired = taken.spec.and_then(|spec| spec.acquire_time).context("never acquired")?.0.as_second();
        // A lease that was not released holds for 15 s after its last renewal, which is at most 2 s old.
        let waited = acquired - stopped.timestamp();
        ensure!(waited < 10, "the lease was free only after {waited} s");

        rig.scale("workers", 2).await?;
        rig.running("workers", 2).await?;
        ensure!(rig.groups().len() == 1);
        rig.scenario.kubectl(&["delete", "machinepool", "workers", "--wait=false"]).await?;
        rig.gone("workers").await?;
        ensure!(second.stop().await?.success());
        rig.clusters().get(CLUSTER).await?;
        Ok(())
    })
    .await
}

// Rules: K6
#[tokio::test]
async fn a_manager_with_a_namespace_reconciles_only_that() -> Result<()> {
    rule("k6-namespace", Setup::bare().without_manager(), async |rig| {
        let other = rig.scenario.environment.namespace("k6-other").await?;
        let kubectl = rig.scenario.environment.management().api().kubectl();
        let pool = rig.pool("workers").ours().to_string();
        for namespace in [&other, &rig.scenario.namespace] {
            kubectl.feed(["apply", "--filename=-", "--namespace", namespace], &pool).await?;
        }
        let options = ManagerOptions {
            name: "capasg-k6".to_owned(),
            args: vec![format!("--namespace={other}")],
            ..ManagerOptions::default()
        };
        let manager = rig.scenario.environment.plan_manager(options).await?.start_ready().await?;
        let status = async |namespace: &str, name: &str| -> Result<String> {
            let args =
                ["get", "asgmachinepool", name, "--output=jsonpath={.status}", "--namespace", namespace];
            kubectl.run(args).await
        };
        // The second is made after ours: a watch of all namespaces would have shown ours before it.
        kubectl
            .feed(["apply", "--filename=-", "--namespace", &other], &rig.pool("second").ours().to_string())
            .await?;
        for name in ["workers", "second"] {
            eventually("the pools of its namespace are reconciled", async || {
                let status = status(&other, name).await?;
                Ok(Look::when(!status.is_empty(), status))
            })
            .await?;
        }
        let mine = status(&rig.scenario.namespace, "workers").await?;
        ensure!(mine.is_empty(), "{mine}");
        tokio::time::timeout(Duration::from_secs(30), manager.stop()).await??;
        Ok(())
    })
    .await
}

// Rules: N4
#[tokio::test]
async fn metrics_require_a_token_of_a_user_who_may_read_them() -> Result<()> {
    rule("n4-metrics", Setup::bare().without_manager(), async |rig| {
        let options = ManagerOptions {
            name: "capasg-n4".to_owned(),
            args: vec!["--insecure-diagnostics=false".to_owned()],
            ..ManagerOptions::default()
        };
        let manager = rig.scenario.plan_manager(options).await?.start_ready().await?;
        let namespace = &rig.scenario.namespace;
        let kubectl = async |args: &[&str]| {
            rig.scenario.environment.management().api().kubectl().run(args.iter().copied()).await
        };
        // Cluster-scoped, so that its name is that of the namespace.
        let role = format!("{namespace}-reader");
        kubectl(&["create", "clusterrole", &role, "--verb=get", "--non-resource-url=/metrics"]).await?;
        let (to, of) = (format!("--clusterrole={role}"), format!("--serviceaccount={namespace}:reader"));
        kubectl(&["create", "clusterrolebinding", &role, &to, &of]).await?;
        for account in ["reader", "other"] {
            kubectl(&["create", "serviceaccount", account, "--namespace", namespace]).await?;
        }
        let token =
            async |account: &str| kubectl(&["create", "token", account, "--namespace", namespace]).await;
        let server = format!("--server=https://127.0.0.1:{}", manager.diagnostics_port());
        // Without a kubeconfig: only the token identifies the client.
        let read = async |token: &str| {
            let program = Runner::new(rig.scenario.environment.tools().program("kubectl"));
            let token = format!("--token={token}");
            let args = ["get", "--raw=/metrics", "--insecure-skip-tls-verify", &server, &token];
            program.env("KUBECONFIG", "/dev/null").output(args, None).await
        };
        let allowed = read(token("reader").await?.trim()).await?;
        ensure!(allowed.success && allowed.stdout.contains("capasg_leader 1"), "{}", allowed.stderr);
        let forbidden = read(token("other").await?.trim()).await?;
        ensure!(!forbidden.success && forbidden.stderr.contains("Forbidden"), "{}", forbidden.stderr);
        let unknown = read("made-up").await?;
        ensure!(!unknown.success && unknown.stderr.contains("logged in"), "{}", unknown.stderr);
        // Plain HTTP gets no metrics.
        let plain = manager.metrics().await;
        ensure!(
            plain.is_err() || plain.is_ok_and(|text| !text.contains("capasg")),
            "plain HTTP was answered"
        );
        ensure!(manager.stop().await?.success(), "the manager did not stop gracefully");
        kubectl(&["delete", "clusterrolebinding,clusterrole", &role]).await?;
        Ok(())
    })
    .await
}

// Rules: G4
#[tokio::test]
async fn the_rights_are_what_the_manager_needs_and_no_more() -> Result<()> {
    rule("g4-rights", Setup::bare().without_manager(), async |rig| {
        let plan = rig.scenario.plan_manager(ManagerOptions::default()).await?;
        let access = rig.scenario.environment.management().api().access();
        let client = access.as_service_account(plan.namespace(), plan.service_account()).client().await?;
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
        let may = async |verb: &str, group: &str, resource: &str, namespace: &str| -> Result<bool> {
            let (resource, name) = resource.split_once(':').unwrap_or((resource, ""));
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let review = serde_json::from_value(json!({"spec": {"resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": name,
                "namespace": namespace,
            }}}))?;
            let status = reviews.create(&PostParams::default(), &review).await?.status;
            Ok(status.context("a review without an answer")?.allowed)
        };
        let (core, ours) = ("cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io");
        for (verb, group, resource, namespace) in [
            ("list", "", "secrets", ""),
            ("delete", core, "machines", ""),
            ("patch", core, "machinepools", "any"),
            ("patch", ours, "asgmachinepools/status", "any"),
            ("update", ours, "asgmachinepools/finalizers", "any"),
            ("get", "bootstrap.cluster.x-k8s.io", "kubeadmconfigs", "any"),
            ("update", "coordination.k8s.io", "leases:controller-leader-election-capasg", plan.namespace()),
            (
                "patch",
                "apiextensions.k8s.io",
                "customresourcedefinitions/status:asgmachines.infrastructure.cluster.x-k8s.io",
                "",
            ),
            ("patch", ours, "asgmachinepooltemplates", "any"),
        ] {
            ensure!(may(verb, group, resource, namespace).await?, "{verb} {resource} is needed");
        }
        for (verb, group, resource, namespace) in [
            ("create", "", "secrets", ""),
            ("update", "", "secrets", plan.namespace()),
            ("list", "", "pods", ""),
            ("create", ours, "asgmachinepools", "any"),
            ("delete", ours, "asgmachinepools", "any"),
            ("get", ours, "awsmachinepools", "any"),
            ("patch", core, "clusters", "any"),
            ("patch", core, "machinepools/status", "any"),
            ("update", core, "machinepools", "any"),
            ("delete", core, "machinepools", "any"),
            ("create", core, "machines", "any"),
            ("update", "coordination.k8s.io", "leases:another", plan.namespace()),
            ("update", "coordination.k8s.io", "leases:controller-leader-election-capasg", "kube-system"),
            ("update", "apiextensions.k8s.io", "customresourcedefinitions", ""),
            (
                "patch",
                "apiextensions.k8s.io",
                "customresourcedefinitions:asgmachines.infrastructure.cluster.x-k8s.io",
                "",
            ),
            (
                "patch",
                "apiextensions.k8s.io",
                "customresourcedefinitions/status:machines.cluster.x-k8s.io",
                "",
            ),
            ("create", ours, "asgmachinepooltemplates", "any"),
            ("bind", "rbac.authorization.k8s.io", "clusterroles", ""),
        ] {
            ensure!(!may(verb, group, resource, namespace).await?, "{verb} {resource} must not be allowed");
        }
        Ok(())
    })
    .await
}
