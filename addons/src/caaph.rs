//! Detects Cluster API Add-on Provider for Helm (CAAPH): it reconciles the same kinds, and two controllers of one release
//! would undo each other's work. It is detected by its Lease, in namespaces where an operator installed it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use capasg_api::errors;
use k8s_openapi::api::{
    coordination::v1::{Lease, LeaseSpec},
    core::v1::Namespace,
};
use kube::{Api, Client, ResourceExt, api::ListParams};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// The name of its Lease. The role in `config/addons` allows to read exactly these.
pub const LEASE: &str = "controller-leader-election-caaph";
/// The namespaces where it is installed: clusterctl labels the Namespace of the provider `helm` with `addon-helm`, and its
/// manifests label it with `helm`. A tenant that may do anything within a namespace cannot label the Namespace.
const INSTALLED: &str = "cluster.x-k8s.io/provider in (addon-helm, helm)";
/// How often the Leases are read: several times within the duration of one.
const PAUSE: Duration = Duration::from_secs(5);
/// The duration of a Lease that names none.
const DEFAULT_DURATION: Duration = Duration::from_secs(15);
/// The longest duration that counts. CAAPH has 15 s.
const LONGEST_DURATION: Duration = Duration::from_mins(1);

/// What is known of the other provider.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The Leases could not be read yet, or one is held and was not observed to be renewed yet.
    Unknown,
    /// It does not run.
    Absent,
    /// It runs in this namespace.
    Runs(String),
}

/// Whether the other provider runs, kept up to date by [`Detector::watch`].
#[derive(Debug)]
pub struct Detector {
    state: watch::Sender<State>,
    own: Option<String>,
}

impl Detector {
    /// `own` is the namespace of this provider, where the other one may be installed as well.
    #[must_use]
    pub fn new(own: Option<String>) -> Self {
        Self { state: watch::Sender::new(State::Unknown), own }
    }

    /// Reads the Leases again and again, for as long as the future runs.
    pub async fn watch(&self, client: Client) {
        let mut leases = Leases::default();
        loop {
            match self.read(&client).await {
                Ok(read) => self.learn(leases.observe(read, Instant::now())),
                // What was known remains: a short outage of the API server ends no controller.
                Err(error) => {
                    let error = errors::of_request(&error);
                    tracing::warn!(error, "cannot read the Leases of other add-on providers");
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// The Leases by namespace, of namespaces where the other provider is installed.
    async fn read(&self, client: &Client) -> Result<BTreeMap<String, LeaseSpec>, kube::Error> {
        let installed = ListParams::default().labels(INSTALLED);
        let installed = Api::<Namespace>::all(client.clone()).list_metadata(&installed).await?;
        let names: BTreeSet<String> =
            installed.items.iter().map(ResourceExt::name_any).chain(self.own.clone()).collect();
        let mut leases = BTreeMap::new();
        for namespace in names {
            let api: Api<Lease> = Api::namespaced(client.clone(), &namespace);
            if let Some(lease) = api.get_opt(LEASE).await? {
                leases.insert(namespace, lease.spec.unwrap_or_default());
            }
        }
        Ok(leases)
    }

    /// Why the controllers must not run; none if they may.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Unknown => {
                Some("it is not known yet whether Cluster API Add-on Provider for Helm runs".to_owned())
            }
            State::Absent => None,
            State::Runs(namespace) => Some(format!(
                "Cluster API Add-on Provider for Helm runs in namespace {namespace} (Lease {LEASE}) and reconciles the same \
                 objects; scale it to 0 or delete it, and the controllers start once its Lease has expired"
            )),
        }
    }

    /// Waits until it is known that the other provider does not run.
    pub async fn absent(&self) {
        self.until(|state| *state == State::Absent).await;
    }

    /// Waits until the other provider runs.
    pub async fn present(&self) {
        self.until(|state| matches!(state, State::Runs(_))).await;
    }

    async fn until(&self, is_reached: impl FnMut(&State) -> bool) {
        // The sender is `self`, so that the channel does not close.
        let _ = self.state.subscribe().wait_for(is_reached).await;
    }

    /// A Lease that was not renewed yet changes nothing: neither does it end controllers that run, nor do others start.
    fn learn(&self, sighting: Sighting) {
        match sighting {
            Sighting::NoneHeld => self.set(State::Absent),
            Sighting::Held => {}
            Sighting::Renewed(namespace) => self.set(State::Runs(namespace)),
        }
    }

    fn set(&self, state: State) {
        let is_changed = self.state.send_if_modified(|known| {
            let is_changed = *known != state;
            *known = state;
            is_changed
        });
        if is_changed && let Some(problem) = self.problem() {
            tracing::warn!(problem, "the controllers do not run");
        }
    }
}

/// What the Leases say.
#[derive(Debug, PartialEq, Eq)]
enum Sighting {
    /// No Lease is held.
    NoneHeld,
    /// One is held, and was not observed to be renewed.
    Held,
    /// The one in this namespace is held and renewed.
    Renewed(String),
}

/// A Lease as it was read last.
#[derive(Debug)]
struct Known {
    spec: LeaseSpec,
    /// When it was observed to change. As in an election, clocks of two machines are not compared.
    changed: Instant,
    /// Whether it was observed to change at all.
    is_renewed: bool,
}

/// The Leases by their namespaces.
#[derive(Debug, Default)]
struct Leases(BTreeMap<String, Known>);

impl Leases {
    fn observe(&mut self, read: BTreeMap<String, LeaseSpec>, now: Instant) -> Sighting {
        let mut before = std::mem::take(&mut self.0);
        for (namespace, spec) in read {
            let known = match before.remove(&namespace) {
                None => Known { spec, changed: now, is_renewed: false },
                Some(known) if known.spec == spec => known,
                Some(_) => Known { spec, changed: now, is_renewed: true },
            };
            self.0.insert(namespace, known);
        }
        let mut held = self.0.iter().filter(|(_, known)| known.is_held(now)).peekable();
        if held.peek().is_none() {
            return Sighting::NoneHeld;
        }
        let renewed = held.find(|(_, known)| known.is_renewed);
        renewed.map_or(Sighting::Held, |(namespace, _)| Sighting::Renewed(namespace.clone()))
    }
}

impl Known {
    fn is_held(&self, now: Instant) -> bool {
        let seconds = self.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.map_or(DEFAULT_DURATION, Duration::from_secs).min(LONGEST_DURATION);
        self.spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty())
            && now < self.changed + duration
    }
}

#[cfg(test)]
mod tests;
