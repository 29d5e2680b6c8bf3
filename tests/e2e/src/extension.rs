//! The Runtime Extension of a test: replicas behind one address, and the `ExtensionConfig` that registers it for the test's
//! namespace.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use capasg_environment::{Balancer, Look, Manager, ManagerOptions, ManagerPlan, free_port};
use chrono::Utc;
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api, ResourceExt as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::{Rig, condition_of, eventually};

/// The label of the namespaces that the shipped `ExtensionConfig` selects.
const SELECTED: &str = "asg.infrastructure.cluster.x-k8s.io/runtime-extension";

/// The extension for one test's namespace.
pub struct Extension<'a> {
    rig: &'a Rig<'a>,
    /// The name of the `ExtensionConfig`: a ClusterClass refers to handlers as `<handler>.<name>`.
    pub name: String,
    /// The address of the Service.
    pub balancer: Balancer,
    plans: Vec<ManagerPlan>,
    ports: Vec<u16>,
    running: Mutex<Vec<Option<Manager>>>,
}

impl Rig<'_> {
    /// Starts replicas from the shipped Deployment, under its service account, and registers them with the shipped
    /// `ExtensionConfig`: its name, URL and selector are the test's, and these settings are added. They advertise the hooks
    /// that the version of core knows.
    ///
    /// # Errors
    /// When a replica does not become ready, or core does not discover its handlers.
    pub async fn extension(&self, replicas: usize, settings: &[(&str, &str)]) -> Result<Extension<'_>> {
        self.extension_with(replicas, settings, &[]).await
    }

    /// The same with more arguments.
    ///
    /// # Errors
    /// When a replica does not become ready, or core does not discover its handlers.
    pub async fn extension_with(
        &self,
        replicas: usize,
        settings: &[(&str, &str)],
        args: &[&str],
    ) -> Result<Extension<'_>> {
        let environment = &self.scenario.environment;
        let name = format!("asg-{}", self.scenario.namespace);
        let (mut plans, mut ports, mut running) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..replicas {
            let mut options =
                ManagerOptions { name: format!("{name}-{number}"), ..ManagerOptions::default() };
            options.args.push(format!("--core-version={}", environment.tools().cluster_api_version()));
            options.args.extend(args.iter().map(|arg| (*arg).to_owned()));
            let port = free_port()?;
            let plan = environment.plan_extension(options, port).await?;
            running.push(Some(plan.start_ready().await?));
            plans.push(plan);
            ports.push(port);
        }
        let balancer = Balancer::start(ports.clone()).await?;
        let running = Mutex::new(running);
        let extension = Extension { rig: self, name, balancer, plans, ports, running };
        extension.select(true).await?;
        extension.register(settings).await?;
        Ok(extension)
    }

    /// The minor version of core, such as 14 of v1.14.2.
    ///
    /// # Errors
    /// When its version has another form.
    pub fn core_minor(&self) -> Result<u64> {
        let version = self.scenario.environment.tools().cluster_api_version();
        let minor = version.split('.').nth(1).and_then(|minor| minor.parse().ok());
        minor.with_context(|| format!("{version} is no version of core"))
    }

    /// The `ExtensionConfigs` of the management cluster.
    #[must_use]
    pub fn extension_configs(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig");
        Api::all_with(self.scenario.client.clone(), &ApiResource::from_gvk(&kind))
    }
}

impl Extension<'_> {
    /// Labels the test's namespace, which the `ExtensionConfig` then selects, or removes the label.
    ///
    /// # Errors
    /// When the API server rejects it.
    pub async fn select(&self, selected: bool) -> Result<()> {
        let scenario = &self.rig.scenario;
        let value = selected.then_some(&self.name);
        let namespaces: Api<Namespace> = Api::all(scenario.client.clone());
        let label = Patch::Merge(json!({"metadata": {"labels": {SELECTED: value}}}));
        namespaces.patch(&scenario.namespace, &PatchParams::default(), &label).await?;
        Ok(())
    }

    /// Creates the `ExtensionConfig` and waits until core has discovered the handlers.
    ///
    /// # Errors
    /// When core refuses it, or does not.
    pub async fn register(&self, settings: &[(&str, &str)]) -> Result<()> {
        let mut config = self.rig.scenario.environment.extension_config(self.balancer.port())?;
        config["metadata"]["name"] = json!(self.name);
        config["spec"]["namespaceSelector"]["matchLabels"][SELECTED] = json!(self.name);
        for (name, value) in settings {
            config["spec"]["settings"][name] = json!(value);
        }
        let configs = self.rig.extension_configs();
        configs.create(&PostParams::default(), &serde_json::from_value(config)?).await?;
        eventually("the handlers are discovered", async || {
            // Core writes the condition before the handlers.
            let found = condition_of(&configs.get(&self.name).await?, "Discovered");
            let is_complete = found["status"] == "True" && !self.discovered().await?.is_empty();
            Ok(Look::when(is_complete, found.to_string()))
        })
        .await
    }

    /// The hooks for which core has handlers.
    ///
    /// # Errors
    /// When the `ExtensionConfig` cannot be read.
    pub async fn discovered(&self) -> Result<Vec<String>> {
        let config = self.rig.extension_configs().get(&self.name).await?;
        let handlers = config.data["status"]["handlers"].as_array().cloned().unwrap_or_default();
        let hook = |handler: &Value| handler["requestHook"]["hook"].as_str().unwrap_or_default().to_owned();
        Ok(handlers.iter().map(hook).collect())
    }

    /// How often each hook was called with each outcome, of all replicas that run.
    ///
    /// # Errors
    /// When a replica does not answer.
    pub async fn calls(&self) -> Result<BTreeMap<(String, String), u64>> {
        let mut calls = BTreeMap::new();
        for replica in self.running.lock().await.iter().flatten() {
            for (call, count) in calls_of(replica).await? {
                *calls.entry(call).or_default() += count;
            }
        }
        Ok(calls)
    }

    /// The same of the replica that listens on a port; none if it does not run.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn calls_of(&self, port: u16) -> Result<BTreeMap<(String, String), u64>> {
        let running = self.running.lock().await;
        let replica =
            self.ports.iter().position(|one| *one == port).and_then(|number| running[number].as_ref());
        match replica {
            Some(replica) => calls_of(replica).await,
            None => Ok(BTreeMap::new()),
        }
    }

    /// The events that the extension published about Clusters of the namespace, as `reason: note`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn events(&self) -> Result<Vec<String>> {
        let scenario = &self.rig.scenario;
        let events: Api<Event> = Api::namespaced(scenario.client.clone(), &scenario.namespace);
        let mut events = events.list(&ListParams::default()).await?.items;
        events.retain(|event| event.reporting_controller.as_deref() == Some("capasg-extension"));
        events.sort_by(|a, b| a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp));
        let line = |event: &Event| {
            format!(
                "{}: {}",
                event.reason.as_deref().unwrap_or_default(),
                event.note.as_deref().unwrap_or_default()
            )
        };
        Ok(events.iter().map(line).collect())
    }

    /// Ends the replica that listens on a port as a failing machine does, and starts it again as its Deployment would.
    ///
    /// # Errors
    /// When no replica has the port, or it does not become ready again.
    pub async fn replace(&self, port: u16) -> Result<()> {
        let number = self.ports.iter().position(|one| *one == port).context("no replica listens there")?;
        let mut running = self.running.lock().await;
        if let Some(replica) = running[number].take() {
            replica.kill().await?;
        }
        running[number] = Some(self.plans[number].start_ready().await?);
        Ok(())
    }

    /// Ends every replica at once.
    ///
    /// # Errors
    /// When an end status cannot be learnt.
    pub async fn vanish(&self) -> Result<()> {
        for replica in self.running.lock().await.iter_mut() {
            if let Some(replica) = replica.take() {
                replica.kill().await?;
            }
        }
        Ok(())
    }

    /// Starts every replica that does not run, and changes the Cluster, so that core calls hooks at once: its backoff grows
    /// to about as long as they were gone.
    ///
    /// # Errors
    /// When one does not become ready, or the API server rejects the change.
    pub async fn come_back(&self) -> Result<()> {
        for (replica, plan) in self.running.lock().await.iter_mut().zip(&self.plans) {
            if replica.is_none() {
                *replica = Some(plan.start_ready().await?);
            }
        }
        let clusters = self.rig.clusters();
        let changed = json!({"metadata": {"annotations": {"e2e/changed": Utc::now().to_rfc3339()}}});
        for cluster in clusters.list(&ListParams::default()).await? {
            let patch = Patch::Merge(&changed);
            clusters.patch(&cluster.name_any(), &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    /// Removes the `ExtensionConfig`, as one has to before the extension goes, and ends the replicas gracefully.
    ///
    /// # Errors
    /// When core refuses, or a replica ends with a failure.
    pub async fn remove(&self) -> Result<()> {
        self.rig.extension_configs().delete(&self.name, &kube::api::DeleteParams::default()).await?;
        eventually("the ExtensionConfig is gone", async || {
            let left = self.rig.extension_configs().get_opt(&self.name).await?;
            Ok(Look::when(left.is_none(), "it is there"))
        })
        .await?;
        for replica in self.running.lock().await.iter_mut() {
            if let Some(replica) = replica.take() {
                let status = replica.stop().await?;
                if !status.success() {
                    bail!("a replica of the extension ended with {status}");
                }
            }
        }
        Ok(())
    }
}

async fn calls_of(replica: &Manager) -> Result<BTreeMap<(String, String), u64>> {
    let mut calls = BTreeMap::new();
    for line in replica.metrics().await?.lines() {
        let Some(rest) = line.strip_prefix("capasg_hook_calls_total{") else { continue };
        let label =
            |name: &str| rest.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        let (Some(hook), Some(outcome)) = (label("hook"), label("outcome")) else { continue };
        let count: u64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
        *calls.entry((hook.to_owned(), outcome.to_owned())).or_default() += count;
    }
    Ok(calls)
}
