//! Simulated kubelets: every running instance that was given this cluster's bootstrap data becomes a Node.

mod answers;
mod control_plane;
mod instance;
mod join;
pub(crate) mod node;
pub(crate) mod pods;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use tokio::{task::JoinHandle, time::sleep};

use self::answers::{is_absent, is_unreadable};
pub use self::{
    instance::{Instance, Instances},
    join::Join,
};
use crate::workload::WorkloadCluster;

/// How often the kubelets look at their instances and pods.
const ROUND: Duration = Duration::from_millis(200);

/// How kubelets behave.
#[derive(Debug, Clone)]
pub struct KubeletOptions {
    /// What an instance must bring along to join.
    pub join: Join,
    /// The version that kubelets report whose image does not tell, for example `v1.36.3`.
    pub version: String,
    /// Whether the Node of an instance that is gone is removed, as the cloud provider's node controller does. Off by
    /// default: kubelets themselves leave it.
    pub remove_nodes: bool,
}

#[derive(Default)]
struct State {
    versions: BTreeMap<String, String>,
    held_back: BTreeSet<String>,
    not_ready: BTreeSet<String>,
    refusals: BTreeMap<String, String>,
    joined: BTreeMap<String, Joined>,
    control_plane: control_plane::Reported,
}

#[derive(Clone)]
struct Joined {
    node: String,
    ready: bool,
}

/// The kubelets of one cluster. They stop when this is dropped; Nodes stay.
pub struct Kubelets {
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Kubelets {
    /// Starts them on the calling runtime.
    ///
    /// # Errors
    /// When the cluster cannot be reached with its kubeconfig.
    pub async fn start(
        cluster: &WorkloadCluster,
        instances: Arc<dyn Instances>,
        options: KubeletOptions,
    ) -> Result<Self> {
        let state = Arc::new(Mutex::new(State::default()));
        let round = Round {
            client: cluster.client().await?,
            cluster: cluster.clone(),
            instances,
            options,
            state: Arc::clone(&state),
        };
        let task = tokio::spawn(async move {
            loop {
                if let Err(error) = round.run().await {
                    // The API may be restarting, or gone with its cluster: kubelets try again.
                    round.note("kubelets", format!("{error:#}"));
                }
                sleep(ROUND).await;
            }
        });
        Ok(Self { state, task })
    }

    /// Kubelets on machines from `image` report `version`, whatever their cloud knows of it.
    pub fn set_version(&self, image: &str, version: &str) {
        lock(&self.state).versions.insert(image.to_owned(), version.to_owned());
    }

    /// The machine runs but its kubelet never joins, until it is let go again.
    pub fn hold_back(&self, instance: &str) {
        lock(&self.state).held_back.insert(instance.to_owned());
    }

    /// Undoes [`Kubelets::hold_back`].
    pub fn let_go(&self, instance: &str) {
        lock(&self.state).held_back.remove(instance);
    }

    /// The Nodes of a control plane in memory report this version, or again that of their Machines.
    pub fn set_control_plane_version(&self, version: Option<&str>) {
        lock(&self.state).control_plane.set(version);
    }

    /// The Node of the machine reports Ready=False or, again, Ready=True.
    pub fn set_ready(&self, instance: &str, ready: bool) {
        let mut state = lock(&self.state);
        if ready {
            state.not_ready.remove(instance)
        } else {
            state.not_ready.insert(instance.to_owned())
        };
    }

    /// Why instances have not joined, by their id; those that belong to other clusters are not listed.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<String, String> {
        lock(&self.state).refusals.clone()
    }

    /// The Nodes of running instances, by the instance's id.
    #[must_use]
    pub fn nodes(&self) -> BTreeMap<String, String> {
        lock(&self.state).joined.iter().map(|(id, joined)| (id.clone(), joined.node.clone())).collect()
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one look at everything needs.
struct Round {
    client: Client,
    cluster: WorkloadCluster,
    instances: Arc<dyn Instances>,
    options: KubeletOptions,
    state: Arc<Mutex<State>>,
}

impl Round {
    async fn run(&self) -> Result<()> {
        let running = self.instances.running();
        self.part_with_ended(&running).await?;
        for instance in &running {
            self.attend(instance).await?;
        }
        let nodes: BTreeSet<String> =
            lock(&self.state).joined.values().map(|joined| joined.node.clone()).collect();
        pods::run(&self.client, &nodes, self.cluster.is_real()).await?;
        if !self.cluster.is_real() {
            let reported = lock(&self.state).control_plane.clone();
            reported.write(&self.client, &self.cluster).await?;
        }
        lock(&self.state).refusals.remove("kubelets");
        Ok(())
    }

    async fn part_with_ended(&self, running: &[Instance]) -> Result<()> {
        let alive: BTreeSet<&str> = running.iter().map(|instance| instance.id.as_str()).collect();
        let ended: Vec<(String, Joined)> = {
            let mut state = lock(&self.state);
            state.refusals.retain(|id, _| alive.contains(id.as_str()));
            let ended = state.joined.iter().filter(|(id, _)| !alive.contains(id.as_str()));
            ended.map(|(id, joined)| (id.clone(), joined.clone())).collect()
        };
        for (id, joined) in ended {
            if self.options.remove_nodes {
                let nodes: Api<Node> = Api::all(self.client.clone());
                match nodes.delete(&joined.node, &DeleteParams::default()).await {
                    Err(error) if !is_absent(&error) && !is_unreadable(&error) => return Err(error.into()),
                    _ => {}
                }
            }
            lock(&self.state).joined.remove(&id);
        }
        Ok(())
    }

    async fn attend(&self, instance: &Instance) -> Result<()> {
        let (held_back, ready, joined) = {
            let state = lock(&self.state);
            let ready = !state.not_ready.contains(&instance.id);
            (state.held_back.contains(&instance.id), ready, state.joined.get(&instance.id).cloned())
        };
        match joined {
            Some(joined) if joined.ready == ready => Ok(()),
            Some(joined) => {
                node::report(&self.client, &self.cluster, &joined.node, ready).await?;
                self.remember(instance, joined.node, ready);
                Ok(())
            }
            None if held_back => {
                self.note(&instance.id, "it is held back".to_owned());
                Ok(())
            }
            None => self.join(instance, ready).await,
        }
    }

    async fn join(&self, instance: &Instance, ready: bool) -> Result<()> {
        match self.options.join.admits(&self.client, self.cluster.endpoint(), instance).await? {
            join::Verdict::Foreign => Ok(()),
            join::Verdict::Refused(why) => {
                self.note(&instance.id, why);
                Ok(())
            }
            join::Verdict::Admitted => {
                let version = lock(&self.state).versions.get(&instance.image).cloned();
                let version = version.or_else(|| instance.version.clone());
                let version = version.unwrap_or_else(|| self.options.version.clone());
                let node = node::new(instance, &version, ready);
                let name = node.metadata.name.clone().unwrap_or_default();
                let nodes: Api<Node> = Api::all(self.client.clone());
                let registered = nodes.list(&ListParams::default()).await?;
                // It may be registered already, by kubelets of an earlier time.
                if !registered.iter().any(|node| node.metadata.name.as_ref() == Some(&name)) {
                    nodes.create(&PostParams::default(), &node).await?;
                }
                node::settle(&self.client, &self.cluster, &node).await?;
                self.remember(instance, name, ready);
                Ok(())
            }
        }
    }

    fn remember(&self, instance: &Instance, node: String, ready: bool) {
        let mut state = lock(&self.state);
        state.refusals.remove(&instance.id);
        state.joined.insert(instance.id.clone(), Joined { node, ready });
    }

    fn note(&self, id: &str, why: String) {
        lock(&self.state).refusals.insert(id.to_owned(), why);
    }
}
