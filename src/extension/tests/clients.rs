//! Clients that are not core as it should be: expired certificates, other names, slow requests, and connections without any.

use rcgen::date_time_ymd;
use tokio::time::{Instant, timeout};

use super::*;
use crate::{
    server::{Bounds, serve_http},
    tls::TlsListener,
};

/// The parameters of a certificate that expired long ago.
fn expired(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 12, 31));
    params
}

/// The hooks with these bounds, and a client that they serve.
async fn bounded(bounds: Bounds) -> (SocketAddr, Arc<ClientConfig>) {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (place, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue(place.path(), "localhost");
    let tls = CertificateFolder::new(place.path().to_owned()).server(&any_tls());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (extension, _) = extension();
    tokio::spawn(async move {
        let listener = TlsListener::new(listener, tls, &Supervisor::default()).unwrap();
        serve_http(listener, server::router(extension), bounds).await;
    });
    (address, client(&authority, &TLS13, None))
}

async fn connected(
    address: SocketAddr,
    client: &Arc<ClientConfig>,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::clone(client)).connect(name, stream).await.unwrap()
}

/// Waits until the server closes the connection.
async fn closed(stream: &mut tokio_rustls::client::TlsStream<TcpStream>) {
    let mut text = Vec::new();
    // It may end without a message of TLS.
    let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut text)).await.expect("it is closed");
}

// Rules: R4
#[tokio::test]
async fn an_expired_certificate_or_one_for_another_name_is_not_trusted() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let authority = Authority::new();
    for params in [expired("localhost"), CertificateParams::new(["other.example.com".to_owned()]).unwrap()] {
        let place = tempfile::tempdir().unwrap();
        authority.issue_from(place.path(), &params);
        let address = served(CertificateFolder::new(place.path().to_owned()).server(&any_tls())).await;
        for version in [&TLS12, &TLS13] {
            assert!(over_tls(address, &client(&authority, version, None)).await.is_err());
        }
        // The renewed one is.
        authority.issue(place.path(), "localhost");
        let address = served(CertificateFolder::new(place.path().to_owned()).server(&any_tls())).await;
        assert_eq!(over_tls(address, &client(&authority, &TLS13, None)).await.unwrap(), OK);
    }
}

// Rules: R5
#[tokio::test]
async fn a_client_with_an_expired_certificate_is_not_served() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (place, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue(place.path(), "localhost");
    let file = place.path().join("clients.pem");
    fs::write(&file, authority.certificate.pem()).unwrap();
    let authorities = ClientAuthorities::new(file).unwrap();
    let folder = CertificateFolder::new(place.path().to_owned());
    let address = served(folder.server_for_clients_of(&authorities, &any_tls())).await;
    for version in [&TLS12, &TLS13] {
        let by = |own| client(&authority, version, Some(own));
        assert!(over_tls(address, &by(authority.client_from(&expired("core")))).await.is_err());
        assert_eq!(over_tls(address, &by(authority.client())).await.unwrap(), OK);
    }
}

// Rules: R7
#[tokio::test]
async fn slow_heads_and_idle_connections_are_closed() {
    let bounds = Bounds { head: Duration::from_millis(300), ..Bounds::default() };
    let (address, client) = bounded(bounds).await;
    let (mut idle, mut slow) = (connected(address, &client).await, connected(address, &client).await);
    let started = Instant::now();
    slow.write_all(b"POST / HTTP/1.1\r\nHost: ").await.unwrap();
    let drip = async {
        // A byte at a time does not extend it.
        while slow.write_all(b"a").await.is_ok() && slow.flush().await.is_ok() {
            let mut answer = [0];
            if timeout(Duration::from_millis(20), slow.read(&mut answer)).await.is_ok() {
                break;
            }
        }
    };
    let (dripped, ()) = tokio::join!(timeout(Duration::from_secs(20), drip), closed(&mut idle));
    dripped.unwrap();
    assert!(started.elapsed() >= bounds.head);
    assert_eq!(over_tls(address, &client).await.unwrap(), OK);
}

#[tokio::test]
async fn the_oldest_connection_gives_way_to_a_new_one() {
    let (address, client) = bounded(Bounds { connections: 2, ..Bounds::default() }).await;
    let mut oldest = connected(address, &client).await;
    let _other = connected(address, &client).await;
    assert_eq!(over_tls(address, &client).await.unwrap(), OK);
    closed(&mut oldest).await;
}

/// An API server that does not respond to lists.
struct Hanging;

#[async_trait]
impl Kubernetes for Hanging {
    async fn cluster(&self, claimed: &Cluster) -> Result<Option<Cluster>, ReadError> {
        Ok(Some(claimed.clone()))
    }

    async fn pools(&self, _: &ClusterKey) -> Result<PoolList, ReadError> {
        std::future::pending().await
    }

    async fn machines(&self, _: &ClusterKey) -> Result<Vec<MachineFacts>, ReadError> {
        std::future::pending().await
    }

    async fn addons(&self, _: &ClusterKey, _: Phase) -> Result<Vec<AddonFacts>, ReadError> {
        std::future::pending().await
    }

    async fn object(&self, _: Kind, _: &str, _: &str) -> Result<Option<Value>, ReadError> {
        Ok(None)
    }

    async fn record(&self, _: &ClusterKey) -> Result<Option<Record>, ReadError> {
        Ok(None)
    }
}

// Rules: R7, R17
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_too_many_others_blocks_with_a_deadline() {
    let (extension, metrics) = extension_of(Arc::new(Hanging));
    let router = server::router(extension);
    let hook = Hook::BeforeClusterUpgrade;
    let (segment, handler) = (hook.path(), hook.handler());
    let path = format!("/hooks.runtime.cluster.x-k8s.io/v1alpha1/{segment}/{handler}?timeout=10s");
    let body = json!({
        "apiVersion": API_VERSION, "kind": "BeforeClusterUpgradeRequest", "toKubernetesVersion": "v1.36.3",
        "cluster": {
            "metadata": {"name": "prod", "namespace": "teams"}, "spec": {"topology": {"version": "v1.36.3"}},
        },
    });
    let post = || {
        let request = Request::post(&path).body(Body::from(body.to_string())).unwrap();
        let answer = router.clone().oneshot(request);
        tokio::spawn(async move {
            let response = answer.await.unwrap();
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()
        })
    };
    let (mut late, mut busy) = (0, 0);
    for call in (0..9).map(|_| post()).collect::<Vec<_>>() {
        let answer = call.await.unwrap();
        assert_eq!(answer["retryAfterSeconds"], 10, "{answer}");
        match answer["message"].as_str().unwrap() {
            "the objects of the Cluster were not read in time" => late += 1,
            "the extension is processing too many requests" => busy += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((late, busy), (8, 1));
    let text = metrics.encode().unwrap();
    assert!(text.contains("capasg_hook_blocked_clusters{hook=\"BeforeClusterUpgrade\"} 1"), "{text}");
}
