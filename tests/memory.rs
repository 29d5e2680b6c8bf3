//! Memory under attack: anybody in the cluster may send bodies to the webhooks of the manager and to the hooks of the Runtime
//! Extension. However many, large, slow and strange they are, the process stays below the limit of its pod, and answers others.
//!
//! `CAPASG_MANAGER` names another build of the program. The long form sends 1,000 bodies of 4 MiB at the same time.

#![expect(clippy::unwrap_used, reason = "what these tests share fails as they do")]

use std::{
    fs,
    net::{SocketAddr, TcpListener as StdListener},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use capasg_test_objects::is_long;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The size of hostile bodies in bytes, the largest that is read.
const LARGEST: usize = 4 * 1024 * 1024;
/// The hooks' path of one that reads objects, and of one that reads templates.
const UPGRADE: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/before-cluster-upgrade";
const PATCHES: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/generate-patches";
const POOLS: &str = "/validate-infrastructure-cluster-x-k8s-io-v1alpha1-asgmachinepool";
const HOOKS: &str = "hooks.runtime.cluster.x-k8s.io/v1alpha1";

/// Hostile bodies at the same time.
fn posts() -> usize {
    if is_long() { 1000 } else { 64 }
}

/// A running program; it ends with the test.
struct Running {
    child: std::process::Child,
    address: SocketAddr,
    client: Arc<ClientConfig>,
    folder: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts a role with a certificate, and without an API server.
    fn start(role: &str) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let client = certificate(folder.path());
        let port = free_port();
        let kubeconfig = folder.path().join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": format!("http://127.0.0.1:{}", free_port())}}],
            "users": [{"name": "a", "user": {}}], "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        });
        fs::write(&kubeconfig, config.to_string()).unwrap();
        let program = std::env::var("CAPASG_MANAGER");
        let child = Command::new(program.as_deref().unwrap_or(env!("CARGO_BIN_EXE_capasg")))
            .arg(role)
            .arg(format!("--webhook-port={port}"))
            .arg(format!("--webhook-cert-dir={}", folder.path().display()))
            .args(["--health-addr=0", "--diagnostics-address=0"])
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .stderr(Stdio::from(fs::File::create(folder.path().join("log")).unwrap()))
            .spawn()
            .unwrap();
        Self { child, address: ([127, 0, 0, 1], port).into(), client, folder }
    }

    /// The most memory that the process had so far, in MiB.
    fn peak(&mut self) -> u64 {
        assert!(self.child.try_wait().unwrap().is_none(), "it ended: {}", self.log());
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::clone(&self.client)).connect(name, stream).await
    }

    /// Sends a request, and reads the answer.
    async fn post(&self, path: &str, body: &[u8]) -> std::io::Result<String> {
        let mut stream = self.connect().await?;
        stream.write_all(head(path, body.len()).as_bytes()).await?;
        // A body that is refused is not read to its end.
        let _ = stream.write_all(body).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Sends the first part of a body, and then almost nothing until the server has enough of it.
    async fn drip(&self, path: &str, body: &[u8]) -> std::io::Result<()> {
        let mut stream = self.connect().await?;
        stream.write_all(head(path, body.len()).as_bytes()).await?;
        let (first, rest) = body.split_at(body.len().min(400 * 1024) / 2);
        stream.write_all(first).await?;
        for byte in rest {
            sleep(Duration::from_millis(100)).await;
            stream.write_all(std::slice::from_ref(byte)).await?;
            stream.flush().await?;
        }
        Ok(())
    }

    /// Waits until a request of somebody else is answered, also while the server is busy: how long it took.
    async fn answers(&self, path: &str, body: &str, expected: &str) -> Duration {
        let started = Instant::now();
        loop {
            let answer = timeout(Duration::from_secs(5), self.post(path, body.as_bytes())).await;
            match answer {
                Ok(Ok(answer)) if answer.contains(expected) => return started.elapsed(),
                other => assert!(started.elapsed() < Duration::from_mins(1), "{other:?}: {}", self.log()),
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

fn free_port() -> u16 {
    StdListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Writes a pair for localhost into a folder, for which the client is made.
fn certificate(folder: &Path) -> Arc<ClientConfig> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    fs::write(folder.join("tls.crt"), own.pem()).unwrap();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

/// The memory limit of the container in a manifest, in MiB.
fn limit(manifest: &str) -> u64 {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let limits = &deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    limits["memory"].as_str().unwrap().strip_suffix("Mi").unwrap().parse().unwrap()
}

/// Between two texts, one text again and again, until the body has this size.
fn sized(size: usize, before: &str, text: &str, after: &str) -> Vec<u8> {
    let room = size - before.len() - after.len();
    [before, &text.repeat(room / text.len()), after].concat().into_bytes()
}

fn filled(before: &str, text: &str, after: &str) -> Vec<u8> {
    sized(LARGEST, before, text, after)
}

/// What is put where a request may have anything: small values of which each costs much, deep ones, and long ones.
fn shapes(before: &str, after: &str) -> Vec<Vec<u8>> {
    let object = |name: &str| format!("{before}{{{name}:");
    // Of the largest size, one is refused at once; of these, some are parsed.
    let parsed = |size| sized(size, &format!("{before}["), r#"{"":0},"#, &format!("{{}}]{after}"));
    vec![
        filled(&format!("{before}["), r#"{"":0},"#, &format!("0]{after}")),
        filled(&format!("{before}["), "{},", &format!("0]{after}")),
        filled(&format!("{before}["), "[],", &format!("0]{after}")),
        filled(&format!("{before}["), "0,", &format!("0]{after}")),
        parsed(LARGEST / 4),
        parsed(LARGEST / 8),
        parsed(LARGEST / 12),
        parsed(LARGEST / 64),
        filled(&format!("{before}["), "[[[[[[[[0]]]]]]]],", &format!("0]{after}")),
        filled(before, "[", ""),
        filled(&object("\"a\""), "{\"a\":", ""),
        filled(&format!("{before}\""), "x", &format!("\"{after}")),
        filled(&format!("{before}\""), "\\u0000", &format!("\"{after}")),
        filled(&format!("{before}{{"), r#""":"","#, &format!("\"\":0}}{after}")),
        filled("", "[", ""),
        filled("", " ", ""),
    ]
}

/// The same shape of all places one after another, so that the costliest ones meet.
fn interleaved(places: Vec<Vec<(&'static str, Vec<u8>)>>) -> Vec<(&'static str, Vec<u8>)> {
    let mut places: Vec<_> = places.into_iter().map(Vec::into_iter).collect();
    let mut bodies = Vec::new();
    while let Some(next) = places.iter_mut().map(Iterator::next).collect::<Option<Vec<_>>>() {
        bodies.extend(next);
    }
    bodies
}

/// Sends all bodies at once, slow ones among them, and requires the bound and an answer for somebody else.
async fn attack(role: &str, manifest: &str, bodies: Vec<(&'static str, Vec<u8>)>, legitimate: [&str; 3]) {
    let mut running = Running::start(role);
    let [path, body, expected] = legitimate;
    running.answers(path, body, expected).await;
    let (before, limit) = (running.peak(), limit(manifest));
    let running = {
        let running = Arc::new(running);
        let bodies: Vec<(&str, Arc<[u8]>)> =
            bodies.into_iter().map(|(path, body)| (path, body.into())).collect();
        let (started, mut posts_) = (Instant::now(), tokio::task::JoinSet::new());
        for number in 0..posts() {
            let (path, body) = bodies[number % bodies.len()].clone();
            let running = Arc::clone(&running);
            posts_.spawn(async move {
                if number % 9 == 8 {
                    let _ = timeout(Duration::from_secs(10), running.drip(path, &body)).await;
                } else {
                    let _ = timeout(Duration::from_mins(2), running.post(path, &body)).await;
                }
            });
        }
        let during = running.answers(path, body, expected).await;
        while posts_.join_next().await.is_some() {}
        let took = started.elapsed();
        let after = running.answers(path, body, expected).await;
        println!(
            "{role}: another request was answered after {during:?} during {took:?}, and after {after:?} then"
        );
        running
    };
    let mut running = Arc::into_inner(running).unwrap();
    let peak = running.peak();
    println!("{role}: {before} MiB before, at most {peak} MiB, limit {limit} MiB, {} bodies", posts());
    assert!(peak < limit, "{peak} MiB: {}", running.log());
}

// Rules: N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manager_stays_below_its_limit_of_memory() {
    let before = |operation: &str, field: &str| {
        format!(
            "{{\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{{\"uid\":\"a\",\"operation\":\"{operation}\",{field}"
        )
    };
    let (mut bodies, after) = (Vec::new(), "}}}}");
    for (operation, field, after) in [
        ("CREATE", "\"object\":{\"metadata\":{\"managedFields\":", &after[..4]),
        ("CREATE", "\"object\":{\"metadata\":{\"labels\":", &after[..4]),
        ("CREATE", "\"object\":{\"spec\":{\"instanceTypes\":", &after[..4]),
        ("UPDATE", "\"oldObject\":{\"spec\":{\"disruption\":{\"windows\":", "}}}}}"),
        ("DELETE", "\"oldObject\":{\"status\":{\"conditions\":", &after[..4]),
    ] {
        bodies.push(shapes(&before(operation, field), after).into_iter().map(|body| (POOLS, body)).collect());
    }
    let legitimate = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "of-a-user", "operation": "CREATE", "object": capasg_test_objects::minimal_pool(), "oldObject": null},
    });
    let expected = "\"uid\":\"of-a-user\",\"allowed\":true";
    attack(
        "manager",
        "config/manager/manager.yaml",
        interleaved(bodies),
        [POOLS, &legitimate.to_string(), expected],
    )
    .await;
}

// Rules: R7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_extension_stays_below_its_limit_of_memory() {
    let before =
        |kind: &str, field: &str| format!("{{\"apiVersion\":\"{HOOKS}\",\"kind\":\"{kind}Request\",{field}");
    let mut bodies = Vec::new();
    for (path, kind, field, after) in [
        (UPGRADE, "BeforeClusterUpgrade", "\"cluster\":{\"status\":", "}}"),
        (UPGRADE, "BeforeClusterUpgrade", "\"cluster\":{\"spec\":{\"topology\":", "}}}"),
        (
            UPGRADE,
            "BeforeClusterUpgrade",
            "\"cluster\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":",
            "}}}",
        ),
        (UPGRADE, "BeforeClusterUpgrade", "\"controlPlaneUpgrades\":", "}"),
        (UPGRADE, "BeforeClusterUpgrade", "\"settings\":{\"kubernetesVersions\":", "}}"),
        (PATCHES, "GeneratePatches", "\"items\":", "}"),
        (PATCHES, "GeneratePatches", "\"variables\":[{\"name\":\"asgTags\",\"value\":", "}]}"),
        (PATCHES, "GeneratePatches", "\"items\":[{\"uid\":\"a\",\"object\":", "}]}"),
    ] {
        bodies.push(shapes(&before(kind, field), after).into_iter().map(|body| (path, body)).collect());
    }
    let mut bodies = interleaved(bodies);
    bodies.extend([(PATCHES, amplified("GeneratePatches")), (PATCHES, amplified("GeneratePatches"))]);
    let legitimate = json!({
        "apiVersion": HOOKS, "kind": "GeneratePatchesRequest",
        "variables": [{"name": "asgRegion", "value": "eu-west-1"}], "items": [template("of-a-user", &json!({}))],
    });
    let expected = "\"uid\":\"of-a-user\"";
    let manifest = "config/extension/runtime-extension-components.yaml";
    attack("extension", manifest, bodies, [PATCHES, &legitimate.to_string(), expected]).await;
}

/// The template of a pool.
fn template(uid: &str, tags: &Value) -> Value {
    json!({
        "uid": uid, "holderReference": {"kind": "MachinePool", "namespace": "a", "name": uid},
        "object": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "ASGMachinePoolTemplate",
            "spec": {"template": {"spec": {"tags": tags}}},
        },
    })
}

/// A large variable and many templates, of which each patch has the variable.
fn amplified(kind: &str) -> Vec<u8> {
    let tags: serde_json::Map<String, Value> =
        (0..16).map(|number| (format!("tag-{number}"), "x".repeat(LARGEST / 32).into())).collect();
    let items: Vec<Value> = (0..5000).map(|number| template(&format!("{number}"), &json!({}))).collect();
    let body = json!({
        "apiVersion": HOOKS, "kind": format!("{kind}Request"), "variables": [{"name": "asgTags", "value": tags}],
        "items": items,
    });
    let body = body.to_string().into_bytes();
    assert!((LARGEST / 2..LARGEST).contains(&body.len()), "{}", body.len());
    body
}
