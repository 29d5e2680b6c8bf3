//! The server as core calls it: over TLS, with and without certificates of clients.

mod clients;
pub(crate) mod identities;
mod many;
mod memory;
mod requests;

use std::{fs, net::SocketAddr, path::Path};

use async_trait::async_trait;
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use capasg_api::names::addons::Phase;
use capasg_cloud::Clock;
use capasg_extensions::{
    blocks::Record,
    ports::{
        AddonFacts, Journal, Kind, Kubernetes, MachineFacts, Notice, PoolList, ReadError, ReleaseRequest,
    },
    protocol::{API_VERSION, Cluster, ClusterKey, Hook},
};
use chrono::{DateTime, Utc};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
    version::{TLS12, TLS13},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsConnector;
use tower::ServiceExt as _;

use super::*;
use crate::{
    metrics::{Exposed as _, ObjectMetrics},
    tls::{MinVersion, TlsParameters},
};

/// A management cluster without our kinds.
struct Nothing;

#[async_trait]
impl Kubernetes for Nothing {
    async fn cluster(&self, claimed: &Cluster) -> Result<Option<Cluster>, ReadError> {
        Ok(Some(claimed.clone()))
    }

    async fn pools(&self, _: &ClusterKey) -> Result<PoolList, ReadError> {
        Ok(PoolList::default())
    }

    async fn machines(&self, _: &ClusterKey) -> Result<Vec<MachineFacts>, ReadError> {
        Ok(Vec::new())
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

impl Journal for Nothing {
    fn publish(&self, _: Notice) {}

    fn record(&self, _: &ClusterKey, _: &Record) {}

    fn request(&self, _: &ClusterKey, _: ReleaseRequest) {}
}

fn extension() -> (Arc<Extension>, ExtensionMetrics) {
    extension_of(Arc::new(Nothing))
}

/// An extension for a management cluster without our kinds, and what it counts.
pub(crate) fn extension_with_clock(clock: Arc<dyn Clock>) -> (Arc<Extension>, Arc<HookMetrics>) {
    assembled(Arc::new(Nothing), clock)
}

fn extension_of(kubernetes: Arc<dyn Kubernetes>) -> (Arc<Extension>, ExtensionMetrics) {
    let (extension, hooks) = assembled(kubernetes, Arc::new(SystemClock));
    let objects = ObjectMetrics::Served;
    let metrics = ExtensionMetrics::new(&hooks, &CallMetrics::default(), Arc::clone(&extension), objects);
    (extension, metrics)
}

fn assembled(kubernetes: Arc<dyn Kubernetes>, clock: Arc<dyn Clock>) -> (Arc<Extension>, Arc<HookMetrics>) {
    let hooks = Arc::new(HookMetrics::default());
    let services = Services {
        kubernetes,
        journal: Arc::new(Nothing),
        observer: Arc::clone(&hooks) as _,
        clock,
        gates: vec![Box::new(Pools)],
        blocks: Blocks::default(),
        unread: Blocks::default(),
        lookups: None,
    };
    (Arc::new(Extension::new(services, &Hook::ALL)), hooks)
}

const DELETE: &str =
    "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterdelete/before-cluster-delete?timeout=10s";
const DISCOVERY: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery";

fn deletion(protected: &str) -> String {
    let annotations = json!({"asg.infrastructure.cluster.x-k8s.io/deletion-protection": protected});
    json!({
        "apiVersion": API_VERSION, "kind": "BeforeClusterDeleteRequest",
        "cluster": {"metadata": {
            "name": "prod", "namespace": "teams", "annotations": annotations,
            "deletionTimestamp": "2026-03-01T00:00:00Z",
        }},
    })
    .to_string()
}

async fn answered(extension: &Arc<Extension>, method: Method, path: &str, body: Body) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "other.example.com");
    let response = server::router(Arc::clone(extension)).oneshot(request.body(body).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

// Rules: R1
#[tokio::test]
async fn processed_requests_answer_200_and_others_are_refused() {
    let (extension, _) = extension();
    let post = async |path: &str, body: String| answered(&extension, Method::POST, path, body.into()).await;
    let (status, response) = post(DELETE, deletion("true")).await;
    assert_eq!((status, response["status"].as_str()), (200, Some("Success")));
    assert!(response["retryAfterSeconds"].as_i64().unwrap() > 0);
    let nobody = json!({"apiVersion": API_VERSION, "kind": "BeforeClusterDeleteRequest"}).to_string();
    let (status, response) = post(DELETE, nobody).await;
    assert_eq!((status, response["status"].as_str()), (200, Some("Failure")));
    let discovery = json!({"apiVersion": API_VERSION, "kind": "DiscoveryRequest"}).to_string();
    let (status, response) = post(&format!("{DISCOVERY}?timeout=10s"), discovery.clone()).await;
    assert_eq!((status, response["kind"].as_str()), (200, Some("DiscoveryResponse")));

    assert_eq!(post(DELETE, "{".to_owned()).await.0, 400);
    assert_eq!(post(DELETE, discovery).await.0, 400);
    assert_eq!(post(DELETE, " ".repeat(server::LARGEST + 1)).await.0, 413);
    assert_eq!(
        post("/hooks.runtime.cluster.x-k8s.io/v1alpha1/updatemachine/update-machine", String::new()).await.0,
        404
    );
    assert_eq!(post("/", String::new()).await.0, 404);
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        assert_eq!(answered(&extension, method, DELETE, Body::empty()).await.0, 405);
    }
}

// Rules: R7
#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_is_given_up() {
    let (extension, _) = extension();
    let started = tokio::time::Instant::now();
    let slow = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    assert_eq!(answered(&extension, Method::POST, DELETE, slow).await.0, 408);
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

// Rules: R14
#[tokio::test]
async fn metrics_count_calls_and_blocked_clusters_by_hook() {
    let (extension, metrics) = extension();
    for protected in ["true", "true"] {
        answered(&extension, Method::POST, DELETE, deletion(protected).into()).await;
    }
    let nobody = json!({"apiVersion": API_VERSION, "kind": "BeforeClusterDeleteRequest"}).to_string();
    answered(&extension, Method::POST, DELETE, nobody.into()).await;
    let text = metrics.encode().unwrap();
    for line in [
        "capasg_hook_calls_total{hook=\"BeforeClusterDelete\",outcome=\"Blocked\"} 2",
        "capasg_hook_calls_total{hook=\"BeforeClusterDelete\",outcome=\"Failure\"} 1",
        "capasg_hook_duration_seconds_count{hook=\"BeforeClusterDelete\"} 3",
        "capasg_hook_blocked_clusters{hook=\"BeforeClusterDelete\"} 1",
    ] {
        assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
    }
    assert!(text.contains("capasg_hook_blocked_since_seconds{hook=\"BeforeClusterDelete\"} 1"), "{text}");
    let cluster = "capasg_hook_cluster_blocked_since_timestamp_seconds{namespace=\"teams\",cluster=\"prod\",\
                   hook=\"BeforeClusterDelete\",cause=\"DeletionProtected\"} 1";
    assert!(text.contains(cluster), "{text}");
    let without = ExtensionMetrics::new(
        &HookMetrics::default(),
        &CallMetrics::default(),
        Arc::clone(&extension),
        ObjectMetrics::Off,
    );
    assert!(!without.encode().unwrap().contains("cluster=\"prod\""), "a flag turns them off");
    answered(&extension, Method::POST, DELETE, deletion("false").into()).await;
    let text = metrics.encode().unwrap();
    assert!(!text.contains("capasg_hook_blocked_clusters{") && !text.contains("cluster=\"prod\""), "{text}");
}

// Rules: R14
#[test]
fn a_replica_without_a_certificate_or_that_stops_is_not_ready() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let place = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let ready = readiness(&CertificateFolder::new(place.path().to_owned()), &stop);
    assert_eq!(ready().as_deref(), Some("the serving certificate is not loaded"));
    Authority::new().issue(place.path(), "localhost");
    let ready = readiness(&CertificateFolder::new(place.path().to_owned()), &stop);
    assert_eq!(ready(), None);
    stop.cancel();
    assert_eq!(ready().as_deref(), Some("the extension is stopping"));
}

/// Without flags.
fn any_tls() -> TlsParameters {
    TlsParameters::new(MinVersion::default(), &[]).unwrap()
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// Writes a pair for a name into a folder.
    fn issue(&self, folder: &Path, name: &str) {
        self.issue_from(folder, &CertificateParams::new([name.to_owned()]).unwrap());
    }

    fn issue_from(&self, folder: &Path, params: &CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
        fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    }

    /// A certificate for a client.
    fn client(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        self.client_from(&CertificateParams::new(["core".to_owned()]).unwrap())
    }

    fn client_from(&self, params: &CertificateParams) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }
}

/// A client, which may resume its sessions.
fn client(
    trusted: &Authority,
    version: &'static SupportedProtocolVersion,
    own: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_protocol_versions(&[version]).with_root_certificates(roots);
    Arc::new(match own {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    })
}

/// Sends a request over TLS; the status line, or why there is none.
async fn over_tls(address: SocketAddr, client: &Arc<ClientConfig>) -> Result<String> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    let mut stream = TlsConnector::from(Arc::clone(client)).connect(name, stream).await?;
    let body = deletion("false");
    let head = format!(
        "POST {DELETE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    text.lines().next().map(str::to_owned).context("there is no answer")
}

async fn served(tls: ServerConfig) -> SocketAddr {
    let (extension, _) = extension();
    served_by(extension, tls).await
}

async fn served_by(extension: Arc<Extension>, tls: ServerConfig) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { server::serve(listener, tls, extension, &Supervisor::default()).await });
    address
}

const OK: &str = "HTTP/1.1 200 OK";

// Rules: R4
#[tokio::test]
async fn hooks_are_served_with_tls_1_2_and_1_3_and_a_renewed_certificate() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (Authority::new(), Authority::new());
    first.issue(place.path(), "localhost");
    let folder = CertificateFolder::new(place.path().to_owned());
    let address = served(folder.server(&any_tls())).await;
    for version in [&TLS12, &TLS13] {
        assert_eq!(over_tls(address, &client(&first, version, None)).await.unwrap(), OK);
    }
    assert!(over_tls(address, &client(&second, &TLS13, None)).await.is_err(), "of another authority");
    second.issue(place.path(), "localhost");
    read_again(folder.follow()).await;
    assert_eq!(over_tls(address, &client(&second, &TLS13, None)).await.unwrap(), OK);
    assert!(over_tls(address, &client(&first, &TLS13, None)).await.is_err());
}

/// The first tick of the interval reads at once.
async fn read_again(following: impl Future<Output = ()>) {
    let _ = tokio::time::timeout(Duration::from_millis(100), following).await;
}

// Rules: R5
#[tokio::test]
async fn only_clients_of_the_authorities_are_served_where_they_are_configured() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let place = tempfile::tempdir().unwrap();
    let (authority, other) = (Authority::new(), Authority::new());
    authority.issue(place.path(), "localhost");
    let file = place.path().join("clients.pem");
    assert!(ClientAuthorities::new(file.clone()).is_err(), "there is no file");
    fs::write(&file, "nothing").unwrap();
    assert!(ClientAuthorities::new(file.clone()).is_err(), "there is no certificate");
    fs::write(&file, authority.certificate.pem()).unwrap();
    let authorities = ClientAuthorities::new(file.clone()).unwrap();
    let folder = CertificateFolder::new(place.path().to_owned());
    let address = served(folder.server_for_clients_of(&authorities, &any_tls())).await;
    let by = |of: &Authority, version| client(&authority, version, Some(of.client()));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for version in [&TLS12, &TLS13] {
        before.push(by(&authority, version));
        after.push(by(&other, version));
        assert!(over_tls(address, &client(&authority, version, None)).await.is_err(), "no certificate");
    }
    let served_are = async |accepted: &[Arc<ClientConfig>], rejected: &[Arc<ClientConfig>]| {
        for client in accepted {
            assert_eq!(over_tls(address, client).await.unwrap(), OK);
        }
        for client in rejected {
            assert!(over_tls(address, client).await.is_err(), "of another authority");
        }
    };
    served_are(&before, &after).await;
    // Other authorities apply without a restart, also to clients that would resume a session.
    fs::write(&file, other.certificate.pem()).unwrap();
    read_again(authorities.follow()).await;
    served_are(&after, &before).await;
}

// Rules: N1, R4
#[tokio::test]
async fn versions_and_cipher_suites_are_those_of_the_flags() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (place, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue(place.path(), "localhost");
    let folder = CertificateFolder::new(place.path().to_owned());
    let accepted = async |min_version, suites: &[&str]| {
        let suites: Vec<_> = suites.iter().map(|name| name.parse().unwrap()).collect();
        let address = served(folder.server(&TlsParameters::new(min_version, &suites).unwrap())).await;
        let mut accepted = Vec::new();
        for version in [&TLS12, &TLS13] {
            accepted.push(over_tls(address, &client(&authority, version, None)).await.is_ok());
        }
        accepted
    };
    let (of_ecdsa, of_rsa) =
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384");
    assert_eq!(accepted(MinVersion::Tls12, &[]).await, [true, true]);
    assert_eq!(accepted(MinVersion::Tls13, &[]).await, [false, true]);
    assert_eq!(accepted(MinVersion::Tls12, &[of_ecdsa]).await, [true, true]);
    // The certificate has a key of another kind.
    assert_eq!(accepted(MinVersion::Tls12, &[of_rsa]).await, [false, true]);
    assert_eq!(accepted(MinVersion::Tls12, &["TLS_AES_128_GCM_SHA256"]).await, [false, true]);

    // Each client offers one suite: the one that is left is used, and no other.
    let one = |name: &str| {
        let suites = &rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
        let suite = suites.iter().find(|suite| format!("{:?}", suite.suite()) == name).unwrap();
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.cipher_suites = vec![*suite];
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(provider));
        let builder = builder.with_protocol_versions(&[&TLS13]).unwrap();
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    };
    let suites = ["TLS_AES_256_GCM_SHA384".parse().unwrap()];
    let address = served(folder.server(&TlsParameters::new(MinVersion::Tls13, &suites).unwrap())).await;
    assert!(over_tls(address, &one("TLS13_AES_256_GCM_SHA384")).await.is_ok());
    assert!(over_tls(address, &one("TLS13_AES_128_GCM_SHA256")).await.is_err());
}
