//! Many requests of each hook over TLS: the same bytes twice, no panic, and patches in time.

use std::{collections::BTreeMap, time::Instant};

use capasg_cloud::Clock;
use capasg_extensions::blocks::Cause;
use capasg_test_objects::{is_long, minimal_pool, with};

use tokio_rustls::client::TlsStream;

use super::{requests::Requests, *};
use crate::{intake::Intake, server::Bounds};

/// Generated requests of each hook. `make test-all` and `make conformance` take the long form.
fn requests_per_hook() -> u64 {
    if is_long() { 10_000 } else { 200 }
}

/// The pools of a Cluster by its name.
struct ByName;

#[async_trait]
impl Kubernetes for ByName {
    async fn cluster(&self, claimed: &Cluster) -> Result<Option<Cluster>, ReadError> {
        Ok(Some(claimed.clone()))
    }

    async fn pools(&self, cluster: &ClusterKey) -> Result<PoolList, ReadError> {
        let ready = |status: &str| {
            json!([{
                "type": "Ready", "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-03-01T00:00:00Z",
            }])
        };
        let pool =
            with(minimal_pool(), "status", json!({"observedGeneration": 1, "conditions": ready("True")}));
        let pool = match cluster.name.as_str() {
            "ready" => pool,
            "rolling" => {
                with(pool, "status/rollout", json!({"type": "RollingUpdate", "total": 3, "outdated": 1}))
            }
            "degraded" => with(pool, "status/conditions", ready("False")),
            _ => return Ok(PoolList::default()),
        };
        Ok(vec![serde_json::from_value(pool).unwrap()].into())
    }

    async fn machines(&self, _: &ClusterKey) -> Result<Vec<MachineFacts>, ReadError> {
        let machine = |name: &str, control_plane, version: &str| MachineFacts {
            name: name.to_owned(),
            control_plane,
            of_pool: !control_plane,
            deleting: false,
            kubelet_version: Some(version.to_owned()),
        };
        Ok(vec![machine("a", true, "v1.36.3"), machine("b", false, "v1.35.4")])
    }

    async fn addons(&self, _: &ClusterKey, _: Phase) -> Result<Vec<AddonFacts>, ReadError> {
        Ok(Vec::new())
    }

    async fn object(&self, _: Kind, _: &str, _: &str) -> Result<Option<Value>, ReadError> {
        Ok(None)
    }

    async fn record(&self, _: &ClusterKey) -> Result<Option<Record>, ReadError> {
        Ok(None)
    }
}

/// Blocks do not reach their deadlines between two equal requests.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }
}

/// A connection on which one request follows another. The server closes it at an age, and so a busy machine takes several.
struct Connection {
    address: SocketAddr,
    client: Arc<ClientConfig>,
    stream: TlsStream<TcpStream>,
    opened: Instant,
}

impl Connection {
    async fn open(address: SocketAddr, client: Arc<ClientConfig>) -> Self {
        let stream = Self::connect(address, &client).await;
        Self { address, client, stream, opened: Instant::now() }
    }

    async fn connect(address: SocketAddr, client: &Arc<ClientConfig>) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::clone(client)).connect(name, stream).await.unwrap()
    }

    /// Opens another connection long before the server closes this one.
    async fn renew(&mut self) {
        if self.opened.elapsed() > Bounds::default().age / 4 {
            self.stream = Self::connect(self.address, &self.client).await;
            self.opened = Instant::now();
        }
    }

    /// The status and the body of the answer.
    async fn post(&mut self, hook: Hook, body: &[u8]) -> (u16, Vec<u8>) {
        let path = format!("/hooks.runtime.cluster.x-k8s.io/v1alpha1/{}/{}", hook.path(), hook.handler());
        let head =
            format!("POST {path}?timeout=10s HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        self.renew().await;
        self.stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        let mut answer = Vec::new();
        loop {
            if let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_ascii_lowercase();
                let length = head.split("content-length: ").nth(1).unwrap();
                let length: usize = length.lines().next().unwrap().parse().unwrap();
                if answer.len() == end + 4 + length {
                    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                    return (status, answer.split_off(end + 4));
                }
            }
            assert!(self.stream.read_buf(&mut answer).await.unwrap() > 0, "the connection ended");
        }
    }
}

/// A connection to an extension, and what its metrics are read from. The folder has the certificate.
async fn connection() -> (Connection, ExtensionMetrics) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let hooks = Arc::new(HookMetrics::default());
    let services = Services {
        kubernetes: Arc::new(ByName),
        journal: Arc::new(Nothing),
        observer: Arc::clone(&hooks) as _,
        clock: Arc::new(Noon),
        gates: vec![Box::new(Pools)],
        blocks: Blocks::default(),
        unread: Blocks::default(),
        lookups: None,
    };
    let extension = Arc::new(Extension::new(services, &Hook::ALL));
    let objects = ObjectMetrics::Served;
    let metrics = ExtensionMetrics::new(&hooks, &CallMetrics::default(), Arc::clone(&extension), objects);
    let (place, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue(place.path(), "localhost");
    let folder = CertificateFolder::new(place.path().to_owned());
    let address = served_by(extension, folder.server(&any_tls())).await;
    (Connection::open(address, client(&authority, &TLS13, None)).await, metrics)
}

// Rules: R1, R2, R6
#[tokio::test]
async fn any_request_of_any_hook_is_answered_twice_alike_and_without_a_panic() {
    let (mut connection, metrics) = connection().await;
    let requests = Requests::default();
    for hook in Extension::implemented() {
        let mut answers: BTreeMap<String, u64> = BTreeMap::new();
        for seed in 0..requests_per_hook() {
            let body = requests.body(hook, seed);
            let (status, first) = connection.post(hook, &body).await;
            let second = connection.post(hook, &body).await;
            assert!((status, &first) == (second.0, &second.1), "{hook}, seed {seed}: two answers");
            let response: Value = serde_json::from_slice(&first).unwrap_or_default();
            let answer = match status {
                200 => {
                    assert_eq!(response["apiVersion"], API_VERSION, "{hook}, seed {seed}");
                    assert_eq!(response["kind"], format!("{hook}Response"), "{hook}, seed {seed}");
                    let blocks = response["retryAfterSeconds"].as_i64().is_some_and(|seconds| seconds > 0);
                    format!(
                        "{}{}",
                        response["status"].as_str().unwrap(),
                        if blocks { ", blocks" } else { "" }
                    )
                }
                400 => "malformed".to_owned(),
                other => panic!("{hook}, seed {seed}: {other}"),
            };
            *answers.entry(answer).or_default() += 1;
        }
        // Requests of each kind are among them.
        for expected in ["Success", "Failure", "malformed"] {
            assert!(answers.contains_key(expected), "{hook}: {answers:?}");
        }
        // AWS is not asked here, which is all that blocks a creation.
        let can_block = hook != Hook::BeforeClusterCreate && !Cause::of(hook).is_empty();
        assert_eq!(answers.contains_key("Success, blocks"), can_block, "{hook}: {answers:?}");
    }
    let text = metrics.encode().unwrap();
    for outcome in ["Panicked", "NotReady"] {
        assert!(!text.contains(&format!("outcome=\"{outcome}\"")), "{text}");
    }
}

/// Core calls the hook in each reconcile of a topology. Builds without optimizations, and busy machines, are slow: in
/// each build the shortest time for many pools is compared with that for one, and only optimized builds have a limit.
#[tokio::test]
async fn patches_of_20_pools_cost_at_most_40_times_those_of_one_pool() {
    let (mut connection, _metrics) = connection().await;
    let sizes = [1, 20].map(|pools| Requests::topology(pools).to_string().into_bytes());
    let mut firsts = Vec::new();
    for (body, pools) in sizes.iter().zip([1, 20]) {
        let (_, first) = connection.post(Hook::GeneratePatches, body).await;
        let response: Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(response["items"].as_array().unwrap().len(), 2 * pools, "both templates of each pool");
        firsts.push(first);
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..requests_per_hook() {
        for ((body, first), times) in sizes.iter().zip(&firsts).zip(&mut times) {
            let started = Instant::now();
            let (status, answer) = connection.post(Hook::GeneratePatches, body).await;
            times.push(started.elapsed());
            assert!(status == 200 && answer == *first, "another answer");
        }
    }
    let [one, many] = times.map(|mut times| {
        times.sort();
        [0, 50, 99].map(|percent| times[times.len() * percent / 100])
    });
    println!("patches, shortest, p50 and p99: one pool {one:?}, 20 pools {many:?}");
    assert!(many[0] <= one[0] * 40, "one pool {one:?}, 20 pools {many:?}");
    if cfg!(not(debug_assertions)) {
        assert!(many[2] <= Duration::from_millis(50), "20 pools {many:?}");
    }
}

// Rules: R9
/// A request of a topology of nearly the largest size has room. How long it takes depends on the build.
#[test]
fn the_largest_topology_is_accepted() {
    let of_one = Requests::topology(2).to_string().len() - Requests::topology(1).to_string().len();
    // Later pools have longer names.
    let body = Requests::topology(server::LARGEST / of_one * 99 / 100).to_string();
    assert!((server::LARGEST * 98 / 100..server::LARGEST).contains(&body.len()), "{}", body.len());
    assert!(Intake::new(server::BUDGET).cost(body.as_bytes()).is_ok());
}
