//! Managers as processes: run as their Deployment says, with exactly the rights of their service account.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Container, EnvVar, Secret},
};
use kube::{Api, Client, ResourceExt as _, api::ListParams};

use crate::{
    api_server::ApiServer,
    loopback, ports,
    process::{Process, Program},
    run_folder::RunFolder,
    wait::{Look, wait_until},
    webhooks::Webhooks,
};

/// The label that clusterctl puts on everything of a provider.
const PROVIDER_LABEL: &str = "cluster.x-k8s.io/provider";

/// The container that contract rule K5 asks for.
const CONTAINER: &str = "manager";

/// How long a manager may take to be ready.
const READY: Duration = Duration::from_mins(1);

/// How to start a manager beyond what its Deployment says.
#[derive(Debug, Clone, Default)]
pub struct ManagerOptions {
    /// Names the replica: its log, and its pod in `POD_NAME`. Empty means the provider's label.
    pub name: String,
    /// Whether replicas elect a leader. Off by default: a single process then leads at once.
    pub leader_elect: bool,
    /// Whether it serves the webhooks of its Deployment. One process of a namespace can at a time.
    pub webhooks: bool,
    /// More arguments; `--name=value` takes the place of what the Deployment says for that flag.
    pub args: Vec<String>,
    /// Variables of the environment, on top of the Deployment's.
    pub env: BTreeMap<String, String>,
}

/// A manager that can be started, ended and started again, as a Deployment would do with its pod.
#[derive(Clone)]
pub struct ManagerPlan {
    program: Program,
    run: Arc<RunFolder>,
    namespace: String,
    service_account: String,
    health: u16,
    diagnostics: u16,
    grace: Duration,
}

/// A running manager.
pub struct Manager {
    process: Process,
    health: u16,
    diagnostics: u16,
    grace: Duration,
}

impl ManagerPlan {
    /// Reads the Deployment of the provider with this clusterctl label, for example `infrastructure-asg`.
    ///
    /// # Errors
    /// When there is not exactly one such Deployment, or it has no container named `manager`.
    pub(crate) async fn from_deployment(
        client: &Client,
        server: &ApiServer,
        webhooks: &Webhooks,
        run: &Arc<RunFolder>,
        label: &str,
        binary: &Path,
        options: &ManagerOptions,
    ) -> Result<Self> {
        let deployment = find(client, label).await?;
        let namespace = deployment.namespace().context("a Deployment without namespace")?;
        let pod =
            deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()).context("no pod spec")?;
        let container = pod
            .containers
            .iter()
            .find(|container| container.name == CONTAINER)
            .with_context(|| format!("the Deployment of {label} has no container named {CONTAINER}"))?;
        let service_account = pod.service_account_name.clone().unwrap_or_else(|| "default".to_owned());

        let grace = pod.termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let grace = Duration::from_secs(grace.unwrap_or(30));

        let name = if options.name.is_empty() { label } else { &options.name };
        let kubeconfig = server
            .access()
            .as_service_account(&namespace, &service_account)
            // Each replica has a file of its own: a shared one could be read while another replica's is written.
            .write(&run.path().join("kubeconfigs").join(format!("{}-{name}.yaml", server.name())))?;
        let (health, diagnostics) = (ports::free()?, ports::free()?);

        let mut flags = Flags::of(container);
        // Not every role elects a leader: the Runtime Extension does not know the flag.
        if flags.has("--leader-elect") {
            flags.set("--leader-elect", &options.leader_elect.to_string());
        }
        flags.set("--health-addr", &format!("127.0.0.1:{health}"));
        flags.set("--diagnostics-address", &format!("127.0.0.1:{diagnostics}"));
        // Unauthenticated plain HTTP, so that a test can read metrics; but only where the manager knows the flag.
        if flags.has("--insecure-diagnostics") {
            flags.set("--insecure-diagnostics", "true");
        }
        flags.set("--kubeconfig", &kubeconfig.display().to_string());
        if !options.webhooks {
            // Not every role serves webhooks: the add-on provider does not know the flag.
            if flags.has("--webhook-port") {
                flags.set("--webhook-port", "0");
            }
        } else if let Some(folder) = mounted_secrets(pod)
            .map(|secret| webhooks.certificates(&namespace, secret))
            // A pod may mount other Secrets, such as credentials.
            .find(|folder| folder.is_dir())
        {
            flags.set("--webhook-port", &webhooks.port(&namespace)?.to_string());
            flags.set("--webhook-cert-dir", &folder.display().to_string());
        }

        for arg in &options.args {
            match arg.split_once('=') {
                Some((name, value)) => flags.set(name, value),
                None => flags.0.push(arg.clone()),
            }
        }

        let mut program = Program::new(format!("{}-{name}", server.name()), binary).args(flags.0);
        for (name, value) in from_secrets(client, &namespace, container).await? {
            program = program.env(name, value);
        }
        for variable in container.env.iter().flatten() {
            program = program.env(&variable.name, value_of(variable, &namespace, name));
        }
        for (name, value) in &options.env {
            program = program.env(name, value);
        }
        Ok(Self { program, run: Arc::clone(run), namespace, service_account, health, diagnostics, grace })
    }

    /// Starts the process without waiting for anything.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self) -> Result<Manager> {
        let process = self.program.start(&self.run)?;
        Ok(Manager { process, health: self.health, diagnostics: self.diagnostics, grace: self.grace })
    }

    /// Starts the process and waits until it says that it is ready.
    ///
    /// # Errors
    /// When it cannot be started, ends, or is not ready within a minute.
    pub async fn start_ready(&self) -> Result<Manager> {
        let manager = self.start()?;
        manager.ready(READY).await?;
        Ok(manager)
    }

    /// The namespace that the manager's Deployment lives in.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The service account whose rights it has.
    #[must_use]
    pub fn service_account(&self) -> &str {
        &self.service_account
    }
}

impl Manager {
    /// Waits until `/readyz` answers 200.
    ///
    /// # Errors
    /// When the process ends, or the deadline passes; with the end of its log.
    pub async fn ready(&self, deadline: Duration) -> Result<()> {
        let what = format!("{} ready", self.process.name());
        let look = wait_until(deadline, &what, || async {
            if !self.process.is_running() {
                return Ok(Look::Done(false));
            }
            let answer = loopback::get(self.health, "/readyz").await?;
            Ok(if answer.is_success() { Look::Done(true) } else { Look::Not(answer.body) })
        });
        match look.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.process.failure("ended before it was ready")),
            Err(error) => Err(self.process.failure(&format!("is not ready: {error:#}"))),
        }
    }

    /// What a health endpoint answers, for example `/healthz`.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn health(&self, path: &str) -> Result<loopback::Answer> {
        loopback::get(self.health, path).await
    }

    /// The text of `/metrics`.
    ///
    /// # Errors
    /// When nobody listens or it refuses.
    pub async fn metrics(&self) -> Result<String> {
        let answer = loopback::get(self.diagnostics, "/metrics").await?;
        if !answer.is_success() {
            bail!("/metrics answered {}: {}", answer.status, answer.body);
        }
        Ok(answer.body)
    }

    /// The port of its diagnostics endpoint.
    #[must_use]
    pub fn diagnostics_port(&self) -> u16 {
        self.diagnostics
    }

    /// The process, for its log and its id.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// All that it and its predecessors of the same name have logged.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        let bytes = std::fs::read(self.process.log())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Ends it as Kubernetes does: SIGTERM, and SIGKILL after the pod's termination grace period.
    ///
    /// # Errors
    /// When the end status cannot be learnt.
    pub async fn stop(self) -> Result<ExitStatus> {
        self.process.stop(self.grace).await
    }

    /// Ends it as a failing machine does: SIGKILL.
    ///
    /// # Errors
    /// When the end status cannot be learnt.
    pub async fn kill(self) -> Result<ExitStatus> {
        self.process.kill().await
    }
}

async fn find(client: &Client, label: &str) -> Result<Deployment> {
    let deployments: Api<Deployment> = Api::all(client.clone());
    let selector = ListParams::default().labels(&format!("{PROVIDER_LABEL}={label}"));
    let mut found = deployments.list(&selector).await?.items;
    match (found.pop(), found.len()) {
        (Some(deployment), 0) => Ok(deployment),
        (None, _) => bail!("no Deployment is labelled {PROVIDER_LABEL}={label}"),
        (Some(_), more) => bail!("{} Deployments are labelled {PROVIDER_LABEL}={label}", more + 1),
    }
}

/// The variables of the Secrets that `envFrom` names, as far as they exist.
async fn from_secrets(
    client: &Client,
    namespace: &str,
    container: &Container,
) -> Result<Vec<(String, String)>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut variables = Vec::new();
    for source in container.env_from.iter().flatten().filter_map(|source| source.secret_ref.as_ref()) {
        match secrets.get_opt(&source.name).await? {
            Some(secret) => {
                for (name, value) in secret.data.into_iter().flatten() {
                    variables.push((name, String::from_utf8(value.0).context("a variable that is no text")?));
                }
            }
            None if source.optional == Some(true) => {}
            None => bail!("there is no Secret {}, which the Deployment wants", source.name),
        }
    }
    Ok(variables)
}

/// The Secrets that are mounted into the pod; one of them is the certificate of its webhooks.
fn mounted_secrets(pod: &k8s_openapi::api::core::v1::PodSpec) -> impl Iterator<Item = &str> {
    pod.volumes.iter().flatten().filter_map(|volume| volume.secret.as_ref()?.secret_name.as_deref())
}

/// What Kubernetes would fill in.
fn value_of(variable: &EnvVar, namespace: &str, pod: &str) -> String {
    let field = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
    match field.map(|field| field.field_path.as_str()) {
        None => variable.value.clone().unwrap_or_default(),
        Some("metadata.namespace") => namespace.to_owned(),
        Some("metadata.name" | "metadata.uid") => pod.to_owned(),
        Some("status.podIP" | "status.hostIP") => "127.0.0.1".to_owned(),
        Some(_) => String::new(),
    }
}

/// The arguments of a container: what its command holds beyond the program, and its args.
struct Flags(Vec<String>);

impl Flags {
    fn of(container: &Container) -> Self {
        let command = container.command.iter().flatten().skip(1);
        Self(command.chain(container.args.iter().flatten()).cloned().collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|arg| is_flag(arg, name))
    }

    /// Sets a flag in its `--name=value` form, in place of any other setting.
    fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|arg| !is_flag(arg, name));
        self.0.push(format!("{name}={value}"));
    }
}

fn is_flag(arg: &str, name: &str) -> bool {
    arg.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The upstream managers: the provider's label and the program.
pub(crate) const UPSTREAM: [(&str, &str); 4] = [
    ("cluster-api", "capi-core"),
    ("bootstrap-kubeadm", "capi-bootstrap-kubeadm"),
    ("control-plane-kubeadm", "capi-control-plane-kubeadm"),
    ("infrastructure-docker", "capd"),
];

/// What an upstream manager needs beside its Deployment.
pub(crate) fn upstream_options(label: &str) -> ManagerOptions {
    let mut options = ManagerOptions { webhooks: true, ..ManagerOptions::default() };
    if label == "infrastructure-docker" {
        // Parsed at the start, and never dialled for in-memory clusters.
        options.env.insert("DOCKER_HOST".to_owned(), "tcp://127.0.0.1:2375".to_owned());
    }
    options
}

/// The docker provider's debug server listens here, and panics if it cannot.
pub(crate) const IN_MEMORY_DEBUG_PORT: u16 = 19_000;

/// The lock for the docker provider: its in-memory servers use fixed ports (19000, and 20000 upwards), so that one
/// process of it can run on a machine at a time.
pub(crate) fn in_memory_lock() -> PathBuf {
    std::env::temp_dir().join("capasg-in-memory.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_replaced_and_its_longer_sisters_are_not() {
        let container = Container {
            command: Some(vec!["/capasg".to_owned(), "manager".to_owned()]),
            args: Some(vec!["--leader-elect".to_owned(), "--leader-elect-lease-duration=15s".to_owned()]),
            ..Container::default()
        };
        let mut flags = Flags::of(&container);
        flags.set("--leader-elect", "false");
        assert_eq!(flags.0, ["manager", "--leader-elect-lease-duration=15s", "--leader-elect=false"]);
        assert!(!flags.has("--leader"));
    }

    #[test]
    fn fields_of_the_pod_are_filled_in() {
        let variable: EnvVar = serde_json::from_value(serde_json::json!({
            "name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
        }))
        .unwrap();
        assert_eq!(value_of(&variable, "capasg-system", "one"), "capasg-system");
    }
}
