//! `capasg extension` as users install and run it: its manifests, its command line, and the process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what these tests share fails as they do")]

mod class;
mod schema;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

const NAMESPACE: &str = "capasg-extension-system";

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn components() -> Vec<Value> {
    serde_saphyr::from_multiple(&read("config/extension/runtime-extension-components.yaml")).unwrap()
}

fn only(kind: &str) -> Value {
    let found: Vec<Value> = components().into_iter().filter(|object| object["kind"] == kind).collect();
    let [object] = &found[..] else { panic!("one {kind}") };
    object.clone()
}

fn capasg(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_capasg")).args(args).output().unwrap()
}

#[test]
fn all_objects_are_in_one_namespace_and_have_the_label_of_the_provider() {
    for object in components() {
        let cluster_scoped =
            ["Namespace", "ClusterRole", "ClusterRoleBinding"].contains(&object["kind"].as_str().unwrap());
        let name = object["metadata"]["name"].as_str().unwrap();
        let expected = if cluster_scoped { Value::Null } else { NAMESPACE.into() };
        assert_eq!(object["metadata"]["namespace"], expected, "{name}");
        assert_eq!(
            object["metadata"]["labels"]["cluster.x-k8s.io/provider"], "runtime-extension-asg",
            "{name}"
        );
        assert!(!cluster_scoped || name.starts_with(NAMESPACE), "{name}");
    }
}

// Rules: R4
#[test]
fn the_certificate_has_the_name_that_core_calls() {
    let config: Value = serde_saphyr::from_str(&read("config/extension/extensionconfig.yaml")).unwrap();
    let (certificate, service) = (only("Certificate"), only("Service"));
    let called = &config["spec"]["clientConfig"]["service"];
    assert_eq!((&called["name"], &called["namespace"]), (&service["metadata"]["name"], &json!(NAMESPACE)));
    assert_eq!(called["port"], service["spec"]["ports"][0]["port"]);
    let host = format!("{}.{NAMESPACE}.svc", service["metadata"]["name"].as_str().unwrap());
    assert!(certificate["spec"]["dnsNames"].as_array().unwrap().contains(&host.into()));
    let secret = certificate["spec"]["secretName"].as_str().unwrap();
    let authority = &config["metadata"]["annotations"]["runtime.cluster.x-k8s.io/inject-ca-from-secret"];
    assert_eq!(*authority, format!("{NAMESPACE}/{secret}"));
    assert_eq!(certificate["spec"]["issuerRef"]["name"], only("Issuer")["metadata"]["name"]);
}

#[test]
fn two_restricted_pods_serve_what_the_service_selects() {
    let deployment = only("Deployment");
    let pod = &deployment["spec"]["template"];
    assert_eq!(
        (&deployment["spec"]["replicas"], &pod["spec"]["containers"][0]["name"]),
        (&json!(2), &json!("manager"))
    );
    for selector in [
        &only("Service")["spec"]["selector"],
        &only("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &deployment["spec"]["selector"]["matchLabels"],
    ] {
        assert_eq!(*selector, pod["metadata"]["labels"]);
    }
    let container = &pod["spec"]["containers"][0];
    let security = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
        "capabilities": {"drop": ["ALL"]},
    });
    assert_eq!(container["securityContext"], security);
    assert_eq!(pod["spec"]["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(container["command"], json!(["/capasg", "extension"]));
    let folder = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
    let args = container["args"].as_array().unwrap();
    assert!(args.contains(&format!("--webhook-cert-dir={folder}").into()));
    let port = &container["ports"][0];
    assert_eq!(port["name"], only("Service")["spec"]["ports"][0]["targetPort"]);
    assert!(args.contains(&format!("--webhook-port={}", port["containerPort"]).into()));
    assert_eq!(pod["spec"]["volumes"][0]["secret"]["secretName"], only("Certificate")["spec"]["secretName"]);
    assert_eq!(pod["spec"]["serviceAccountName"], only("ServiceAccount")["metadata"]["name"]);
    // The command line accepts these arguments: a last one that it does not know is what it rejects.
    let defaults =
        [("${CAPASG_EXTENSION_AWS_API_SHARE:=0}", "0"), ("${CAPASG_OBJECT_METRICS:=true}", "true")];
    let with_defaults = |arg: &Value| {
        let arg = arg.as_str().unwrap().to_owned();
        defaults.iter().fold(arg, |arg, (variable, default)| arg.replace(variable, default))
    };
    let args: Vec<String> = args.iter().map(with_defaults).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = capasg(&[&["extension"], &args[..], &["--no-such-flag"]].concat());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--no-such-flag"));
}

#[test]
fn the_extension_writes_events_reviews_and_the_status_of_releases_only() {
    for rule in only("ClusterRole")["rules"].as_array().unwrap() {
        let verbs: Vec<&str> =
            rule["verbs"].as_array().unwrap().iter().map(|verb| verb.as_str().unwrap()).collect();
        let writes = verbs.iter().any(|verb| !["get", "list", "watch"].contains(verb));
        let resource = rule["resources"][0].as_str().unwrap();
        let written = ["events", "tokenreviews", "subjectaccessreviews", "helmreleaseproxies/status"];
        assert_eq!(writes, written.contains(&resource), "{rule}");
        assert!(!verbs.contains(&"*") && resource != "secrets", "{rule}");
    }
}

#[test]
fn settings_are_checked_before_they_are_applied() {
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        let path = folder.path().join("objects.yaml");
        fs::write(&path, text).unwrap();
        let output = capasg(&["extension", "check-settings", path.to_str().unwrap()]);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(
        check(&read("config/extension/extensionconfig.yaml")),
        (Some(0), "1 set of settings is valid\n".to_owned())
    );
    let (code, text) =
        check("kind: ExtensionConfig\nmetadata: {name: asg}\nspec: {settings: {requireApproval: 'yes'}}\n");
    assert_eq!(code, Some(1));
    assert!(
        text.ends_with("ExtensionConfig asg: setting requireApproval: must be true or false\n"),
        "{text}"
    );
    assert_eq!(check("kind: Cluster\n").0, Some(1));
    assert_eq!(check("{").0, Some(1));
}

#[test]
fn every_setting_is_documented() {
    let documented = read("docs/users/runtime-extension.md");
    for name in capasg_extensions::settings::NAMES {
        assert!(documented.contains(&format!("\n| `{name}` | ")), "{name}");
    }
}

/// Ends the process with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn status_of(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split(' ').nth(1).map(str::to_owned)
}

fn within(seconds: u64, mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        if done() {
            return true;
        }
        sleep(Duration::from_millis(100));
    }
    false
}

// Rules: R14
#[test]
fn the_process_is_ready_once_its_certificate_is_there_and_ends_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (hooks, health, metrics) = (free_port(), free_port(), free_port());
    // Nothing listens there: the extension answers without the API server, and waits for nothing at the start.
    let kubeconfig = folder.path().join("kubeconfig");
    let cluster = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://127.0.0.1:{}", free_port())}}],
        "users": [{"name": "a", "user": {}}], "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    });
    fs::write(&kubeconfig, cluster.to_string()).unwrap();
    let mut running = Running(
        Command::new(env!("CARGO_BIN_EXE_capasg"))
            .arg("extension")
            .arg(format!("--webhook-port={hooks}"))
            .arg(format!("--webhook-cert-dir={}", folder.path().display()))
            .arg(format!("--health-addr=127.0.0.1:{health}"))
            .arg(format!("--diagnostics-address=127.0.0.1:{metrics}"))
            .arg("--insecure-diagnostics")
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    assert!(within(30, || status_of(health, "/healthz").as_deref() == Some("200")));
    assert_eq!(status_of(health, "/readyz").as_deref(), Some("503"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.path().join("tls.crt"), made.cert.pem()).unwrap();
    fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    assert!(within(30, || status_of(health, "/readyz").as_deref() == Some("200")), "without a restart");
    assert_eq!(status_of(metrics, "/metrics").as_deref(), Some("200"));
    assert!(TcpStream::connect(("127.0.0.1", hooks)).is_ok());
    assert_eq!(status_of(hooks, "/"), None, "not without TLS");

    let stop = Command::new("kill").arg(running.0.id().to_string()).status().unwrap();
    assert!(stop.success());
    assert!(within(3, || status_of(health, "/readyz").as_deref() == Some("503")), "it gets no more calls");
    let mut code = None;
    assert!(within(20, || {
        code = running.0.try_wait().unwrap();
        code.is_some()
    }));
    assert!(code.unwrap().success());
}
