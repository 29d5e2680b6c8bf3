//! An API server for tests: it keeps events, lists pools and Machines, and records what was requested.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// The objects of one namespace, and the requests for them.
#[derive(Default)]
pub(crate) struct ApiServer {
    cluster: Mutex<Option<Value>>,
    events: Mutex<BTreeMap<String, Value>>,
    pools: Mutex<Vec<Value>>,
    charts: Mutex<Vec<Value>>,
    releases: Mutex<Vec<Value>>,
    machines: Mutex<BTreeMap<String, Vec<Value>>>,
    hanging: Mutex<usize>,
    requests: Mutex<Vec<String>>,
}

impl ApiServer {
    /// A server without objects, and its client.
    pub(crate) fn start() -> (Arc<Self>, Client) {
        let server = Arc::new(Self::default());
        server.set_machines("v1beta2", Vec::new());
        let own = Arc::clone(&server);
        let service = tower::service_fn(move |request| Arc::clone(&own).answer(request));
        (server, Client::new(service, "teams"))
    }

    /// The events by name.
    pub(crate) fn events(&self) -> BTreeMap<String, Value> {
        self.events.lock().unwrap().clone()
    }

    /// Sets the Cluster, in the only version of its API that is served.
    pub(crate) fn set_cluster(&self, cluster: Value) {
        *self.cluster.lock().unwrap() = Some(cluster);
    }

    pub(crate) fn set_pools(&self, pools: Vec<Value>) {
        *self.pools.lock().unwrap() = pools;
    }

    /// Sets the objects of the add-on provider.
    pub(crate) fn set_addons(&self, charts: Vec<Value>, releases: Vec<Value>) {
        *self.charts.lock().unwrap() = charts;
        *self.releases.lock().unwrap() = releases;
    }

    /// The first `HelmReleaseProxy`.
    pub(crate) fn release(&self) -> Value {
        self.releases.lock().unwrap()[0].clone()
    }

    /// The only version of their API in which Machines are served, and the Machines.
    pub(crate) fn set_machines(&self, version: &str, machines: Vec<Value>) {
        *self.machines.lock().unwrap() = [(version.to_owned(), machines)].into();
    }

    /// Leaves the next requests without an answer.
    pub(crate) fn hang(&self, requests: usize) {
        *self.hanging.lock().unwrap() = requests;
    }

    /// The requests since the last call, as method and resource, with their number.
    pub(crate) fn requests(&self) -> BTreeMap<String, usize> {
        let mut counted = BTreeMap::new();
        for request in self.requests.lock().unwrap().drain(..) {
            *counted.entry(request).or_default() += 1;
        }
        counted
    }

    async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let (parts, body) = request.into_parts();
        let sent = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
        let path: Vec<&str> = parts.uri.path().split('/').collect();
        let namespace = path.iter().position(|part| *part == "namespaces").unwrap();
        let (resource, name) = (path[namespace + 2], path.get(namespace + 3).copied());
        self.requests.lock().unwrap().push(format!("{} {resource}", parts.method));
        let hangs = {
            let mut hanging = self.hanging.lock().unwrap();
            let hangs = *hanging > 0;
            *hanging = hanging.saturating_sub(1);
            hangs
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        let (status, answer) = match (resource, name) {
            ("events", _) => self.event(parts.method.as_str(), name, sent),
            ("clusters", Some(name)) => self.cluster(path[3], path[namespace + 1], name),
            ("asgmachinepools", None) => (200, list(&self.pools.lock().unwrap())),
            ("machines", None) => {
                let machines = self.machines.lock().unwrap();
                machines.get(path[3]).map_or_else(|| failure(404, "NotFound"), |all| (200, list(all)))
            }
            ("helmchartproxies", None) => (200, list(&self.charts.lock().unwrap())),
            ("helmreleaseproxies", None) => (200, list(&self.releases.lock().unwrap())),
            ("helmreleaseproxies", Some(_)) => {
                assert_eq!((parts.method.as_str(), path.last()), ("PATCH", Some(&"status")));
                let release = &mut self.releases.lock().unwrap()[0];
                json_patch::merge(release, &sent);
                (200, release.clone())
            }
            other => panic!("{other:?}"),
        };
        Ok(Response::builder().status(status).body(Body::from(answer.to_string().into_bytes())).unwrap())
    }

    fn cluster(&self, version: &str, namespace: &str, name: &str) -> (u16, Value) {
        let cluster = self.cluster.lock().unwrap().clone().unwrap_or_default();
        let is = cluster["apiVersion"] == format!("cluster.x-k8s.io/{version}")
            && cluster["metadata"]["namespace"] == namespace
            && cluster["metadata"]["name"] == name;
        if is { (200, cluster) } else { failure(404, "NotFound") }
    }

    /// Rejects a change of the text of an event, as the real one does.
    fn event(&self, method: &str, name: Option<&str>, sent: Value) -> (u16, Value) {
        let mut events = self.events.lock().unwrap();
        match (method, name) {
            ("POST", None) => match events.entry(sent["metadata"]["name"].as_str().unwrap().to_owned()) {
                Entry::Occupied(_) => failure(409, "AlreadyExists"),
                Entry::Vacant(free) => {
                    let mut made = sent;
                    made["metadata"]["creationTimestamp"] = json!("2027-01-15T09:00:00Z");
                    (201, free.insert(made).clone())
                }
            },
            ("PATCH", Some(name)) => {
                let fields: Vec<&String> = sent.as_object().unwrap().keys().collect();
                assert!(
                    fields.iter().all(|field| ["series", "metadata"].contains(&field.as_str())),
                    "others are immutable"
                );
                let Some(event) = events.get_mut(name) else { return failure(404, "NotFound") };
                event["series"] = sent["series"].clone();
                if let Some(metadata) = sent.get("metadata") {
                    let fields: Vec<&String> = metadata.as_object().unwrap().keys().collect();
                    assert_eq!(fields, ["annotations"]);
                    event["metadata"]["annotations"] = metadata["annotations"].clone();
                }
                (200, event.clone())
            }
            ("GET", Some(name)) => {
                events.get(name).map_or_else(|| failure(404, "NotFound"), |event| (200, event.clone()))
            }
            other => panic!("{other:?}"),
        }
    }
}

fn list(items: &[Value]) -> Value {
    json!({"metadata": {}, "items": items})
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "message": "", "reason": reason, "code": code}))
}
