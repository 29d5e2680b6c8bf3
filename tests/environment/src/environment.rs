//! The whole environment: one store, one management cluster, the simulator, and where each test gets its share.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, Result};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::{
    api_server::{ApiServer, WORKLOAD_CONTROLLERS},
    audit::Audited,
    cloud::{self, Cloud},
    clusterctl::{Release, sibling_release},
    command::Runner,
    dump,
    etcd::Etcd,
    management::{Management, ManagementOptions},
    manager::{ManagerOptions, ManagerPlan},
    run_folder::RunFolder,
    say,
    tools::{Tools, add_on_programs},
};

/// What the environment shall be made of.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Our release folder, `<...>/infrastructure-asg/<version>`; without it only the upstream providers are there.
    pub release: Option<PathBuf>,
    /// Our manager's program.
    pub manager: Option<PathBuf>,
    /// Variables of clusterctl.
    pub variables: BTreeMap<String, String>,
    /// How the simulated AWS behaves at first; by default [`Cloud::quick`].
    pub cloud: Option<capasg_fake_aws::Settings>,
    /// What is in the audit logs of the management cluster and of workload clusters.
    pub audited: Audited,
}

impl Settings {
    /// Reads `CAPASG_RELEASE` and `CAPASG_MANAGER`; where they are not set, looks where `make release` and
    /// `cargo build` put things: `out/infrastructure-asg/` of this clone, and beside the running program.
    #[must_use]
    pub fn from_env() -> Self {
        let path = |name| std::env::var_os(name).map(PathBuf::from);
        Self {
            release: path("CAPASG_RELEASE").or_else(newest_release),
            manager: path("CAPASG_MANAGER").or_else(built_manager),
            variables: BTreeMap::new(),
            cloud: None,
            audited: Audited::default(),
        }
    }
}

fn newest_release() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = std::fs::read_dir(root.join("out/infrastructure-asg")).ok()?;
    folders.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).max()
}

fn built_manager() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    program.ancestors().skip(1).take(2).map(|folder| folder.join("capasg")).find(|path| path.is_file())
}

/// The arguments of the add-on provider that name its programs, which are built the first time, and its folder `work`.
pub(crate) async fn add_on_args(options: &mut ManagerOptions, work: &Path) -> Result<()> {
    let programs = spawn_blocking(|| add_on_programs(&say)).await??;
    std::fs::create_dir_all(work)?;
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    options.args.extend([
        flag("helm", &programs.join("helm")),
        flag("values-program", &programs.join("capasg-values")),
        flag("work-dir", work),
    ]);
    Ok(())
}

/// The seed of the simulated AWS: the same ids in every run.
const SEED: u64 = 1;

/// A running environment. Dropping it ends every process and removes the run's folder.
pub struct Environment {
    settings: Settings,
    tools: Tools,
    etcd: Etcd,
    cloud: Cloud,
    management: Management,
    workloads: Mutex<Vec<(String, Runner)>>,
    workload_numbers: AtomicUsize,
    namespaces: AtomicUsize,
    run: Arc<RunFolder>,
}

impl Environment {
    /// Builds the tools if need be and starts everything. Takes about 40 s on two cores once the tools are built.
    ///
    /// # Errors
    /// When a part cannot be built or started; what was started is ended.
    pub async fn start(settings: Settings) -> Result<Self> {
        crate::install_crypto_provider();
        let tools = spawn_blocking(|| Tools::ready(&say)).await??;
        let run = Arc::new(RunFolder::new()?);
        say(&format!("run folder {}", run.path().display()));
        let etcd = Etcd::start(&tools, &run).await?;
        let cloud = Cloud::start(SEED, settings.cloud.clone().unwrap_or_else(Cloud::quick)).await?;
        let release = settings.release.as_deref().map(Release::at).transpose()?;
        let options = ManagementOptions {
            release,
            variables: settings.variables.clone(),
            audited: settings.audited,
            ..ManagementOptions::default()
        };
        let management = Management::start(&tools, &run, &etcd, &options).await?;
        say("the environment is ready");
        Ok(Self {
            settings,
            tools,
            etcd,
            cloud,
            management,
            workloads: Mutex::default(),
            workload_numbers: AtomicUsize::new(0),
            namespaces: AtomicUsize::new(0),
            run,
        })
    }

    /// What it was made of.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The upstream programs.
    #[must_use]
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// The run's folder, with `logs/` in it.
    #[must_use]
    pub fn run(&self) -> &Arc<RunFolder> {
        &self.run
    }

    /// The simulated AWS.
    #[must_use]
    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// The management cluster.
    #[must_use]
    pub fn management(&self) -> &Management {
        &self.management
    }

    /// A new client of the management cluster with an administrator's rights, bound to the calling runtime.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn client(&self) -> Result<Client> {
        self.management.api().client().await
    }

    /// Another management cluster on the same store, for example as the target of a move.
    ///
    /// # Errors
    /// When a part of it does not start.
    pub async fn second_management(&self, mut options: ManagementOptions) -> Result<Management> {
        if options.release.is_none() {
            options.release = self.settings.release.as_deref().map(Release::at).transpose()?;
        }
        Management::start(&self.tools, &self.run, &self.etcd, &options).await
    }

    /// A real API server as a workload cluster's: with evictions, `PodDisruptionBudgets` and their controllers.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn workload_api(&self) -> Result<ApiServer> {
        let number = self.workload_numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("workload-{number}");
        let (tools, audited) = (&self.tools, self.settings.audited);
        let api =
            ApiServer::start_audited(tools, &self.run, &self.etcd, &name, WORKLOAD_CONTROLLERS, audited)
                .await?;
        let mut workloads = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        workloads.push((name, api.kubectl().clone()));
        drop(workloads);
        Ok(api)
    }

    /// Makes a namespace of its own for a test, `<prefix>-<number>`.
    ///
    /// # Errors
    /// When the API server refuses the name.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed) + 1;
        let name = format!("{prefix}-{number}");
        self.management.api().kubectl().run(["create", "namespace", &name]).await?;
        Ok(name)
    }

    /// A manager of ours that uses the simulated AWS, ready to be started, ended and started again.
    ///
    /// # Errors
    /// When our provider is not installed, or its program is not known: see [`Settings`].
    pub async fn plan_manager(&self, mut options: ManagerOptions) -> Result<ManagerPlan> {
        let program = self.settings.manager.as_deref();
        let program =
            program.context("the manager's program is not known: build it, or set CAPASG_MANAGER")?;
        for (name, value) in self.cloud.env() {
            options.env.entry(name).or_insert(value);
        }
        self.management.plan_manager("infrastructure-asg", program, &options).await
    }

    /// A replica of our Runtime Extension that serves its hooks on `port`, ready to be started, ended and started again.
    ///
    /// # Errors
    /// When it is not installed, or its program is not known: see [`Settings`].
    pub async fn plan_extension(&self, mut options: ManagerOptions, port: u16) -> Result<ManagerPlan> {
        let program = self.settings.manager.as_deref();
        let program =
            program.context("the extension's program is not known: build it, or set CAPASG_MANAGER")?;
        for (name, value) in self.cloud.env() {
            options.env.entry(name).or_insert(value);
        }
        options.env.insert("AWS_ACCESS_KEY_ID".to_owned(), cloud::EXTENSION.to_owned());
        options.webhooks = true;
        options.args.extend([format!("--webhook-port={port}"), "--insecure-diagnostics=true".to_owned()]);
        self.management.plan_manager("runtime-extension-asg", program, &options).await
    }

    /// The shipped `ExtensionConfig`, for an extension that serves its hooks on a port of this machine.
    ///
    /// # Errors
    /// When there is no release, or its file cannot be read.
    pub fn extension_config(&self, port: u16) -> Result<Value> {
        let release = self.settings.release.as_deref().context("no release")?;
        let file = sibling_release(release, "runtime-extension-asg").join("extensionconfig.yaml");
        let mut config: Value = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
        config["spec"]["clientConfig"] = json!({"url": format!("https://127.0.0.1:{port}")});
        Ok(config)
    }

    /// Our Helm add-on provider on one of the management clusters, with the real Helm, ready to be started, ended and started
    /// again. The first time, its programs are built.
    ///
    /// # Errors
    /// When it is not installed, its programs cannot be built, or ours is not known: see [`Settings`].
    pub async fn plan_addons(
        &self,
        management: &Management,
        mut options: ManagerOptions,
    ) -> Result<ManagerPlan> {
        let program = self.settings.manager.as_deref();
        let program = program.context("our program is not known: build it, or set CAPASG_MANAGER")?;
        let work = self.addons_folder(management, &options.name);
        add_on_args(&mut options, &work).await?;
        management.plan_manager("addon-asg-helm", program, &options).await
    }

    /// The folder that the add-on provider of this name gives to Helm: the homes of its children are in it.
    #[must_use]
    pub fn addons_folder(&self, management: &Management, name: &str) -> PathBuf {
        self.run.path().join(format!("helm-{}-{name}", management.api().name()))
    }

    /// Writes objects, events and logs to a folder of this name, for reading after a failure. Answers the folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn dump(&self, name: &str) -> Result<PathBuf> {
        let api = self.management.api();
        let mut servers = vec![(api.name().to_owned(), api.kubectl().clone())];
        servers.extend(self.workloads.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        dump::write(&self.run, &servers, name).await
    }

    /// Ends everything in good order; dropping does it too, with less patience.
    ///
    /// # Errors
    /// When an end status cannot be learnt.
    pub async fn stop(self) -> Result<()> {
        self.management.stop().await.context("cannot stop the management cluster")
    }
}
