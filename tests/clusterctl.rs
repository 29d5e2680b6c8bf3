//! The release in the hands of the real clusterctl: installed, moved to another namespace, upgraded and deleted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use capasg_environment::{
    ApiServer, Clusterctl, Etcd, Look, MANAGEMENT_CONTROLLERS, Process, Program, Release, RunFolder, Tools,
    add_on_programs, free_port, loopback, sibling_release, wait_until,
};
use serde_json::Value;
use tokio::task::spawn_blocking;

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// A later version of the same series.
const NEXT: &str =
    concat!("v", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"), ".999");
const NAMESPACE: &str = "capasg-system";
const OURS: &str = "cluster.x-k8s.io/provider=infrastructure-asg";
/// The label of the Runtime Extension.
const EXTENSION: &str = "runtime-extension-asg";
/// The label of the Helm add-on provider.
const ADDONS: &str = "addon-asg-helm";
const ROLES: &str = "clusterroles,clusterrolebindings";
/// The name of the Lease of Cluster API Add-on Provider for Helm.
const LEASE_OF_CAAPH: &str = "controller-leader-election-caaph";
/// How many kinds are ours.
const SHIPPED_DEFINITIONS: usize = 5;
/// The release before this one.
const BEFORE: &str = "v0.3.0";
/// Every kind that a release of ours has had, but namespaces and definitions.
const KINDS: &str = "deployments,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,\
                     validatingwebhookconfigurations,mutatingwebhookconfigurations,certificates,issuers,configmaps,\
                     networkpolicies,poddisruptionbudgets,validatingadmissionpolicies,\
                     validatingadmissionpolicybindings";

/// What earlier releases installed.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/infrastructure-asg")
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Adds the next release to the repository, whose role has another name: after an upgrade the old role must not stay behind
/// with its rights.
fn next_release(release: &Path, role: &str, renamed: &str) -> Result<()> {
    let next = release.with_file_name(NEXT);
    copy_folder(release, &next)?;
    for entry in fs::read_dir(next)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        fs::write(path, text.replace(role, renamed))?;
    }
    Ok(())
}

/// An API server that clusterctl can install into, and a repository with our release.
struct Cluster {
    clusterctl: Clusterctl,
    api: ApiServer,
    run: Arc<RunFolder>,
    release: PathBuf,
    tools: Tools,
    _etcd: Etcd,
}

impl Cluster {
    async fn start() -> Result<Self> {
        capasg_environment::install_crypto_provider();
        let tools = spawn_blocking(|| Tools::ready(&|line| eprintln!("{line}"))).await??;
        let run = Arc::new(RunFolder::new()?);
        let release = run.path().join("release/infrastructure-asg").join(VERSION);
        let rendered = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/release"))
            .arg(run.path().join("release"))
            .args([VERSION, &format!("ghcr.io/capasg/cluster-api-provider-asg:{VERSION}")])
            .output()?;
        ensure!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
        copy_folder(&fixtures().join(BEFORE), &release.with_file_name(BEFORE))?;
        let etcd = Etcd::start(&tools, &run).await?;
        let api = ApiServer::start(&tools, &run, &etcd, "clusterctl", MANAGEMENT_CONTROLLERS).await?;
        for definition in tools.cert_manager_definitions() {
            api.kubectl().run(["create", "-f", &definition.to_string_lossy()]).await?;
        }
        // kubectl fails at a definition that has no conditions yet.
        wait_until(Duration::from_mins(3), "the definitions are served", || async {
            let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=10s"];
            api.kubectl().run(wait).await.map(|_| Look::Done(()))
        })
        .await?;
        let folder = run.path().join("clusterctl");
        fs::create_dir_all(&folder)?;
        let variables = BTreeMap::new();
        let clusterctl =
            Clusterctl::new(&tools, &folder, api.kubeconfig(), Some(Release::at(&release)?), &variables)?;
        Ok(Self { clusterctl, api, run, release, tools, _etcd: etcd })
    }

    /// Installs core and our provider, and nothing else.
    async fn init(&self, more: &[&str]) -> Result<()> {
        self.init_version(VERSION, more).await
    }

    async fn init_version(&self, version: &str, more: &[&str]) -> Result<()> {
        // clusterctl tries cert-manager in a namespace of its own, deletes that without waiting, and hangs for minutes
        // when it meets the last one still going.
        wait_until(Duration::from_mins(3), "the namespace of clusterctl's trial is gone", || async {
            let trial = ["get", "namespace", "cert-manager-test", "--ignore-not-found", "--output=name"];
            Ok(Look::when(self.kubectl(&trial).await?.is_empty(), "it is still there"))
        })
        .await?;
        let ours = format!("asg:{version}");
        let args = ["init", "--bootstrap", "-", "--control-plane", "-", "--infrastructure", &ours];
        self.clusterctl.runner().run(args.iter().chain(more)).await.map(drop)
    }

    /// clusterctl with an installation's namespace in the variable that names follow.
    async fn clusterctl_in(&self, namespace: &str, args: &[&str]) -> Result<String> {
        self.clusterctl.runner().clone().env("CAPASG_NAMESPACE", namespace).run(args).await
    }

    /// Waits until nothing labelled ours is left but what `stays`.
    async fn left(&self, kinds: &str, stays: &BTreeSet<String>) -> Result<()> {
        wait_until(Duration::from_mins(3), "nothing of ours left", || async {
            let left = self.named(kinds).await?;
            Ok(Look::when(left == *stays, format!("{left:?}")))
        })
        .await
    }

    async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.api.kubectl().run(args).await
    }

    /// Our objects of some kinds, as `kind/name`.
    async fn named(&self, kinds: &str) -> Result<BTreeSet<String>> {
        self.labeled(kinds, OURS).await
    }

    async fn labeled(&self, kinds: &str, selector: &str) -> Result<BTreeSet<String>> {
        let names = self
            .kubectl(&["get", kinds, "--all-namespaces", "--selector", selector, "--output=name"])
            .await?;
        Ok(names.lines().map(|name| name.replace(".rbac.authorization.k8s.io", "")).collect())
    }

    /// Checks that every namespaced object of ours is in this namespace.
    async fn all_in(&self, namespace: &str) -> Result<()> {
        let kinds = "deployments,services,serviceaccounts,roles,rolebindings,certificates,issuers";
        let path = "--output=jsonpath={.items[*].metadata.namespace}";
        let found = self.kubectl(&["get", kinds, "--all-namespaces", "--selector", OURS, path]).await?;
        assert_eq!(found, [namespace; 7].join(" "));
        Ok(())
    }

    /// What clusterctl would install.
    async fn generated(&self, more: &[&str]) -> Result<Vec<Value>> {
        let ours = format!("asg:{VERSION}");
        let args = ["generate", "provider", "--infrastructure", &ours];
        let text = self.clusterctl.runner().run(args.iter().chain(more)).await?;
        Ok(serde_saphyr::from_multiple(&text)?)
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What a set of objects is called, as `kubectl get --output=name` does.
fn names_of(objects: &[Value]) -> BTreeSet<String> {
    let name = |object: &Value| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let kind = text("/kind").to_lowercase();
        let kind =
            if ["", "rbac.authorization.k8s.io"].contains(&group) { kind } else { format!("{kind}.{group}") };
        format!("{kind}/{}", text("/metadata/name"))
    };
    objects.iter().map(name).collect()
}

// Rules: K1, K2, K12, K14
#[tokio::test]
async fn an_upgrade_leaves_nothing_of_the_previous_release() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.init_version(BEFORE, &[]).await?;
    let inventory = async || {
        let provider = "providers.clusterctl.cluster.x-k8s.io";
        let output = "--output=jsonpath={.type} {.version}";
        cluster.kubectl(&["get", provider, "infrastructure-asg", "--namespace", NAMESPACE, output]).await
    };
    assert_eq!(inventory().await?, format!("InfrastructureProvider {BEFORE}"));
    // A pool of that release, as users have it.
    let recording = fs::read_to_string(fixtures().join("../recordings").join(BEFORE).join("secret.json"))?;
    let mut recording: Value = serde_json::from_str(&recording)?;
    let namespace = recording["namespace"].as_str().context("no namespace")?.to_owned();
    cluster.kubectl(&["create", "namespace", &namespace]).await?;
    let mut before = BTreeMap::new();
    for object in recording["objects"].as_array_mut().into_iter().flatten() {
        if object["kind"] == "ASGMachinePool" || object["kind"] == "ASGMachine" {
            for member in ["uid", "resourceVersion", "ownerReferences"] {
                object["metadata"].as_object_mut().context("no metadata")?.remove(member);
            }
            cluster.api.kubectl().feed(["create", "--filename=-"], &object.to_string()).await?;
            before.insert(object["metadata"]["name"].to_string(), object["spec"].clone());
        }
    }

    let plan = cluster.clusterctl.runner().run(["upgrade", "plan"]).await?;
    let line = plan.lines().find(|line| line.starts_with("infrastructure-asg")).context("not in the plan")?;
    assert!(line.contains(BEFORE) && line.contains(VERSION), "{line}");
    cluster.clusterctl.runner().run(["upgrade", "apply", "--contract", "v1beta2"]).await?;
    assert_eq!(inventory().await?, format!("InfrastructureProvider {VERSION}"));
    let mut shipped = cluster.generated(&[]).await?;
    shipped.retain(|object| object["kind"] != "Namespace" && object["kind"] != "CustomResourceDefinition");
    assert_eq!(cluster.named(KINDS).await?, names_of(&shipped));
    let image = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    let deployment = ["get", "deployment", "capasg-controller-manager", "--namespace", NAMESPACE, image];
    assert!(cluster.kubectl(&deployment).await?.ends_with(VERSION));

    // Pools are as they were, and what they say still fits the definitions (K14).
    for kind in ["asgmachinepools", "asgmachines"] {
        let list = cluster.kubectl(&["get", kind, "--namespace", &namespace, "--output=json"]).await?;
        let list: Value = serde_json::from_str(&list)?;
        for object in list["items"].as_array().into_iter().flatten() {
            let name = object["metadata"]["name"].to_string();
            assert_eq!(before.remove(&name).as_ref(), Some(&object["spec"]), "{name}");
        }
    }
    assert_eq!(before, BTreeMap::new());
    let stored = "--output=jsonpath={.status.storedVersions}";
    for definition in cluster.named("customresourcedefinitions").await? {
        assert_eq!(cluster.kubectl(&["get", &definition, stored]).await?, r#"["v1alpha1"]"#, "{definition}");
    }
    Ok(())
}

// Rules: K12
#[tokio::test]
async fn an_installation_is_upgraded_and_deleted_completely() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.init(&[]).await?;
    assert_eq!(
        cluster.named(ROLES).await?,
        set(&["clusterrole/capasg-system-manager", "clusterrolebinding/capasg-system-manager"])
    );

    next_release(&cluster.release, "capasg-system}-manager", "capasg-system}-controllers")?;
    let ours = format!("{NAMESPACE}/asg:{NEXT}");
    cluster.clusterctl.runner().run(["upgrade", "apply", "--infrastructure", &ours]).await?;
    assert_eq!(
        cluster.named(ROLES).await?,
        set(&["clusterrole/capasg-system-controllers", "clusterrolebinding/capasg-system-controllers"])
    );

    // Pools outlive their provider, unless one says otherwise.
    let definitions = cluster.named("customresourcedefinitions").await?;
    assert_eq!(definitions.len(), SHIPPED_DEFINITIONS, "{definitions:?}");
    cluster.clusterctl.runner().run(["delete", "--infrastructure", "asg"]).await?;
    cluster.left(KINDS, &BTreeSet::new()).await?;
    assert_eq!(cluster.named("customresourcedefinitions").await?, definitions);
    assert_eq!(cluster.named("namespaces").await?, set(&["namespace/capasg-system"]));

    cluster.init(&[]).await?;
    let everything = ["delete", "--infrastructure", "asg", "--include-crd", "--include-namespace"];
    cluster.clusterctl.runner().run(everything).await?;
    cluster.left(&format!("{KINDS},customresourcedefinitions,namespaces"), &BTreeSet::new()).await
}

/// Runs the manager as its Deployment says, with the rights that are left after clusterctl's rewriting.
async fn manager_runs(cluster: &Cluster, namespace: &str) -> Result<()> {
    let container = |path: &'static str| {
        let query =
            format!("--output=jsonpath={{.spec.template.spec.containers[?(@.name==\"manager\")].{path}}}");
        async move {
            let deployment = "deployment/capasg-controller-manager";
            cluster.kubectl(&["get", deployment, "--namespace", namespace, &query]).await
        }
    };
    assert_eq!(container("command").await?, r#"["/capasg","manager"]"#);
    let flags: Vec<String> = serde_json::from_str(&container("args").await?)?;
    assert!(
        !flags.iter().any(|flag| flag.starts_with("--namespace")),
        "all namespaces by default: {flags:?}"
    );
    let kubeconfig = cluster
        .api
        .access()
        .as_service_account(namespace, "capasg-manager")
        .write(&cluster.run.path().join("manager.yaml"))?;
    let process = Program::new("manager", env!("CARGO_BIN_EXE_capasg"))
        .arg("manager")
        .args(flags.iter().filter(|flag| {
            !["--diagnostics-address", "--webhook-"].iter().any(|prefix| flag.starts_with(prefix))
        }))
        .flag("--namespace", "one")
        .flag("--diagnostics-address", "0")
        .flag("--health-addr", format!("127.0.0.1:{}", free_port()?))
        .flag("--kubeconfig", &kubeconfig)
        .env("POD_NAMESPACE", namespace)
        .start(&cluster.run)?;
    let log = wait_until(Duration::from_mins(3), "the controllers running", || async {
        process.ensure_running()?;
        let log = fs::read_to_string(process.log())?;
        Ok(if log.contains("caches synced") { Look::Done(log) } else { Look::Not(log) })
    })
    .await?;
    assert!(!log.contains("forbidden"), "{log}");
    let leases = cluster.kubectl(&["get", "leases", "--namespace", namespace, "--output=name"]).await?;
    assert!(leases.contains("controller-leader-election-capasg"), "{leases}");
    assert_eq!(process.stop(Duration::from_mins(1)).await?.code(), Some(0));
    Ok(())
}

// Rules: K4, K5, K6, K7, K11, K12
#[tokio::test]
async fn the_provider_works_in_another_namespace() -> Result<()> {
    let cluster = Cluster::start().await?;
    let ours = format!("asg:{VERSION}");
    let init = ["init", "--bootstrap", "-", "--control-plane", "-", "--infrastructure", &ours];
    let init: Vec<&str> = init.into_iter().chain(["--target-namespace", "elsewhere"]).collect();
    cluster.clusterctl_in("elsewhere", &init).await?;
    assert_eq!(
        cluster.named(&format!("{ROLES},validatingwebhookconfigurations")).await?,
        set(&[
            "clusterrole/elsewhere-manager",
            "clusterrolebinding/elsewhere-manager",
            "validatingwebhookconfiguration.admissionregistration.k8s.io/elsewhere-validating-webhook-configuration",
        ])
    );
    let webhooks = "validatingwebhookconfiguration/elsewhere-validating-webhook-configuration";
    let webhooks: Value = serde_json::from_str(&cluster.kubectl(&["get", webhooks, "--output=json"]).await?)?;
    assert_eq!(
        webhooks["metadata"]["annotations"]["cert-manager.io/inject-ca-from"],
        "elsewhere/capasg-serving-cert"
    );
    for webhook in webhooks["webhooks"].as_array().into_iter().flatten() {
        assert_eq!(webhook["clientConfig"]["service"]["namespace"], "elsewhere");
    }
    let names = "--output=jsonpath={.spec.dnsNames[0]}";
    let certificate = ["get", "certificate", "capasg-serving-cert", "--namespace", "elsewhere", names];
    assert_eq!(cluster.kubectl(&certificate).await?, "capasg-webhook-service.elsewhere.svc");

    cluster.all_in("elsewhere").await?;
    manager_runs(&cluster, "elsewhere").await?;

    // It goes without rest from there, too.
    cluster.clusterctl.runner().run(["delete", "--infrastructure", "asg", "--include-namespace"]).await?;
    cluster.left(&format!("{KINDS},namespaces"), &BTreeSet::new()).await
}

/// With `--target-namespace` alone every object is in that namespace and the manager has its rights. The names of the
/// cluster-scoped ones begin with another: a deletion leaves the role and its binding, and nothing else (docs/users/limits.md).
// Rules: K4, K12
#[tokio::test]
async fn the_target_namespace_alone_moves_everything_but_the_names_of_roles() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.init(&["--target-namespace", "elsewhere"]).await?;
    let roles = set(&["clusterrole/capasg-system-manager", "clusterrolebinding/capasg-system-manager"]);
    assert_eq!(cluster.named(ROLES).await?, roles);
    assert_eq!(cluster.named("namespaces").await?, set(&["namespace/elsewhere"]));
    cluster.all_in("elsewhere").await?;
    let subjects = "--output=jsonpath={.subjects[*].namespace}";
    let binding = ["get", "clusterrolebinding", "capasg-system-manager", subjects];
    assert_eq!(cluster.kubectl(&binding).await?, "elsewhere");
    manager_runs(&cluster, "elsewhere").await?;

    cluster.clusterctl.runner().run(["delete", "--infrastructure", "asg", "--include-namespace"]).await?;
    cluster.left(&format!("{KINDS},namespaces"), &roles).await
}

// Rules: K1, K2, K4, K5, K7, K12
#[tokio::test]
async fn the_extension_is_upgraded_in_another_namespace_and_removed_completely() -> Result<()> {
    let cluster = Cluster::start().await?;
    let (ours, selector) = (format!("asg:{VERSION}"), format!("cluster.x-k8s.io/provider={EXTENSION}"));
    let init = ["init", "--bootstrap", "-", "--control-plane", "-", "--infrastructure", "-"];
    let init = init.into_iter().chain(["--runtime-extension", &ours, "--target-namespace", "hooks"]);
    let init: Vec<&str> = init.collect();
    let clusterctl = cluster.clusterctl.runner().clone().env("CAPASG_EXTENSION_NAMESPACE", "hooks");
    clusterctl.run(&init).await?;
    assert_eq!(
        cluster.labeled(ROLES, &selector).await?,
        set(&["clusterrole/hooks-extension", "clusterrolebinding/hooks-extension"])
    );
    let get = async |kind: &str, name: &str, path: &str| {
        let path = format!("--output=jsonpath={{{path}}}");
        cluster.kubectl(&["get", kind, name, "--namespace", "hooks", &path]).await
    };
    assert_eq!(
        get("certificate", "capasg-extension-serving-cert", ".spec.dnsNames[0]").await?,
        "capasg-extension.hooks.svc"
    );
    assert_eq!(get("clusterrolebinding", "hooks-extension", ".subjects[0].namespace").await?, "hooks");
    let container = ".spec.template.spec.containers[*].name";
    assert_eq!(get("deployment", "capasg-extension", container).await?, "manager");

    let script = sibling_release(&cluster.release, EXTENSION);
    next_release(&script, "capasg-extension-system}-extension", "capasg-extension-system}-hooks")?;
    let next = format!("hooks/asg:{NEXT}");
    clusterctl.run(["upgrade", "apply", "--runtime-extension", &next]).await?;
    assert_eq!(
        cluster.labeled(ROLES, &selector).await?,
        set(&["clusterrole/hooks-hooks", "clusterrolebinding/hooks-hooks"])
    );

    // Its script removes the ExtensionConfig first, and then the provider.
    let programs = ["kubectl", "clusterctl"].map(|name| (name.to_uppercase(), cluster.tools.program(name)));
    let output = tokio::process::Command::new(script.join("remove-runtime-extension"))
        .arg("--include-namespace")
        .arg("--config")
        .arg(cluster.clusterctl.config())
        .env("KUBECONFIG", cluster.api.kubeconfig())
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
        .envs(programs)
        .output()
        .await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    wait_until(Duration::from_mins(3), "nothing of the extension left", || async {
        let left = cluster.labeled(&format!("{KINDS},namespaces"), &selector).await?;
        Ok(Look::when(left.is_empty(), format!("{left:?}")))
    })
    .await
}

/// The add-on provider as its Deployment says, but for ports and paths, and the port of its health endpoint.
async fn addon_provider(cluster: &Cluster, namespace: &str) -> Result<(Process, u16)> {
    let path = "--output=jsonpath={.spec.template.spec.containers[?(@.name==\"manager\")].args}";
    let flags =
        cluster.kubectl(&["get", "deployment", "capasg-addons", "--namespace", namespace, path]).await?;
    let mut flags: Vec<String> = serde_json::from_str(&flags)?;
    flags.retain(|flag| {
        !["--diagnostics-address", "--work-dir"].iter().any(|prefix| flag.starts_with(prefix))
    });
    let kubeconfig = cluster
        .api
        .access()
        .as_service_account(namespace, "capasg-addons")
        .write(&cluster.run.path().join("addons.yaml"))?;
    let programs = spawn_blocking(|| add_on_programs(&|line| eprintln!("{line}"))).await??;
    let (work, port) = (cluster.run.path().join("helm"), free_port()?);
    fs::create_dir_all(&work)?;
    let process = Program::new("addons", env!("CARGO_BIN_EXE_capasg"))
        .arg("addons")
        .args(flags)
        .flag("--diagnostics-address", "0")
        .flag("--health-addr", format!("127.0.0.1:{port}"))
        .flag("--helm", programs.join("helm"))
        .flag("--values-program", programs.join("capasg-values"))
        .flag("--work-dir", work)
        .flag("--kubeconfig", &kubeconfig)
        .env("POD_NAMESPACE", namespace)
        .env("POD_NAME", "addons")
        .start(&cluster.run)?;
    Ok((process, port))
}

/// Renews the Lease of Cluster API Add-on Provider for Helm in a namespace, or creates it.
async fn renew_lease_of_caaph(cluster: &Cluster, namespace: &str, seconds: i32, renewal: u32) -> Result<()> {
    let lease = serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE_OF_CAAPH, "namespace": namespace},
        "spec": {
            "holderIdentity": "caaph", "leaseDurationSeconds": seconds,
            "renewTime": format!("2026-01-01T00:00:00.{renewal:06}Z"),
        },
    });
    let apply = ["apply", "--server-side", "--filename=-"];
    cluster.api.kubectl().feed(apply, &lease.to_string()).await.map(drop)
}

/// Runs something while the Lease is held and renewed.
async fn beside_caaph<T>(
    cluster: &Cluster,
    namespace: &str,
    seconds: i32,
    run: impl Future<Output = Result<T>>,
) -> Result<T> {
    // A process that starts before the Lease exists does not wait for it.
    renew_lease_of_caaph(cluster, namespace, seconds, 0).await?;
    let renewals = async {
        for renewal in 1.. {
            tokio::time::sleep(Duration::from_secs(1)).await;
            renew_lease_of_caaph(cluster, namespace, seconds, renewal).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ended = renewals => bail!("the Lease is not held: {ended:?}"),
        result = run => result,
    }
}

/// Waits until the add-on provider answers so.
async fn readiness(process: &Process, port: u16, status: u16, words: &str) -> Result<()> {
    wait_until(Duration::from_mins(3), "the readiness of the add-on provider", || async {
        process.ensure_running()?;
        let answer = loopback::get(port, "/readyz").await?;
        let is = answer.status == status && answer.body.contains(words);
        Ok(Look::when(is, format!("{} {}", answer.status, answer.body)))
    })
    .await
}

// Rules: K1, K2, K4, K5, K7, K12, X1
#[tokio::test]
async fn the_add_on_provider_runs_without_the_other_one_and_is_removed_completely() -> Result<()> {
    let cluster = Cluster::start().await?;
    let (ours, selector) = (format!("asg-helm:{VERSION}"), format!("cluster.x-k8s.io/provider={ADDONS}"));
    let init = ["init", "--bootstrap", "-", "--control-plane", "-", "--infrastructure", "-"];
    let init: Vec<&str> = init.into_iter().chain(["--addon", &ours, "--target-namespace", "tools"]).collect();
    let clusterctl = cluster.clusterctl.runner().clone().env("CAPASG_ADDONS_NAMESPACE", "tools");
    clusterctl.run(&init).await?;
    assert_eq!(
        cluster.labeled(ROLES, &selector).await?,
        set(&["clusterrole/tools-addons", "clusterrolebinding/tools-addons"])
    );
    let definitions = cluster.labeled("customresourcedefinitions", &selector).await?;
    assert_eq!(definitions.len(), 2, "{definitions:?}");

    let release = sibling_release(&cluster.release, ADDONS);
    next_release(&release, "capasg-addons-system}-addons", "capasg-addons-system}-charts")?;
    clusterctl.run(["upgrade", "apply", "--addon", &format!("tools/asg-helm:{NEXT}")]).await?;
    assert_eq!(
        cluster.labeled(ROLES, &selector).await?,
        set(&["clusterrole/tools-charts", "clusterrolebinding/tools-charts"])
    );
    assert_eq!(cluster.labeled("customresourcedefinitions", &selector).await?, definitions);

    // While the other provider of these kinds renews its Lease, the controllers do not run, and the replica says why. Its
    // Namespace has the label that clusterctl sets.
    for (namespace, label) in [("helm", "cluster.x-k8s.io/provider=addon-helm"), ("team-b", "team=b")] {
        cluster.kubectl(&["create", "namespace", namespace]).await?;
        cluster.kubectl(&["label", "namespace", namespace, label]).await?;
    }
    // Longer than the machine may stand still: an expired Lease stops nothing.
    let (process, port) = beside_caaph(&cluster, "helm", 40, async {
        let (process, port) = addon_provider(&cluster, "tools").await?;
        let runs = "Cluster API Add-on Provider for Helm runs in namespace helm";
        readiness(&process, port, 503, runs).await?;
        Ok((process, port))
    })
    .await?;
    // A tenant may create a Lease of this name with any duration. It stops nothing.
    let log = beside_caaph(&cluster, "team-b", i32::MAX, async {
        readiness(&process, port, 200, "").await?;
        let leases = cluster.kubectl(&["get", "leases", "--namespace", "tools", "--output=name"]).await?;
        assert!(leases.contains("controller-leader-election-capasg-addons"), "{leases}");
        // One of the other provider that starts later ends the process, which then waits again.
        beside_caaph(&cluster, "helm", 15, async {
            assert_eq!(
                tokio::time::timeout(Duration::from_mins(3), process.exited()).await??.code(),
                Some(1)
            );
            Ok(fs::read_to_string(process.log())?)
        })
        .await
    })
    .await?;
    assert!(log.contains("the add-on provider failed") && log.contains("scale it to 0"), "{log}");
    assert!(!log.contains("orbidden") && !log.contains("team-b"), "{log}");

    let delete = ["delete", "--addon", "asg-helm", "--include-namespace"];
    cluster.clusterctl.runner().run(delete).await?;
    wait_until(Duration::from_mins(3), "nothing of the add-on provider left", || async {
        let left = cluster.labeled(&format!("{KINDS},namespaces"), &selector).await?;
        Ok(Look::when(left.is_empty(), format!("{left:?}")))
    })
    .await?;
    // Releases outlive their provider, unless one says otherwise.
    assert_eq!(cluster.labeled("customresourcedefinitions", &selector).await?, definitions);
    Ok(())
}

/// A manager of one installation, as its Deployment says, but for ports.
fn installation(cluster: &Cluster, namespace: &str, name: &str, flag: &str) -> Result<Process> {
    let kubeconfig = cluster
        .api
        .access()
        .as_service_account(namespace, "capasg-manager")
        .write(&cluster.run.path().join(format!("{name}.yaml")))?;
    Program::new(name, env!("CARGO_BIN_EXE_capasg"))
        .arg("manager")
        .args(["--leader-elect", flag])
        .flag("--diagnostics-address", "0")
        .flag("--health-addr", format!("127.0.0.1:{}", free_port()?))
        .flag("--kubeconfig", &kubeconfig)
        .env("POD_NAMESPACE", namespace)
        .env("POD_NAME", name)
        .start(&cluster.run)
}

// Rules: C5, K6, N2
#[tokio::test]
async fn two_installations_reconcile_each_its_own_pools() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.init(&[]).await?;
    let ours = format!("asg:{VERSION}");
    let second = ["generate", "provider", "--infrastructure", &ours, "--target-namespace", "capasg-blue"];
    let second = cluster.clusterctl_in("capasg-blue", &second).await?;
    // cert-manager's kinds are there, and its Certificate is the second's own.
    cluster.api.kubectl().feed(["apply", "--server-side", "--filename=-"], &second).await?;
    assert_eq!(
        cluster.named(ROLES).await?,
        set(&[
            "clusterrole/capasg-system-manager",
            "clusterrole/capasg-blue-manager",
            "clusterrolebinding/capasg-system-manager",
            "clusterrolebinding/capasg-blue-manager",
        ])
    );

    let pool = |namespace: &str, name: &str, filter: Option<&str>| {
        let mut pool = capasg_test_objects::minimal_pool();
        let labels = filter.map(|filter| serde_json::json!({"cluster.x-k8s.io/watch-filter": filter}));
        pool["metadata"] = serde_json::json!({"name": name, "namespace": namespace, "labels": labels});
        pool
    };
    for namespace in ["one", "two"] {
        cluster.kubectl(&["create", "namespace", namespace]).await?;
    }
    let create = async |pools: Vec<Value>| {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": pools});
        cluster.api.kubectl().feed(["create", "--filename=-"], &list.to_string()).await
    };
    // Who wrote to which pools.
    let writers = || -> Result<BTreeSet<(String, String)>> {
        let writes = cluster.api.writes()?.into_iter();
        let ours = writes.filter(|write| {
            write.resource == "asgmachinepools" && write.user.starts_with("system:serviceaccount:capasg-")
        });
        let namespace = |user: &str| user.split(':').nth(2).unwrap_or_default().to_owned();
        Ok(ours.map(|write| (namespace(&write.user), write.name)).collect())
    };
    let pairs = |pairs: &[(&str, &str)]| -> BTreeSet<(String, String)> {
        pairs.iter().map(|(who, pool)| ((*who).to_owned(), (*pool).to_owned())).collect()
    };
    let written = async |expected: &BTreeSet<(String, String)>, processes: &[&Process]| {
        wait_until(Duration::from_mins(3), "each has written to its own", || async {
            for process in processes {
                process.ensure_running()?;
            }
            let written = writers()?;
            Ok(Look::when(written.is_superset(expected), format!("{written:?}")))
        })
        .await
    };

    // By a label: what has none, or another, is nobody's.
    create(vec![
        pool("one", "red", Some("red")),
        pool("one", "blue", Some("blue")),
        pool("one", "green", Some("green")),
        pool("one", "plain", None),
    ])
    .await?;
    let red = installation(&cluster, NAMESPACE, "red", "--watch-filter=red")?;
    let blue = installation(&cluster, "capasg-blue", "blue", "--watch-filter=blue")?;
    let mut expected = pairs(&[(NAMESPACE, "red"), ("capasg-blue", "blue")]);
    written(&expected, &[&red, &blue]).await?;
    for process in [red, blue] {
        assert_eq!(process.stop(Duration::from_mins(1)).await?.code(), Some(0));
    }
    assert_eq!(writers()?, expected);

    // By namespace.
    create(vec![pool("one", "first", None), pool("two", "second", None)]).await?;
    let one = installation(&cluster, NAMESPACE, "one", "--namespace=one")?;
    let two = installation(&cluster, "capasg-blue", "two", "--namespace=two")?;
    let more = ["first", "green", "plain"].map(|pool| (NAMESPACE, pool));
    expected.extend(pairs(&more));
    expected.extend(pairs(&[("capasg-blue", "second")]));
    written(&expected, &[&one, &two]).await?;
    for process in [one, two] {
        assert_eq!(process.stop(Duration::from_mins(1)).await?.code(), Some(0));
    }
    let mut writers = writers()?;
    // In the namespace of the first now, where its status may be right as it is.
    writers.remove(&(NAMESPACE.to_owned(), "blue".to_owned()));
    assert_eq!(writers, expected);
    // Each elected its leader in its own namespace.
    for namespace in [NAMESPACE, "capasg-blue"] {
        let leases = cluster.kubectl(&["get", "leases", "--namespace", namespace, "--output=name"]).await?;
        assert!(leases.contains("controller-leader-election-capasg"), "{namespace}: {leases}");
    }

    // The first goes and takes nothing of the second's rights along.
    cluster.clusterctl.runner().run(["delete", "--infrastructure", "asg"]).await?;
    assert_eq!(
        cluster.named(ROLES).await?,
        set(&["clusterrole/capasg-blue-manager", "clusterrolebinding/capasg-blue-manager"])
    );
    Ok(())
}

// Rules: K8, K10, K13
#[tokio::test]
async fn clusterctl_renders_the_components() -> Result<()> {
    let cluster = Cluster::start().await?;
    let objects = cluster.generated(&[]).await?;
    for object in &objects {
        let text = object.to_string();
        assert!(!text.contains("${") && !text.contains("$$"), "a variable is left in {text}");
        assert_eq!(object["metadata"]["labels"]["cluster.x-k8s.io/provider"], "infrastructure-asg");
    }
    // Nothing that only looks like a variable was eaten.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd/bases");
    let mut definitions = 0;
    for entry in fs::read_dir(folder)? {
        let shipped: Value = serde_saphyr::from_str(&fs::read_to_string(entry?.path())?)?;
        let name = &shipped["metadata"]["name"];
        let made = objects.iter().find(|object| object["metadata"]["name"] == *name);
        assert!(made.context("a definition is missing")?["spec"] == shipped["spec"], "{name}");
        definitions += 1;
    }
    assert_eq!(definitions, SHIPPED_DEFINITIONS);

    let annotations = |objects: &[Value]| {
        let account = objects.iter().find(|object| object["kind"] == "ServiceAccount");
        account.map(|account| account["metadata"]["annotations"].clone())
    };
    assert_eq!(annotations(&objects), Some(Value::Null));
    let role = "arn:aws:iam::123456789012:role/capasg";
    let config = fs::read_to_string(cluster.clusterctl.config())?;
    let images = "images: {infrastructure-asg: {repository: mirror.example.com/capi, tag: v9.9.9}}";
    fs::write(cluster.clusterctl.config(), format!("{config}\nAWS_ROLE_ARN: {role}\n{images}\n"))?;
    let objects = cluster.generated(&[]).await?;
    assert_eq!(annotations(&objects), Some(serde_json::json!({"eks.amazonaws.com/role-arn": role})));
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
    assert_eq!(
        deployment["spec"]["template"]["spec"]["containers"][0]["image"],
        "mirror.example.com/capi/cluster-api-provider-asg:v9.9.9"
    );
    Ok(())
}
