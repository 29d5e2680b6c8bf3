//! The ports in memory, and requests, for tests.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use capasg_api::names::addons::Phase;
use capasg_cloud::Clock;
use capasg_test_objects::{minimal_pool, with};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::{
    Extension, Reply, Services,
    blocks::{Blocks, Record},
    gates::{Addons, Pools},
    lookups::Lookups,
    ports::{
        AddonFacts, Journal, Kind, Kubernetes, MachineFacts, Notice, Observer, Outcome, PoolList, ReadError,
        ReleaseRequest,
    },
    protocol::{API_VERSION, Cluster, ClusterKey, Hook},
};

/// The world of a test.
pub(crate) struct World {
    /// The only Cluster, as the API server has it; if none is set, that of each request.
    pub(crate) live: Mutex<Option<Value>>,
    pub(crate) cluster_fails: AtomicBool,
    pub(crate) pools: Mutex<Vec<Value>>,
    pub(crate) machines: Mutex<Vec<MachineFacts>>,
    /// What the event of the Cluster holds.
    pub(crate) record: Mutex<Option<Record>>,
    pub(crate) undecoded: Mutex<Vec<String>>,
    pub(crate) fails: AtomicBool,
    pub(crate) addons_fail: AtomicBool,
    pub(crate) hangs: AtomicBool,
    pub(crate) machines_hang: AtomicBool,
    pub(crate) panics: AtomicBool,
    pub(crate) now: Mutex<DateTime<Utc>>,
    pub(crate) notices: Mutex<Vec<Notice>>,
    pub(crate) outcomes: Mutex<Vec<(Hook, Outcome)>>,
    /// Objects of a topology by kind, and by namespace and name.
    pub(crate) objects: Mutex<BTreeMap<(Kind, String), Value>>,
    pub(crate) lookups: Mutex<Option<Lookups>>,
    addons: Mutex<Vec<(Phase, AddonFacts)>>,
    requested: Mutex<Vec<ReleaseRequest>>,
}

#[async_trait]
impl Kubernetes for World {
    async fn cluster(&self, claimed: &Cluster) -> Result<Option<Cluster>, ReadError> {
        if self.cluster_fails.load(Ordering::SeqCst) {
            return Err(ReadError { kind: "Clusters" });
        }
        let live = self.live.lock().unwrap().clone().map(Cluster::from);
        Ok(Some(live.unwrap_or_else(|| claimed.clone())).filter(|live| claimed.is_same_object(live)))
    }

    async fn pools(&self, _: &ClusterKey) -> Result<PoolList, ReadError> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        assert!(!self.panics.load(Ordering::SeqCst), "a secret in a panic");
        if self.fails.load(Ordering::SeqCst) {
            return Err(ReadError { kind: "ASGMachinePools" });
        }
        let pools = self.pools.lock().unwrap();
        let pools = pools.iter().map(|pool| serde_json::from_value(pool.clone()).unwrap()).collect();
        Ok(PoolList { pools, undecoded: self.undecoded.lock().unwrap().clone() })
    }

    async fn machines(&self, _: &ClusterKey) -> Result<Vec<MachineFacts>, ReadError> {
        if self.machines_hang.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(self.machines.lock().unwrap().clone())
    }

    async fn addons(&self, _: &ClusterKey, phase: Phase) -> Result<Vec<AddonFacts>, ReadError> {
        if self.addons_fail.load(Ordering::SeqCst) {
            return Err(ReadError { kind: "HelmChartProxies" });
        }
        let all = self.addons.lock().unwrap();
        Ok(all.iter().filter(|(of, _)| *of == phase).map(|(_, addon)| addon.clone()).collect())
    }

    async fn object(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>, ReadError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(ReadError { kind: "ClusterClasses" });
        }
        Ok(self.objects.lock().unwrap().get(&(kind, format!("{namespace}/{name}"))).cloned())
    }

    async fn record(&self, _: &ClusterKey) -> Result<Option<Record>, ReadError> {
        Ok(self.record.lock().unwrap().clone())
    }
}

impl Journal for World {
    fn publish(&self, notice: Notice) {
        self.notices.lock().unwrap().push(notice);
    }

    fn record(&self, _: &ClusterKey, record: &Record) {
        *self.record.lock().unwrap() = Some(record.clone());
    }

    fn request(&self, _: &ClusterKey, request: ReleaseRequest) {
        self.requested.lock().unwrap().push(request);
    }
}

impl Observer for World {
    fn called(&self, hook: Hook, outcome: Outcome, _: Duration) {
        self.outcomes.lock().unwrap().push((hook, outcome));
    }

    fn timed_out(&self, _: Hook) {}
}

/// The clock of a world.
pub(crate) struct TestClock(pub(crate) Arc<World>);

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.now.lock().unwrap()
    }
}

impl World {
    /// A world without objects, on a Monday at noon.
    pub(crate) fn empty() -> Arc<Self> {
        Arc::new(Self {
            live: Mutex::default(),
            cluster_fails: AtomicBool::new(false),
            pools: Mutex::default(),
            machines: Mutex::default(),
            record: Mutex::default(),
            undecoded: Mutex::default(),
            fails: AtomicBool::new(false),
            addons_fail: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            machines_hang: AtomicBool::new(false),
            panics: AtomicBool::new(false),
            now: Mutex::new("2026-03-02T12:00:00Z".parse().unwrap()),
            notices: Mutex::default(),
            outcomes: Mutex::default(),
            objects: Mutex::default(),
            lookups: Mutex::default(),
            addons: Mutex::default(),
            requested: Mutex::default(),
        })
    }

    /// A world with one pool.
    pub(crate) fn with_pool(pool: Value) -> Arc<Self> {
        let world = Self::empty();
        world.set_pools(vec![pool]);
        world
    }

    pub(crate) fn set_pools(&self, pools: Vec<Value>) {
        *self.pools.lock().unwrap() = pools;
    }

    /// Replaces the add-ons that ask for a phase.
    pub(crate) fn set_addons(&self, phase: Phase, addons: &[AddonFacts]) {
        let mut all = self.addons.lock().unwrap();
        all.retain(|(of, _)| *of != phase);
        all.extend(addons.iter().map(|addon| (phase, addon.clone())));
    }

    /// The requests since the last call.
    pub(crate) fn requested(&self) -> Vec<ReleaseRequest> {
        std::mem::take(&mut *self.requested.lock().unwrap())
    }

    pub(crate) fn pass(&self, minutes: i64) {
        *self.now.lock().unwrap() += TimeDelta::minutes(minutes);
    }

    /// The reasons of the events so far.
    pub(crate) fn reasons(&self) -> Vec<&'static str> {
        self.notices.lock().unwrap().iter().map(|notice| notice.reason).collect()
    }

    /// An extension in this world, as a replica that has just started.
    pub(crate) fn extension(self: &Arc<Self>) -> Extension {
        let services = Services {
            kubernetes: Arc::clone(self) as _,
            journal: Arc::clone(self) as _,
            observer: Arc::clone(self) as _,
            clock: Arc::new(TestClock(Arc::clone(self))),
            gates: vec![Box::new(Pools), Box::new(Addons)],
            blocks: Blocks::default(),
            unread: Blocks::default(),
            lookups: self.lookups.lock().unwrap().clone(),
        };
        Extension::new(services, &Hook::ALL)
    }
}

/// A pool that is ready and up to date.
pub(crate) fn ready_pool(name: &str) -> Value {
    let pool = with(minimal_pool(), "metadata", json!({"name": name, "namespace": "teams", "generation": 3}));
    with(pool, "status", json!({"observedGeneration": 3, "conditions": [condition("Ready", "True")]}))
}

pub(crate) fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-03-01T00:00:00Z"})
}

/// A request of a hook for the Cluster `teams/prod`, with more fields.
pub(crate) fn request(hook: Hook, more: Value) -> Value {
    let mut request = json!({
        "apiVersion": API_VERSION,
        "kind": format!("{hook}Request"),
        "cluster": {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "prod", "namespace": "teams", "uid": "1"},
            "spec": {"topology": {"version": "v1.36.3"}},
        },
        "fromKubernetesVersion": "v1.35.1", "toKubernetesVersion": "v1.36.3", "kubernetesVersion": "v1.36.3",
    });
    match hook {
        Hook::BeforeClusterDelete => {
            request["cluster"]["metadata"]["deletionTimestamp"] = json!("2026-03-01T00:00:00Z");
        }
        Hook::AfterControlPlaneInitialized => {
            request["cluster"]["status"] =
                json!({"conditions": [condition("ControlPlaneInitialized", "True")]});
        }
        _ => {}
    }
    if let Value::Object(more) = more {
        for (name, value) in more {
            request[name] = value;
        }
    }
    request
}

/// The same with annotations of the Cluster and settings.
pub(crate) fn annotated(hook: Hook, annotations: &Value, settings: &Value) -> Value {
    let mut request = request(hook, json!({"settings": settings}));
    request["cluster"]["metadata"]["annotations"] = annotations.clone();
    request
}

/// Whether a response blocks. Blocking is a success.
pub(crate) fn blocks(response: &Value) -> bool {
    assert_eq!(response["status"], "Success", "{response}");
    response["retryAfterSeconds"].as_i64().unwrap() > 0
}

/// Calls a hook, and answers the response.
pub(crate) async fn call(extension: &Extension, hook: Hook, request: &Value) -> Value {
    match extension.call(hook, request.to_string().as_bytes(), crate::DEFAULT_BUDGET).await {
        Reply::Processed(body) => serde_json::from_slice(&body).unwrap(),
        other => panic!("{hook}: {other:?}"),
    }
}
