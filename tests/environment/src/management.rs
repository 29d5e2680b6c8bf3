//! A management cluster: API server, clusterctl, certificates and the managers as processes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, runtime::conditions::is_crd_established, runtime::wait::Condition as _};
use tokio::{sync::Mutex, task::spawn_blocking};

use crate::{
    api_server::{ApiServer, MANAGEMENT_CONTROLLERS},
    audit::Audited,
    cache::Lock,
    clusterctl::{Clusterctl, Release},
    etcd::Etcd,
    manager::{self, Manager, ManagerOptions, ManagerPlan},
    ports,
    run_folder::RunFolder,
    say,
    tools::Tools,
    wait::{Look, wait_for_object, wait_until},
    webhooks::Webhooks,
};

/// The provider of in-memory workload clusters.
const IN_MEMORY: &str = "infrastructure-docker";

/// What a management cluster shall be.
#[derive(Debug, Clone)]
pub struct ManagementOptions {
    /// Its name, unique in the run.
    pub name: String,
    /// The release of our provider to install beside the upstream ones.
    pub release: Option<Release>,
    /// Variables of clusterctl, for components and templates.
    pub variables: BTreeMap<String, String>,
    /// More arguments for `clusterctl init`, for example `--target-namespace`.
    pub init: Vec<String>,
    /// More arguments of upstream managers, by their provider's label.
    pub upstream_args: BTreeMap<String, Vec<String>>,
    /// What is in its audit log.
    pub audited: Audited,
}

impl Default for ManagementOptions {
    fn default() -> Self {
        Self {
            name: "management".to_owned(),
            release: None,
            variables: BTreeMap::new(),
            init: Vec::new(),
            upstream_args: BTreeMap::new(),
            audited: Audited::default(),
        }
    }
}

/// A running management cluster.
pub struct Management {
    run: Arc<RunFolder>,
    api: ApiServer,
    clusterctl: Clusterctl,
    webhooks: Webhooks,
    installed: String,
    upstream: Mutex<BTreeMap<String, Manager>>,
    plans: Mutex<BTreeMap<String, ManagerPlan>>,
    tools: Tools,
    upstream_args: BTreeMap<String, Vec<String>>,
    in_memory: Mutex<Option<Lock>>,
}

impl Management {
    /// Starts it: the API server, `clusterctl init`, certificates, then the upstream managers.
    ///
    /// # Errors
    /// When one of these steps fails.
    pub async fn start(
        tools: &Tools,
        run: &Arc<RunFolder>,
        etcd: &Etcd,
        options: &ManagementOptions,
    ) -> Result<Self> {
        let mut management = Self::without_providers(tools, run, etcd, options).await?;
        say(&format!("{}: clusterctl init, Cluster API {}", options.name, tools.cluster_api_version()));
        let init: Vec<&str> = options.init.iter().map(String::as_str).collect();
        management.installed = management.clusterctl.init(&init).await?;
        management.start_installed().await?;
        Ok(management)
    }

    /// The same without providers: the caller calls clusterctl, and [`Management::start_installed`] afterwards.
    ///
    /// # Errors
    /// When a part of it does not start.
    pub async fn without_providers(
        tools: &Tools,
        run: &Arc<RunFolder>,
        etcd: &Etcd,
        options: &ManagementOptions,
    ) -> Result<Self> {
        let name = &options.name;
        say(&format!("{name}: starting kube-apiserver {}", tools.kubernetes_version()));
        let api =
            ApiServer::start_audited(tools, run, etcd, name, MANAGEMENT_CONTROLLERS, options.audited).await?;
        let client = api.client().await?;
        install_definitions(tools, &api, &client).await?;

        let folder = run.path().join(format!("{name}-clusterctl"));
        std::fs::create_dir_all(&folder)?;
        let clusterctl =
            Clusterctl::new(tools, &folder, api.kubeconfig(), options.release.clone(), &options.variables)?;

        let webhooks = Webhooks::new(run.path().join("certificates").join(format!("{name}-webhooks")))?;
        Ok(Self {
            run: Arc::clone(run),
            api,
            clusterctl,
            webhooks,
            installed: String::new(),
            upstream: Mutex::default(),
            plans: Mutex::default(),
            tools: tools.clone(),
            upstream_args: options.upstream_args.clone(),
            in_memory: Mutex::default(),
        })
    }

    /// After `clusterctl init`: issues certificates, points webhooks at processes, and starts the managers of core Cluster API and
    /// of the kubeadm providers.
    ///
    /// # Errors
    /// When the API server refuses, or a manager is not ready within a minute.
    pub async fn start_installed(&self) -> Result<()> {
        self.reconcile_webhooks().await.context("cannot stand in for cert-manager")?;
        self.start_upstream(|label| label != IN_MEMORY).await
    }

    /// Starts the docker provider, which serves in-memory workload clusters, unless it runs. Only one can run on a
    /// machine at a time: if that of another environment does, this waits until it ends.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start_in_memory(&self) -> Result<()> {
        let mut in_memory = self.in_memory.lock().await;
        if in_memory.is_none() {
            let lock = lock_in_memory().await?;
            self.start_upstream(|label| label == IN_MEMORY).await?;
            *in_memory = Some(lock);
        }
        Ok(())
    }

    async fn start_upstream(&self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        say(&format!("{}: starting managers of Cluster API", self.api.name()));
        let wanted = manager::UPSTREAM.iter().filter(|(label, _)| wanted(label));
        let started = try_join_all(wanted.map(|(label, program)| async move {
            let mut options = manager::upstream_options(label);
            options.args.extend(self.upstream_args.get(*label).into_iter().flatten().cloned());
            let plan = self.plan_manager(label, &self.tools.program(program), &options).await?;
            let manager = plan.start_ready().await?;
            anyhow::Ok(((*label).to_owned(), plan, manager))
        }))
        .await?;
        let (mut upstream, mut plans) = (self.upstream.lock().await, self.plans.lock().await);
        for (label, plan, manager) in started {
            plans.insert(label.clone(), plan);
            upstream.insert(label, manager);
        }
        Ok(())
    }

    /// The run that it belongs to.
    #[must_use]
    pub fn run(&self) -> &Arc<RunFolder> {
        &self.run
    }

    /// The API server.
    #[must_use]
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// clusterctl, with this cluster as its target.
    #[must_use]
    pub fn clusterctl(&self) -> &Clusterctl {
        &self.clusterctl
    }

    /// What `clusterctl init` printed.
    #[must_use]
    pub fn installed(&self) -> &str {
        &self.installed
    }

    /// A manager of an installed provider, ready to be started, ended and started again by the caller.
    ///
    /// # Errors
    /// When the provider with this clusterctl label is not installed.
    pub async fn plan_manager(
        &self,
        label: &str,
        binary: &Path,
        options: &ManagerOptions,
    ) -> Result<ManagerPlan> {
        let client = self.api.client().await?;
        ManagerPlan::from_deployment(&client, &self.api, &self.webhooks, &self.run, label, binary, options)
            .await
    }

    /// Issues certificates and points webhooks at processes once more; needed after `clusterctl upgrade`.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn reconcile_webhooks(&self) -> Result<()> {
        self.webhooks.reconcile(&self.api.client().await?).await
    }

    /// The folder that holds what this Secret, mounted into the pods of a namespace, would hold.
    #[must_use]
    pub fn certificates(&self, namespace: &str, secret: &str) -> PathBuf {
        self.webhooks.certificates(namespace, secret)
    }

    /// Ends an upstream manager, for example `cluster-api`, as its Deployment scaled to zero would.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn stop_upstream(&self, label: &str) -> Result<()> {
        let manager =
            self.upstream.lock().await.remove(label).with_context(|| format!("{label} does not run"))?;
        manager.stop().await?;
        Ok(())
    }

    /// How an upstream manager was started, to start it as a Deployment would that replaces its pod.
    ///
    /// # Errors
    /// When it was never started.
    pub async fn upstream_plan(&self, label: &str) -> Result<ManagerPlan> {
        self.plans.lock().await.get(label).cloned().with_context(|| format!("{label} never ran"))
    }

    /// Starts an upstream manager again that was ended.
    ///
    /// # Errors
    /// When it was never started, or is not ready within a minute.
    pub async fn restart_upstream(&self, label: &str) -> Result<()> {
        let manager = self.upstream_plan(label).await?.start_ready().await?;
        self.upstream.lock().await.insert(label.to_owned(), manager);
        Ok(())
    }

    /// What an upstream manager has logged.
    ///
    /// # Errors
    /// When it does not run or its log cannot be read.
    pub async fn upstream_log(&self, label: &str) -> Result<String> {
        self.upstream.lock().await.get(label).with_context(|| format!("{label} does not run"))?.log()
    }

    /// The metrics of an upstream manager, as text.
    ///
    /// # Errors
    /// When it does not run or does not answer.
    pub async fn upstream_metrics(&self, label: &str) -> Result<String> {
        let upstream = self.upstream.lock().await;
        upstream.get(label).with_context(|| format!("{label} does not run"))?.metrics().await
    }

    /// Ends all processes, managers first.
    ///
    /// # Errors
    /// When an end status cannot be learnt.
    pub async fn stop(&self) -> Result<()> {
        let managers = std::mem::take(&mut *self.upstream.lock().await);
        try_join_all(managers.into_values().map(Manager::stop)).await?;
        self.in_memory.lock().await.take();
        self.api.stop().await
    }
}

/// cert-manager's kinds, without anything behind them: clusterctl only checks that they exist.
async fn install_definitions(tools: &Tools, api: &ApiServer, client: &Client) -> Result<()> {
    for file in tools.cert_manager_definitions() {
        api.kubectl().run(["create".as_ref(), "-f".as_ref(), file.as_os_str()]).await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for name in ["certificates.cert-manager.io", "issuers.cert-manager.io"] {
        wait_for_object(&definitions, name, Duration::from_mins(2), |definition| {
            Look::when(is_crd_established().matches_object(Some(definition)), "it is not established")
        })
        .await?;
    }
    Ok(())
}

async fn lock_in_memory() -> Result<Lock> {
    let lock = spawn_blocking(|| {
        Lock::take(&manager::in_memory_lock(), &format!("process {}", std::process::id()), |holder| {
            say(&format!("waiting for the other environment on this machine to end ({holder})"));
        })
    })
    .await??;
    // The kernel lets go of a lock before the janitor of a killed holder has ended the processes.
    wait_until(Duration::from_mins(2), "the in-memory servers' port free", || async {
        Ok(Look::when(ports::is_free(manager::IN_MEMORY_DEBUG_PORT), "somebody listens there"))
    })
    .await?;
    Ok(lock)
}
