//! Which Leases count, and for how long.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

const OPERATORS: &str = "caaph-system";
const TENANTS: &str = "team-b";

fn spec(holder: &str, seconds: i32, renewed: u32) -> Value {
    json!({
        "holderIdentity": holder, "leaseDurationSeconds": seconds,
        "renewTime": format!("2026-01-01T00:{:02}:{:02}.000000Z", renewed / 60, renewed % 60),
    })
}

fn read(leases: &[(&str, Value)]) -> BTreeMap<String, LeaseSpec> {
    let typed = |spec: &Value| serde_json::from_value(spec.clone()).unwrap();
    leases.iter().map(|(namespace, spec)| ((*namespace).to_owned(), typed(spec))).collect()
}

#[test]
fn a_lease_counts_while_it_is_renewed() {
    let (mut leases, start) = (Leases::default(), Instant::now());
    let mut observe =
        |seconds, found: &[(&str, Value)]| leases.observe(read(found), start + Duration::from_secs(seconds));
    let lease = |holder, renewed| [(OPERATORS, spec(holder, 15, renewed))];
    let runs = || Sighting::Renewed(OPERATORS.to_owned());
    assert_eq!(observe(0, &[]), Sighting::NoneHeld);
    assert_eq!(observe(0, &lease("a", 0)), Sighting::Held);
    assert_eq!(observe(10, &lease("a", 2)), runs());
    assert_eq!(observe(24, &lease("a", 2)), runs());
    assert_eq!(observe(25, &lease("a", 2)), Sighting::NoneHeld, "it was not renewed");
    assert_eq!(observe(26, &lease("a", 30)), runs(), "it is back");
    assert_eq!(observe(27, &lease("", 40)), Sighting::NoneHeld, "it was released");
    assert_eq!(observe(28, &[]), Sighting::NoneHeld, "it was deleted");
    assert_eq!(observe(29, &lease("a", 50)), Sighting::Held, "it is new");
}

#[test]
fn one_that_is_left_behind_counts_for_a_minute_at_most() {
    for seconds in [i32::MAX, 0, -1, 15] {
        let (mut leases, start) = (Leases::default(), Instant::now());
        let found = || read(&[(OPERATORS, spec("a", seconds, 0))]);
        leases.observe(found(), start);
        assert_eq!(leases.observe(found(), start + LONGEST_DURATION), Sighting::NoneHeld, "{seconds}");
    }
}

#[test]
fn the_one_that_is_renewed_counts() {
    let (mut leases, start) = (Leases::default(), Instant::now());
    leases.observe(read(&[("a", spec("x", 60, 0)), ("b", spec("x", 60, 0))]), start);
    let found = read(&[("a", spec("x", 60, 0)), ("b", spec("x", 60, 1))]);
    assert_eq!(leases.observe(found, start + PAUSE), Sighting::Renewed("b".to_owned()));
}

#[tokio::test]
async fn the_problem_names_the_namespace_and_what_to_do() {
    let detector = Detector::new(None);
    assert!(detector.problem().is_some_and(|problem| problem.contains("not known yet")));
    detector.learn(Sighting::Held);
    assert!(detector.problem().is_some_and(|problem| problem.contains("not known yet")));
    detector.learn(Sighting::NoneHeld);
    detector.absent().await;
    detector.learn(Sighting::Held);
    assert_eq!(detector.problem(), None, "what runs goes on");
    detector.learn(Sighting::Renewed("tools".to_owned()));
    detector.present().await;
    let problem = detector.problem().unwrap_or_default();
    assert!(problem.contains("namespace tools") && problem.contains("scale it to 0"), "{problem}");
    detector.learn(Sighting::Held);
    assert!(detector.problem().is_some());
}

/// An API server with one namespace of an operator, which is labelled, and with Leases.
#[derive(Default)]
struct ApiServer {
    leases: Mutex<BTreeMap<String, Value>>,
    /// How often the Lease of each namespace was read.
    read: Mutex<BTreeMap<String, u32>>,
}

impl ApiServer {
    fn start() -> (Arc<Self>, Client) {
        let server = Arc::new(Self::default());
        let own = Arc::clone(&server);
        let service =
            tower::service_fn(move |request| std::future::ready(Ok::<_, Infallible>(own.answer(&request))));
        (server, Client::new(service, "unused"))
    }

    fn answer(&self, request: &Request<Body>) -> Response<Body> {
        let path: Vec<&str> = request.uri().path().split('/').collect();
        let query = request.uri().query().unwrap_or_default();
        let (status, answer) = match path[..] {
            ["", "api", "v1", "namespaces"] => {
                // What the selector says is not for this server to know, but that there is one.
                assert!(
                    query.contains("labelSelector=cluster.x-k8s.io%2Fprovider+in+%28addon-helm"),
                    "{query}"
                );
                (200, json!({"metadata": {}, "items": [{"metadata": {"name": OPERATORS}}]}))
            }
            ["", "apis", "coordination.k8s.io", "v1", "namespaces", namespace, "leases", LEASE] => {
                *self.read.lock().unwrap().entry(namespace.to_owned()).or_default() += 1;
                let metadata = json!({"name": LEASE, "namespace": namespace});
                match self.leases.lock().unwrap().get(namespace) {
                    Some(spec) => (200, json!({"metadata": metadata, "spec": spec})),
                    None => {
                        (404, json!({"status": "Failure", "reason": "NotFound", "code": 404, "message": ""}))
                    }
                }
            }
            _ => panic!("{path:?}"),
        };
        Response::builder().status(status).body(Body::from(answer.to_string().into_bytes())).unwrap()
    }

    fn hold(&self, namespace: &str, spec: Value) {
        self.leases.lock().unwrap().insert(namespace.to_owned(), spec);
    }
}

/// Runs the detector for some seconds.
async fn watched(detector: &Detector, client: &Client, seconds: u64) {
    let _ = tokio::time::timeout(Duration::from_secs(seconds), detector.watch(client.clone())).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_a_tenant_neither_prevents_the_start_nor_ends_the_controllers() {
    let (api, client) = ApiServer::start();
    let detector = Detector::new(Some("capasg-addons-system".to_owned()));
    for renewed in 0..10 {
        api.hold(TENANTS, spec("x", i32::MAX, renewed));
        watched(&detector, &client, 6).await;
        assert_eq!(detector.problem(), None);
    }
    let read: Vec<String> = api.read.lock().unwrap().keys().cloned().collect();
    assert_eq!(read, ["caaph-system", "capasg-addons-system"], "those of tenants are not read");
}

#[tokio::test(start_paused = true)]
async fn one_of_the_namespace_of_the_operator_counts_and_ends_the_controllers_once_it_is_renewed() {
    for own in [None, Some(TENANTS.to_owned())] {
        let namespace = own.clone().unwrap_or_else(|| OPERATORS.to_owned());
        let (api, client) = ApiServer::start();
        let detector = Detector::new(own);
        watched(&detector, &client, 1).await;
        assert_eq!(detector.problem(), None);
        api.hold(&namespace, spec("x", 15, 0));
        let renew = async {
            detector.present().await;
            assert!(detector.problem().is_some_and(|problem| problem.contains(&namespace)));
            // The end of its renewals is the end of the problem.
            detector.absent().await;
        };
        let renewals = async {
            for renewed in 1..5 {
                sleep(PAUSE).await;
                api.hold(&namespace, spec("x", 15, renewed));
            }
            std::future::pending::<()>().await;
        };
        let all = async {
            tokio::select! {
                () = renew => {}
                () = renewals => {}
                () = detector.watch(client) => {}
            }
        };
        assert!(tokio::time::timeout(Duration::from_mins(5), all).await.is_ok());
    }
}
