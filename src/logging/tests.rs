//! What is logged of responses that are not as expected.

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use capasg_api::ASGMachinePool;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Config, api::ListParams};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tracing::{level_filters::LevelFilter, subscriber::with_default};

use super::*;
use crate::{
    diagnostics::{Access, KubeReviews},
    readiness::{NEEDED, Readiness},
};

// Rules: H8
#[test]
fn no_verbosity_opens_the_logs_of_libraries() {
    for verbosity in [0, 1, 2, 4, 5, 10, u8::MAX] {
        let text = directives(verbosity);
        let filter = text.parse::<EnvFilter>().unwrap();
        assert!(filter.max_level_hint().unwrap() >= LevelFilter::INFO, "{text}");
        for directive in text.split(',').skip(1) {
            assert!(directive.starts_with("capasg") || directive.ends_with("=off"), "{directive}");
        }
        assert!(text.starts_with("warn,"), "{text}");
    }
    assert!(directives(2).contains("capasg_controllers=debug"));
    assert!(directives(5).contains("capasg_cloud=trace"));
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What an API server, or a proxy before it, may answer. Each contains the value.
fn answers() -> Vec<(&'static str, String)> {
    let typed = |spec: &str| {
        format!(
            "{{\"kind\": \"List\", \"apiVersion\": \"v1\", \"metadata\": {{}}, \"items\": [{{\"metadata\": {{\"name\": \"a\"}}, {spec}}}]}}"
        )
    };
    vec![
        ("200 OK", format!("<html>{VALUE}</html>")),
        ("200 OK", format!("{{\"items\": [\"{VALUE}\"")),
        ("200 OK", typed(&format!("\"data\": \"{VALUE}\", \"spec\": \"{VALUE}\", \"status\": \"{VALUE}\""))),
        (
            "200 OK",
            typed(&format!(
                "\"spec\": {{\"region\": [\"{VALUE}\"]}}, \"data\": {{\"a\": {{\"b\": \"{VALUE}\"}}}}"
            )),
        ),
        ("200 OK", format!("\u{fffd}{VALUE}")),
        ("403 Forbidden", format!("<html>{VALUE}</html>")),
        ("502 Bad Gateway", VALUE.to_owned()),
        ("500 Internal Server Error", format!("{{\"kind\": \"Status\", \"code\": \"{VALUE}\"}}")),
    ]
}

const VALUE: &str = "TENANT-S3CRET-VALUE";

/// Answers each request alike.
async fn serve(listener: TcpListener, (status, body): (&str, String)) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            if stream.read_buf(&mut head).await.unwrap() == 0 {
                break;
            }
        }
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// Lets our code read, watch and fail, and logs the failures as it does.
async fn read_all(client: &Client) {
    let failed =
        |error: anyhow::Error| tracing::error!(error = crate::errors::line(&error), "the manager failed");
    let params = ListParams::default();
    if let Err(error) = Api::<Secret>::all(client.clone()).list(&params).await {
        failed(error.into());
    }
    if let Err(error) = Api::<ASGMachinePool>::all(client.clone()).list(&params).await {
        failed(anyhow::Error::from(error).context("cannot read pools"));
    }
    if let Err(error) = Access::new(KubeReviews(client.clone())).of("a-token").await {
        tracing::warn!(error = capasg_api::errors::of_request(&error), "failed to review");
    }
    let (readiness, deadline) = (Readiness::new(&NEEDED), std::time::Duration::from_millis(50));
    let _ = tokio::time::timeout(deadline, readiness.watch(client.clone())).await;
    tracing::warn!(problem = readiness.problem(), "not ready");
    let watch = capasg_extensions::client::KubeReader(client.clone());
    let key = capasg_extensions::protocol::ClusterKey {
        namespace: "a".into(),
        name: "b".into(),
        uid: String::new(),
    };
    let _ = capasg_extensions::ports::Kubernetes::pools(&watch, &key).await;
}

// Rules: H8
#[test]
fn a_body_that_is_not_as_expected_is_not_logged_at_any_verbosity() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    for verbosity in [0, 5] {
        for format in [LoggingFormat::Json, LoggingFormat::Text] {
            for answer in answers() {
                let (log, shown) = (Log::default(), format!("{answer:?}"));
                let writer = log.clone();
                with_default(subscriber(format, verbosity, move || writer.clone()), || {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async {
                        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                        let address = format!("http://{}", listener.local_addr().unwrap());
                        let client = Client::try_from(Config::new(address.parse().unwrap())).unwrap();
                        tokio::select! {
                            () = serve(listener, answer) => {}
                            () = read_all(&client) => {}
                        }
                    });
                });
                let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
                assert!(text.contains("the manager failed") && text.contains("not ready"), "{shown}: {text}");
                assert!(!text.contains(VALUE), "{shown}, verbosity {verbosity}: {text}");
            }
        }
    }
}
