//! Checks in AWS with the identities of pools and Clusters: hooks, an API server, and AWS with its STS over HTTP.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    net::Ipv4Addr,
    sync::Mutex,
};

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use capasg_cloud_aws::AwsConnector;
use capasg_fake_aws::{LogEntry, LogFilter, Role, Simulator, http::Server as FakeAws};
use capasg_test_objects::{minimal_pool, with};
use kube::client::Body as KubeBody;

use super::*;

const OWN: &str = "123456789012";
const TENANT: &str = "999988887777";
const OTHER: &str = "444455556666";
const INFRASTRUCTURE: &str = "/apis/infrastructure.cluster.x-k8s.io";

/// An API server: objects by path.
#[derive(Default)]
struct Objects {
    objects: Mutex<BTreeMap<String, Value>>,
    forbidden: Mutex<BTreeSet<String>>,
}

impl Objects {
    fn put(&self, path: &str, object: Value) {
        self.objects.lock().unwrap().insert(path.to_owned(), object);
    }

    fn list(&self, path: &str, kind: &str, version: &str, items: &[Value]) {
        self.put(
            path,
            json!({"apiVersion": version, "kind": format!("{kind}List"), "metadata": {}, "items": items}),
        );
    }

    fn identities(&self, identities: &[Value]) {
        let of_kind = |spec: &Value| {
            json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGIdentity",
                "metadata": {"name": spec["name"]}, "spec": spec,
            })
        };
        let items: Vec<Value> = identities.iter().map(of_kind).collect();
        let version = "infrastructure.cluster.x-k8s.io/v1alpha1";
        self.list(&format!("{INFRASTRUCTURE}/v1alpha1/asgidentities"), "ASGIdentity", version, &items);
    }

    fn guard(&self, spec: &Value) {
        let version = "infrastructure.cluster.x-k8s.io/v1alpha1";
        let guard =
            json!({"apiVersion": version, "kind": "ASGGuard", "metadata": {"name": "teams"}, "spec": spec});
        self.list(&format!("{INFRASTRUCTURE}/v1alpha1/asgguards"), "ASGGuard", version, &[guard]);
    }

    fn pools(&self, pools: &[Value]) {
        let version = "infrastructure.cluster.x-k8s.io/v1alpha1";
        let path = format!("{INFRASTRUCTURE}/v1alpha1/namespaces/teams/asgmachinepools");
        self.list(&path, "ASGMachinePool", version, pools);
    }

    fn aws_cluster(&self, identity: &Value) {
        let object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": {"name": "prod", "namespace": "teams"}, "spec": {"identityRef": identity},
        });
        self.put(&format!("{INFRASTRUCTURE}/v1beta2/namespaces/teams/awsclusters/prod"), object);
    }

    fn client(self: &Arc<Self>) -> Client {
        let own = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<KubeBody>| {
            let own = Arc::clone(&own);
            async move {
                let path = request.uri().path().to_owned();
                let failure = |code: u16, reason: &str| {
                    let status = json!({
                        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": reason,
                        "reason": reason, "code": code,
                    });
                    (code, status)
                };
                let (code, answer) = if own.forbidden.lock().unwrap().contains(&path) {
                    failure(403, "Forbidden")
                } else {
                    let found = own.objects.lock().unwrap().get(&path).cloned();
                    found.map_or_else(|| failure(404, "NotFound"), |object| (200, object))
                };
                let body = KubeBody::from(answer.to_string().into_bytes());
                Ok::<_, Infallible>(axum::http::Response::builder().status(code).body(body).unwrap())
            }
        });
        Client::new(service, "teams")
    }
}

/// Keeps what is published.
#[derive(Default)]
struct Published(Mutex<Vec<Notice>>);

impl Journal for Published {
    fn publish(&self, notice: Notice) {
        self.0.lock().unwrap().push(notice);
    }

    fn record(&self, _: &ClusterKey, _: &Record) {}

    fn request(&self, _: &ClusterKey, _: ReleaseRequest) {}
}

/// A connection to AWS with credentials of [`OWN`].
pub(crate) async fn connector(server: &FakeAws) -> AwsConnector {
    let own = Credentials::new("AKIA123456789012TEST", "not-a-secret", None, None, "test");
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .endpoint_url(server.endpoint())
        .credentials_provider(own);
    AwsConnector::new(config.load().await)
}

/// An extension with access to AWS.
struct Bench {
    objects: Arc<Objects>,
    published: Arc<Published>,
    simulator: Simulator,
    extension: Extension,
    _server: FakeAws,
}

impl Bench {
    async fn new() -> Self {
        let simulator = Simulator::default();
        let server = FakeAws::start(simulator.clone(), (Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let connector = connector(&server).await;
        let (objects, published) = (Arc::new(Objects::default()), Arc::new(Published::default()));
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "prod", "namespace": "teams", "uid": "1"},
            "spec": {
                "topology": {"version": "v1.36.3", "classRef": {"name": "prod"}},
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "prod",
                },
            },
        });
        objects.put("/apis/cluster.x-k8s.io/v1beta2/namespaces/teams/clusters/prod", cluster);
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "teams", "labels": {"team": "blue"}},
        });
        objects.put("/api/v1/namespaces/teams", namespace);
        let version =
            json!({"groupVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "version": "v1beta2"});
        let group = json!({
            "name": "infrastructure.cluster.x-k8s.io", "versions": [version], "preferredVersion": version,
        });
        objects.put("/apis", json!({"apiVersion": "v1", "kind": "APIGroupList", "groups": [group]}));
        let discovery = json!({
            "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "resources": [{
                "name": "awsclusters", "singularName": "", "namespaced": true, "kind": "AWSCluster", "verbs": ["get"],
            }],
        });
        objects.put(&format!("{INFRASTRUCTURE}/v1beta2"), discovery);
        objects.pools(&[pool("a")]);
        objects.aws_cluster(&Value::Null);

        let calls = Arc::new(CallMetrics::default());
        let inventories = aws::inventories(connector, 1.0, calls as _, Supervisor::default());
        let namespaces =
            Namespaces { own: "capasg-system".to_owned(), aws_provider: "capa-system".to_owned() };
        let access = PoolAccess::new(objects.client(), namespaces);
        let services = Services {
            kubernetes: Arc::new(KubeReader(objects.client())),
            journal: Arc::clone(&published) as _,
            observer: Arc::new(HookMetrics::default()),
            clock: Arc::new(SystemClock),
            gates: vec![Box::new(Pools)],
            blocks: Blocks::default(),
            unread: Blocks::default(),
            lookups: Some(Lookups::new(Arc::new(InventoryReader(inventories)), Arc::new(access))),
        };
        let extension = Extension::new(services, &Hook::ALL);
        Self { objects, published, simulator, extension, _server: server }
    }

    /// A role that the extension may assume.
    fn role(&self, account: &str) -> Value {
        let arn = format!("arn:aws:iam::{account}:role/capasg");
        self.simulator.put_role(Role::trusting(&arn, OWN));
        json!({"arn": arn})
    }

    /// Calls a hook until it does not wait for reads, and answers with the calls of AWS and the events.
    async fn call(&self, hook: Hook) -> (Vec<LogEntry>, Vec<String>) {
        let cluster = json!({"metadata": {"name": "prod", "namespace": "teams", "uid": "1"}});
        let request = json!({
            "apiVersion": API_VERSION, "kind": format!("{hook}Request"), "cluster": cluster,
            "fromKubernetesVersion": "v1.35.1", "toKubernetesVersion": "v1.36.3",
        });
        let before = self.simulator.counts(&LogFilter::default()).last_sequence;
        let budget = capasg_extensions::DEFAULT_BUDGET;
        let reply = self.extension.call(hook, request.to_string().as_bytes(), budget).await;
        assert!(matches!(reply, capasg_extensions::Reply::Processed(_)), "{reply:?}");
        let notices = std::mem::take(&mut *self.published.0.lock().unwrap());
        let words = notices.into_iter().filter(|notice| notice.reason == "NotCheckedInAWS");
        (
            self.simulator.log(&LogFilter::default().since(before)),
            words.map(|notice| notice.message).collect(),
        )
    }
}

fn pool(name: &str) -> Value {
    let pool = with(minimal_pool(), "metadata", json!({"name": name, "namespace": "teams", "generation": 3}));
    let image = json!({"ssmParameter": format!("/images/{name}/v{{version}}")});
    let pool = with(pool, "spec/machine/image", image);
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-03-01T00:00:00Z",
    });
    with(pool, "status", json!({"observedGeneration": 3, "conditions": [ready]}))
}

fn named(name: &str) -> Value {
    json!({"kind": "ASGIdentity", "name": name})
}

/// The account of each call that is none of STS, by what it reads.
fn accounts(log: &[LogEntry]) -> BTreeSet<(String, String)> {
    let reads = log.iter().filter(|entry| entry.action != "AssumeRole");
    reads
        .map(|entry| (entry.params["Name"].as_str().unwrap_or_default().to_owned(), entry.account.clone()))
        .collect()
}

fn in_account(image: &str, account: &str) -> (String, String) {
    (format!("/images/{image}/v1.36.3"), account.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_uses_the_identity_of_the_cluster_or_of_the_pool_that_names_one() {
    let bench = Bench::new().await;
    let (tenant, other) = (bench.role(TENANT), bench.role(OTHER));
    let allowed = json!({"names": ["teams"]});
    bench.objects.identities(&[
        json!({"name": "tenant", "type": "Role", "role": tenant, "allowedNamespaces": allowed}),
        json!({"name": "other", "type": "Role", "role": other, "allowedNamespaces": allowed}),
    ]);
    bench.objects.aws_cluster(&named("tenant"));
    bench.objects.pools(&[pool("a"), with(pool("b"), "spec/identityRef", named("other"))]);
    let (log, words) = bench.call(Hook::BeforeClusterUpgrade).await;
    assert_eq!(accounts(&log), [in_account("a", TENANT), in_account("b", OTHER)].into());
    assert_eq!(words, Vec::<String>::new());
    // The roles are those of the manager: a session of the extension reads.
    let policies =
        log.iter().filter(|entry| entry.action == "AssumeRole").map(|entry| &entry.params["Policy"]);
    let policies: Vec<&Value> = policies.collect();
    assert!(policies.len() == 2 && policies.iter().all(|policy| **policy == iam_policy()), "{policies:?}");
}

fn iam_policy() -> Value {
    crate::iam::extension_policy().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_names_no_identity_uses_the_default_of_the_namespace_or_the_own_credentials() {
    let bench = Bench::new().await;
    let (log, words) = bench.call(Hook::BeforeClusterUpgrade).await;
    assert_eq!((accounts(&log), words), ([in_account("a", OWN)].into(), Vec::new()));
    let bench = Bench::new().await;
    let selector = json!({"selector": {"matchLabels": {"team": "blue"}}});
    let role = bench.role(TENANT);
    bench.objects.identities(&[json!({
        "name": "tenant", "type": "Role", "role": role, "allowedNamespaces": selector, "selectionPolicy": "Default",
    })]);
    let (log, words) = bench.call(Hook::BeforeClusterUpgrade).await;
    assert_eq!((accounts(&log), words), ([in_account("a", TENANT)].into(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_may_not_be_used_is_named_and_nothing_is_called() {
    let not_checked = "not checked in AWS: ASGMachinePool a: ";
    for (identities, expected) in [
        (json!([]), "ASGIdentity tenant does not exist"),
        (
            json!([{"name": "tenant", "type": "Controller", "allowedNamespaces": {"names": ["others"]}}]),
            "ASGIdentity tenant does not allow namespace teams: an operator must add it to spec.allowedNamespaces, or the pool \
             must use another identity",
        ),
        (
            json!([{
                "name": "tenant", "type": "Secret", "secret": {"name": "keys"}, "allowedNamespaces": {"names": ["teams"]},
            }]),
            "Secret keys in the namespace of the controller of ASGIdentity tenant may not be read by the Runtime Extension: \
             give its service account the verb `get` on that Secret with a Role in the namespace of the Secret",
        ),
    ] {
        let bench = Bench::new().await;
        bench.objects.identities(identities.as_array().unwrap());
        bench.objects.aws_cluster(&named("tenant"));
        let secret = "/api/v1/namespaces/capasg-system/secrets/keys".to_owned();
        bench.objects.forbidden.lock().unwrap().insert(secret);
        let (log, words) = bench.call(Hook::BeforeClusterUpgrade).await;
        assert_eq!(words, [format!("{not_checked}{expected}")]);
        assert!(log.is_empty(), "{log:?}");
    }
    // Guards that cannot be read might deny it.
    let bench = Bench::new().await;
    bench.objects.forbidden.lock().unwrap().insert(format!("{INFRASTRUCTURE}/v1alpha1/asgguards"));
    let (log, words) = bench.call(Hook::BeforeClusterUpgrade).await;
    let expected = "its identity cannot be read; the log of the extension has the error";
    assert_eq!((log.len(), words), (0, vec![format!("{not_checked}{expected}")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_access_key_is_used_once_rbac_lets_the_extension_read_it() {
    let bench = Bench::new().await;
    bench.objects.identities(&[json!({
        "name": "tenant", "type": "Secret", "secret": {"name": "keys"}, "allowedNamespaces": {"names": ["teams"]},
    })]);
    bench.objects.aws_cluster(&named("tenant"));
    let encoded = |text: &str| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text);
    let data = json!({
        "AccessKeyID": encoded(&format!("AKIA{TENANT}TEST")), "SecretAccessKey": encoded("not-a-secret"),
    });
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": data});
    bench.objects.put("/api/v1/namespaces/capasg-system/secrets/keys", secret);
    let (log, words) = bench.call(Hook::BeforeClusterUpgrade).await;
    assert_eq!((accounts(&log), words), ([in_account("a", TENANT)].into(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_that_a_guard_does_not_allow_is_not_called() {
    let bench = Bench::new().await;
    bench.objects.guard(&json!({"namespaces": {"names": ["teams"]}, "regions": ["eu-north-*"]}));
    let region = pool("a")["spec"]["region"].as_str().unwrap().to_owned();
    let (log, words) = bench.call(Hook::BeforeClusterUpgrade).await;
    let expected =
        format!("not checked in AWS: ASGMachinePool a: ASGGuard teams does not allow Region {region}");
    assert_eq!((log.len(), words), (0, vec![expected]));
}
