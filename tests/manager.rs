//! The manager as a process beside a real API server, with exactly the rights that its release ships.

use std::{fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use capasg_environment::{
    ApiServer, Etcd, Look, MANAGEMENT_CONTROLLERS, Process, Program, RunFolder, Tools, free_port, loopback,
    wait_until,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{task::spawn_blocking, time::Instant};

const NAMESPACE: &str = "capasg-system";
const LEASE: &str = "controller-leader-election-capasg";
/// For what follows within a second or two on an idle machine.
const SOON: Duration = Duration::from_mins(2);
const CORE: [&str; 3] =
    ["clusters.cluster.x-k8s.io", "machinepools.cluster.x-k8s.io", "machines.cluster.x-k8s.io"];

/// An API server with our release installed, all but the definitions.
struct Cluster {
    tools: Tools,
    run: Arc<RunFolder>,
    api: ApiServer,
    _etcd: Etcd,
}

/// A running manager and where it listens.
struct Replica {
    process: Process,
    health: u16,
    metrics: u16,
}

impl Cluster {
    async fn start() -> Result<Self> {
        Self::installed("config/default", &[]).await
    }

    /// With what a kustomization installs, in these namespaces besides its own.
    async fn installed(kustomization: &str, namespaces: &[&str]) -> Result<Self> {
        capasg_environment::install_crypto_provider();
        let tools = spawn_blocking(|| Tools::ready(&|line| eprintln!("{line}"))).await??;
        let run = Arc::new(RunFolder::new()?);
        let etcd = Etcd::start(&tools, &run).await?;
        let api = ApiServer::start(&tools, &run, &etcd, "manager", MANAGEMENT_CONTROLLERS).await?;
        for namespace in namespaces {
            api.kubectl().run(["create", "namespace", namespace]).await?;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kustomization);
        let rendered = api.kubectl().run(["kustomize", &folder.to_string_lossy()]).await?;
        let rights: Vec<Value> = serde_saphyr::from_multiple::<Value>(&rendered)?
            .into_iter()
            .filter(|object| {
                let left = ["CustomResourceDefinition", "Deployment", "Certificate", "Issuer"];
                !left.iter().any(|kind| object["kind"] == *kind)
            })
            .collect();
        let cluster = Self { tools, run, api, _etcd: etcd };
        cluster.apply(&rights).await?;
        Ok(cluster)
    }

    async fn apply(&self, objects: &[Value]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.api.kubectl().feed(["apply", "--server-side", "-f", "-"], &list.to_string()).await?;
        Ok(())
    }

    /// Our definitions, as they are in the tree.
    fn own_definitions() -> Result<Vec<Value>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd/bases");
        fs::read_dir(folder)?
            .map(|entry| Ok(serde_saphyr::from_str(&fs::read_to_string(entry?.path())?)?))
            .collect()
    }

    /// The definitions of core Cluster API that we need, without its conversion webhook, behind which nothing runs.
    fn core_definitions(&self) -> Result<Vec<Value>> {
        let manifest = fs::read_to_string(self.tools.components("cluster-api"))?;
        let mut definitions = Vec::new();
        for mut object in serde_saphyr::from_multiple::<Value>(&manifest)? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if object["kind"] == "CustomResourceDefinition" && CORE.contains(&name) {
                object["spec"]["conversion"] = json!({"strategy": "None"});
                definitions.push(object);
            }
        }
        ensure!(definitions.len() == CORE.len(), "the manifest of core has other definitions");
        Ok(definitions)
    }

    /// Starts a manager under the shipped service account.
    fn manager(&self, name: &str, flags: &[&str]) -> Result<Replica> {
        let kubeconfig = self
            .api
            .access()
            .as_service_account(NAMESPACE, "capasg-manager")
            .write(&self.run.path().join(format!("{name}.yaml")))?;
        let (health, metrics) = (free_port()?, free_port()?);
        let process = Program::new(name, env!("CARGO_BIN_EXE_capasg"))
            .arg("manager")
            .flag("--kubeconfig", &kubeconfig)
            .flag("--health-addr", format!("127.0.0.1:{health}"))
            .flag("--diagnostics-address", format!("127.0.0.1:{metrics}"))
            .args(flags)
            .env("POD_NAME", name)
            .env("POD_NAMESPACE", NAMESPACE)
            // Never used: no pool asks for anything.
            .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
            .start(&self.run)?;
        Ok(Replica { process, health, metrics })
    }

    async fn leases(&self) -> Result<Api<Lease>> {
        Ok(Api::namespaced(self.api.client().await?, NAMESPACE))
    }

    async fn holder(&self) -> Result<Option<String>> {
        let lease = self.leases().await?.get_opt(LEASE).await?;
        Ok(lease.and_then(|lease| lease.spec?.holder_identity))
    }

    /// Waits until the holder's identity begins with `name`.
    async fn held_by(&self, name: &str) -> Result<()> {
        wait_until(SOON, &format!("the lease held by {name}"), || async {
            let holder = self.holder().await?.unwrap_or_default();
            Ok(Look::when(holder.starts_with(&format!("{name}_")), holder))
        })
        .await
    }
}

impl Replica {
    async fn ready(&self) -> Result<()> {
        wait_until(SOON, "ready", || async {
            self.process.ensure_running()?;
            let answer = loopback::get(self.health, "/readyz").await?;
            Ok(Look::when(answer.is_success(), answer.body))
        })
        .await
        .map_err(|error| self.process.failure(&format!("{error:#}")))
    }

    async fn metric(&self, name: &str) -> Result<String> {
        let text = loopback::get(self.metrics, "/metrics").await?.body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(str::to_owned).with_context(|| format!("{name} is not in\n{text}"))
    }

    fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.process.log())?)
    }
}

// Rules: N5
#[tokio::test]
async fn the_manager_starts_without_definitions_and_reports_which_are_missing() -> Result<()> {
    let cluster = Cluster::start().await?;
    let manager = cluster.manager("early", &["--insecure-diagnostics"])?;
    let missing = wait_until(SOON, "an answer on readiness", || async {
        let answer = loopback::get(manager.health, "/readyz").await?;
        let looked = answer.body.contains(CORE[0]);
        Ok(if looked { Look::Done(answer) } else { Look::Not(answer.body) })
    })
    .await?;
    assert_eq!(missing.status, 503);
    for name in CORE.iter().chain(&["asgmachines.infrastructure.cluster.x-k8s.io"]) {
        assert!(missing.body.contains(&format!("{name}: is not installed")), "{}", missing.body);
    }
    assert!(loopback::get(manager.health, "/healthz").await?.is_success());

    cluster.apply(&Cluster::own_definitions()?).await?;
    wait_until(SOON, "only core's definitions missing", || async {
        let body = loopback::get(manager.health, "/readyz").await?.body;
        Ok(Look::when(!body.contains("asgmachine") && body.contains(CORE[2]), body))
    })
    .await?;
    cluster.apply(&cluster.core_definitions()?).await?;
    manager.ready().await?;
    // The caches fill under the shipped rights: a right that is missing would show here.
    wait_until(SOON, "the controllers running", || async {
        Ok(Look::when(manager.log()?.contains("caches synced"), manager.log()?))
    })
    .await?;
    let log = manager.log()?;
    assert!(!log.contains("forbidden"), "{log}");
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        assert!(line["level"].is_string() && line["timestamp"].is_string(), "{line}");
    }
    assert_eq!(manager.metric("capasg_leader").await?, "1");
    assert!(manager.metric("process_resident_memory_bytes").await?.parse::<u64>()? > 0);

    let status = manager.process.stop(SOON).await?;
    assert_eq!(status.code(), Some(0), "{}", manager.log()?);
    Ok(())
}

/// The rights of an installation for one namespace suffice for it, and end there.
#[tokio::test]
async fn a_manager_of_one_namespace_needs_a_role_there_and_reads_nothing_elsewhere() -> Result<()> {
    let cluster = Cluster::installed("config/namespaced/manager", &["clusters", "others"]).await?;
    cluster.apply(&Cluster::own_definitions()?).await?;
    cluster.apply(&cluster.core_definitions()?).await?;
    let kubectl = async |args: &[&str]| cluster.api.kubectl().run(args.iter().copied()).await;
    kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]).await?;
    let flags = ["--insecure-diagnostics", "--leader-elect", "--namespace=clusters"];
    let manager = cluster.manager("namespaced", &flags)?;
    manager.ready().await?;
    wait_until(SOON, "the controllers running", || async {
        manager.process.ensure_running()?;
        let log = manager.log()?;
        Ok(Look::when(log.contains("caches synced"), log))
    })
    .await?;
    let mut pool = capasg_test_objects::minimal_pool();
    pool["metadata"] = json!({
        "name": "a", "namespace": "clusters", "labels": {"cluster.x-k8s.io/cluster-name": "a"},
    });
    cluster.apply(&[pool]).await?;
    let condition =
        ["get", "asgmachinepools/a", "--namespace=clusters", "--output=jsonpath={.status.conditions}"];
    wait_until(SOON, "the pool reconciled", || async {
        let found = kubectl(&condition).await?;
        Ok(Look::when(found.contains("Ready"), found))
    })
    .await?;
    let log = manager.log()?;
    assert!(!log.contains("orbidden"), "{log}");
    assert_eq!(manager.process.stop(SOON).await?.code(), Some(0), "{}", manager.log()?);

    let account = format!("--as=system:serviceaccount:{NAMESPACE}:capasg-manager");
    for (verb, resource) in [
        ("get", "secrets"),
        ("list", "secrets"),
        ("patch", "asgmachinepools.infrastructure.cluster.x-k8s.io"),
        ("delete", "machines.cluster.x-k8s.io"),
        ("create", "events.events.k8s.io"),
    ] {
        for (namespace, expected) in [("clusters", "yes"), ("others", "no"), ("kube-system", "no")] {
            let namespace = format!("--namespace={namespace}");
            // `no` is an exit code as well.
            let can = kubectl(&["auth", "can-i", verb, resource, &account, &namespace]).await;
            let can = can.unwrap_or_else(|error| format!("{error:#}"));
            let is = if expected == "yes" { can.trim() == "yes" } else { can.contains("no") };
            assert!(is, "{verb} {resource} {namespace}: {can}");
        }
    }
    Ok(())
}

// Rules: N2
#[tokio::test]
async fn one_replica_leads_and_hands_over() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.apply(&Cluster::own_definitions()?).await?;
    cluster.apply(&cluster.core_definitions()?).await?;
    let flags = [
        "--insecure-diagnostics",
        "--leader-elect",
        "--leader-elect-lease-duration=8s",
        "--leader-elect-renew-deadline=5s",
        "--leader-elect-retry-period=1s",
    ];
    let first = cluster.manager("first", &flags)?;
    cluster.held_by("first").await?;
    let second = cluster.manager("second", &flags)?;
    first.ready().await?;
    second.ready().await?;
    assert_eq!(first.metric("capasg_leader").await?, "1");
    assert_eq!(second.metric("capasg_leader").await?, "0");
    assert!(!second.log()?.contains("caches synced"), "a standby does not act");

    // SIGTERM: the lease is released, so the other need not wait until it is over.
    let start = Instant::now();
    let status = first.process.stop(SOON).await?;
    assert_eq!(status.code(), Some(0), "{}", first.log()?);
    assert!(first.log()?.contains("released the lease"), "{}", first.log()?);
    cluster.held_by("second").await?;
    assert!(start.elapsed() < Duration::from_secs(8), "took over after {:?}", start.elapsed());

    // SIGKILL: the other waits one lease duration, and not less.
    let third = cluster.manager("third", &flags)?;
    third.ready().await?;
    let before = cluster.leases().await?.get(LEASE).await?;
    second.process.kill().await?;
    cluster.held_by("third").await?;
    let after = cluster.leases().await?.get(LEASE).await?;
    let times = |lease: &Lease| lease.spec.clone().unwrap_or_default();
    let renewed = times(&before).renew_time.context("a renewed lease")?.0;
    let acquired = times(&after).acquire_time.context("an acquired lease")?.0;
    let waited = acquired.duration_since(renewed);
    assert!(waited.as_secs_f64() >= 8.0, "took over after {waited:?}");
    assert_eq!(times(&after).lease_transitions, Some(2));

    // Somebody else takes the lease: whoever had it ends at once, with an error.
    let taken = json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 60}});
    cluster.leases().await?.patch(LEASE, &PatchParams::default(), &Patch::Merge(&taken)).await?;
    let status = tokio::time::timeout(SOON, third.process.exited()).await??;
    assert_eq!(status.code(), Some(1), "{}", third.log()?);
    assert!(third.log()?.contains("lost the leader lease"), "{}", third.log()?);
    Ok(())
}

/// A definition of ours with an older version that differs in its name alone, and the version that is written.
fn with_older_version(mut definition: Value, storage: &str) -> Result<Value> {
    let versions = definition["spec"]["versions"].as_array_mut().context("no versions")?;
    let mut older = versions.first().cloned().context("no version")?;
    older["name"] = json!(OLDER);
    versions.push(older);
    for version in versions {
        version["storage"] = json!(version["name"] == storage);
    }
    Ok(definition)
}

/// The made-up version before ours.
const OLDER: &str = "v1alpha0";

// Rules: K14
#[tokio::test]
async fn objects_of_an_older_version_are_migrated_so_that_it_can_be_removed() -> Result<()> {
    /// More than a page.
    const POOLS: usize = 501;
    let cluster = Cluster::start().await?;
    let mut shipped = Cluster::own_definitions()?;
    shipped.extend(cluster.core_definitions()?);
    let pools = "asgmachinepools.infrastructure.cluster.x-k8s.io";
    let at = shipped.iter().position(|one| one["metadata"]["name"] == pools).context("no definition")?;
    let definition = shipped.remove(at);
    cluster.apply(&shipped).await?;
    cluster.apply(&[with_older_version(definition.clone(), OLDER)?]).await?;
    let kubectl = async |args: &[&str]| cluster.api.kubectl().run(args.iter().copied()).await;
    kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]).await?;
    let objects: Vec<Value> = (0..POOLS)
        .map(|number| {
            let mut pool = capasg_test_objects::minimal_pool();
            pool["metadata"] = json!({"name": format!("pool-{number}"), "namespace": "default"});
            pool
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    cluster.api.kubectl().feed(["create", "-f", "-"], &list).await?;

    // The release that writes the new version still serves the old one, and cannot do without it.
    cluster.apply(&[with_older_version(definition.clone(), "v1alpha1")?]).await?;
    let stored = ["get", "customresourcedefinition", pools, "--output=jsonpath={.status.storedVersions}"];
    assert_eq!(kubectl(&stored).await?, r#"["v1alpha0","v1alpha1"]"#);
    let refused =
        cluster.apply(std::slice::from_ref(&definition)).await.err().context("it went")?.to_string();
    assert!(refused.contains("status.storedVersions"), "{refused}");

    // A manager that looks at no pool: what it writes is the migration's.
    let flags = ["--watch-filter=nobody", "--insecure-diagnostics"];
    let manager = cluster.manager("migrating", &flags)?;
    manager.ready().await?;
    wait_until(Duration::from_mins(5), "the old version given up", || async {
        manager.process.ensure_running()?;
        let stored = kubectl(&stored).await?;
        Ok(Look::when(stored == r#"["v1alpha1"]"#, stored))
    })
    .await
    .map_err(|error| manager.process.failure(&format!("{error:#}")))?;
    let user = format!("system:serviceaccount:{NAMESPACE}:capasg-manager");
    let written = || -> Result<usize> {
        let writes = cluster.api.writes()?;
        Ok(writes.iter().filter(|write| write.user == user && write.resource == "asgmachinepools").count())
    };
    assert_eq!(written()?, POOLS);
    assert!(manager.log()?.contains("all objects are stored in the storage version"), "{}", manager.log()?);
    assert_eq!(manager.process.stop(SOON).await?.code(), Some(0));

    // Now it can go, and nothing is lost by it.
    cluster.apply(&[definition]).await?;
    let names = wait_until(SOON, "all pools in the new version alone", || async {
        let names = kubectl(&["get", pools, "--namespace=default", "--output=name"]).await?;
        Ok(Look::when(names.lines().count() == POOLS, names))
    });
    names.await?;

    // The next process has nothing to do.
    let manager = cluster.manager("idle", &flags)?;
    manager.ready().await?;
    wait_until(SOON, "the controllers running", || async {
        let log = manager.log()?;
        Ok(Look::when(log.contains("caches synced"), log))
    })
    .await?;
    assert_eq!(manager.process.stop(SOON).await?.code(), Some(0));
    assert_eq!(written()?, POOLS);
    assert!(!manager.log()?.contains("rewriting"), "{}", manager.log()?);
    Ok(())
}
