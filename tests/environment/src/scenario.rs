//! A test's share of the environment that all tests of a process use together.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use capasg_fake_aws::{Scope, Simulator};
use futures::FutureExt as _;
use kube::Client;
use tokio::{runtime::Runtime, sync::OnceCell};

use crate::{
    Environment, Settings, WorkloadCluster,
    api_server::ApiServer,
    kubelet::{Join, KubeletOptions, Kubelets},
    manager::{ManagerOptions, ManagerPlan},
    say,
};

/// What lives as long as the process cannot live on the runtime of one test.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("environment")
        .enable_all()
        .build()
        .context("cannot make a runtime")?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

impl Environment {
    /// The one environment of this process, started by whoever asks first, with [`Settings::from_env`].
    ///
    /// It ends with the process, however that ends: the run folder's janitor sees to it.
    ///
    /// # Errors
    /// When it could not be started; the first failure is everyone's, it is not tried again.
    pub async fn shared() -> Result<Arc<Self>> {
        static SHARED: OnceCell<Result<Arc<Environment>, String>> = OnceCell::const_new();
        let started = SHARED
            .get_or_init(|| async {
                let start = async { runtime()?.spawn(Self::start(Settings::from_env())).await? };
                start.await.map(Arc::new).map_err(|error: anyhow::Error| format!("{error:#}"))
            })
            .await;
        started.clone().map_err(|error| anyhow!("the environment did not start: {error}"))
    }
}

/// What one test works with: a namespace and a region of its own, and clients bound to its runtime.
pub struct Scenario {
    /// The environment, shared with other tests.
    pub environment: Arc<Environment>,
    /// A namespace of the management cluster that no other test uses.
    pub namespace: String,
    /// A region of the simulated cloud that no other test uses, for example `eu-test-3`.
    pub region: String,
    /// A client of the management cluster with an administrator's rights.
    pub client: Client,
    name: String,
}

/// Runs a test in its share of the environment. If it fails or panics, everything worth reading is written to a folder
/// (see [`crate::dump::folder`]) before the failure goes on its way.
///
/// # Errors
/// Those of the environment and of the test.
pub async fn scenario(name: &str, test: impl AsyncFnOnce(&Scenario) -> Result<()>) -> Result<()> {
    let environment = Environment::shared().await?;
    let scenario = Scenario::new(environment, name).await?;
    let outcome = AssertUnwindSafe(test(&scenario)).catch_unwind().await;
    if !matches!(outcome, Ok(Ok(()))) {
        match scenario.environment.dump(name).await {
            Ok(folder) => {
                say(&format!("{name} failed; objects, events and logs are in {}", folder.display()));
            }
            Err(error) => say(&format!("{name} failed, and nothing could be kept of it: {error:#}")),
        }
    }
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

impl Scenario {
    /// A share of `environment`; see [`scenario`] for the usual way to get one.
    ///
    /// # Errors
    /// When the namespace cannot be made.
    pub async fn new(environment: Arc<Environment>, name: &str) -> Result<Self> {
        static REGIONS: AtomicUsize = AtomicUsize::new(1);
        let namespace = environment.namespace(name).await?;
        let region = format!("eu-test-{}", REGIONS.fetch_add(1, Ordering::Relaxed));
        let client = environment.client().await?;
        Ok(Self { environment, namespace, region, client, name: name.to_owned() })
    }

    /// The name it was given, of which its namespace is made.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An in-memory workload cluster in the namespace; see [`WorkloadCluster::in_memory`].
    ///
    /// # Errors
    /// When its control plane does not come up.
    pub async fn in_memory_cluster(&self, name: &str) -> Result<WorkloadCluster> {
        WorkloadCluster::in_memory(
            self.environment.management(),
            self.environment.tools(),
            &self.namespace,
            name,
        )
        .await
    }

    /// A cluster in the namespace whose control plane is `api`; see [`WorkloadCluster::stub`].
    ///
    /// # Errors
    /// When core does not accept it.
    pub async fn stub_cluster(&self, name: &str, api: &ApiServer) -> Result<WorkloadCluster> {
        let environment = &self.environment;
        WorkloadCluster::stub(environment.management(), environment.tools(), &self.namespace, name, api).await
    }

    /// Simulated kubelets on the machines of this test's region, which join `cluster` as kubeadm would: with a valid
    /// bootstrap token, and the version of the cluster's control plane.
    ///
    /// # Errors
    /// When the cluster cannot be reached.
    pub async fn kubelets(&self, cluster: &WorkloadCluster, join: Join) -> Result<Kubelets> {
        self.kubelets_in(&self.region, cluster, join).await
    }

    /// The same on the machines of another region.
    ///
    /// # Errors
    /// When the cluster cannot be reached.
    pub async fn kubelets_in(&self, region: &str, cluster: &WorkloadCluster, join: Join) -> Result<Kubelets> {
        let version = self.environment.tools().kubernetes_version().to_owned();
        let options = KubeletOptions { join, version, remove_nodes: false };
        Kubelets::start(cluster, self.environment.cloud().instances(region), options).await
    }

    /// The simulated AWS as this test's region and account see it.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::region(&self.region)
    }

    /// The simulated AWS.
    #[must_use]
    pub fn simulator(&self) -> &Simulator {
        self.environment.cloud().simulator()
    }

    /// kubectl on the management cluster, in this namespace. Answers its standard output.
    ///
    /// # Errors
    /// When kubectl fails; then with what it said.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.environment.management().api().kubectl().run(self.in_namespace(args)).await
    }

    /// kubectl with this standard input, in this namespace. Answers its standard output.
    ///
    /// # Errors
    /// When kubectl fails; then with what it said.
    pub async fn feed(&self, args: &[&str], input: &str) -> Result<String> {
        self.environment.management().api().kubectl().feed(self.in_namespace(args), input).await
    }

    /// `kubectl apply` of these documents, in this namespace.
    ///
    /// # Errors
    /// When kubectl fails; then with what it said.
    pub async fn apply(&self, documents: &str) -> Result<String> {
        // Without `--openapi-patch=false`, each call parses the OpenAPI documents of all groups that it names, which takes most of
        // its processor time.
        self.feed(&["apply", "--openapi-patch=false", "--filename=-"], documents).await
    }

    /// clusterctl on the management cluster, in this namespace. Answers its standard output.
    ///
    /// # Errors
    /// When clusterctl fails; then with what it said.
    pub async fn clusterctl(&self, args: &[&str]) -> Result<String> {
        self.environment.management().clusterctl().runner().run(self.in_namespace(args)).await
    }

    fn in_namespace<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let mut all = args.to_vec();
        all.extend(["--namespace", &self.namespace]);
        all
    }

    /// A manager of ours that looks at this namespace only: a test can end and restart it without touching others.
    ///
    /// # Errors
    /// When our provider is not installed or its program is not known.
    pub async fn plan_manager(&self, mut options: ManagerOptions) -> Result<ManagerPlan> {
        if options.name.is_empty() {
            options.name = format!("capasg-{}", self.namespace);
        }
        options.args.push(format!("--namespace={}", self.namespace));
        self.environment.plan_manager(options).await
    }
}

/// How long most things may take in tests that share two cores with others.
pub const PATIENCE: Duration = Duration::from_mins(4);
