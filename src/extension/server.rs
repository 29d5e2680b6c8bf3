//! The HTTPS server of the hooks: paths, bounds of size, time and concurrency. What a call means is in the extension.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use capasg_cloud::Supervisor;
use capasg_extensions::{DEFAULT_BUDGET, Extension, LONGEST_BUDGET, Reply};
use rustls::ServerConfig;
use serde::Deserialize;
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};

use crate::{
    cli::parse_duration,
    tls::{Bounds, TlsListener, serve_http},
};

/// Bodies that are read at the same time. With the largest ones they take 128 MiB.
const READING: usize = 32;
/// Requests that are processed at the same time. A parsed body takes several times its size, and calls take milliseconds.
const PROCESSING: usize = 8;
/// The largest body in bytes: a request for patches holds every template of a topology.
pub(super) const LARGEST: usize = 4 * 1024 * 1024;
/// The largest body of discovery, which has no content.
const LARGEST_DISCOVERY: usize = 64 * 1024;
/// How long a request waits for its turn, and how long its body may take.
const BRIEF: Duration = Duration::from_secs(5);
/// The least of these waits, if little time is left.
const LEAST: Duration = Duration::from_millis(100);
/// The largest body in bytes that is read although too many requests are processed. A Cluster is much smaller.
const LARGEST_WHEN_BUSY: usize = 256 * 1024;
/// What of the time that core waits is kept for the handler.
const HANDLING: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Served {
    extension: Arc<Extension>,
    reading: Arc<Semaphore>,
    processing: Arc<Semaphore>,
}

/// What core adds to the URL.
#[derive(Debug, Default, Deserialize)]
struct Parameters {
    timeout: Option<String>,
}

/// Serves the hooks.
///
/// # Errors
/// If the listener fails.
pub(super) async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    extension: Arc<Extension>,
    supervisor: &Supervisor,
) -> Result<()> {
    let listener = TlsListener::new(listener, tls, supervisor)?;
    serve_http(listener, router(extension), Bounds::default()).await;
    Ok(())
}

/// The paths of the protocol (R1).
pub(super) fn router(extension: Arc<Extension>) -> Router {
    Router::new()
        .route("/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", post(discover))
        .route("/hooks.runtime.cluster.x-k8s.io/v1alpha1/{hook}/{handler}", post(call))
        .with_state(Served {
            extension,
            reading: Arc::new(Semaphore::new(READING)),
            processing: Arc::new(Semaphore::new(PROCESSING)),
        })
}

async fn discover(State(served): State<Served>, body: Body) -> Response {
    let Ok(Ok(_reading)) = timeout(BRIEF, served.reading.acquire()).await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    match read(body, BRIEF, LARGEST_DISCOVERY).await {
        Ok(body) => respond(served.extension.discover(&body)),
        Err(refused) => refused,
    }
}

async fn call(
    State(served): State<Served>,
    Path((hook, handler)): Path<(String, String)>,
    Query(parameters): Query<Parameters>,
    body: Body,
) -> Response {
    let Some(hook) = served.extension.find(&hook, &handler) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let started = Instant::now();
    let budget = budget(&parameters);
    // Waits together leave the handler some time.
    let left = || budget.saturating_sub(started.elapsed() + HANDLING).clamp(LEAST, BRIEF);
    let Ok(Ok(reading)) = timeout(left(), served.reading.acquire()).await else {
        return respond(served.extension.busy(hook, started.elapsed()));
    };
    let body = match read(body, left(), LARGEST).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let processing = timeout(left(), served.processing.acquire()).await;
    let remaining = budget.saturating_sub(started.elapsed());
    respond(match processing {
        Ok(Ok(_processing)) => {
            drop(reading);
            served.extension.call(hook, &body, remaining).await
        }
        // The block counts towards its deadline.
        _ if body.len() <= LARGEST_WHEN_BUSY => served.extension.call_busy(hook, &body, remaining).await,
        _ => served.extension.busy(hook, started.elapsed()),
    })
}

/// How long core waits (R7).
fn budget(parameters: &Parameters) -> Duration {
    let budget = parameters.timeout.as_deref().and_then(|text| parse_duration(text).ok());
    budget.filter(|budget| !budget.is_zero()).unwrap_or(DEFAULT_BUDGET).min(LONGEST_BUDGET)
}

/// Reads a body that is neither too large nor too slow.
async fn read(body: Body, within: Duration, largest: usize) -> Result<Bytes, Response> {
    match timeout(within, to_bytes(body, largest)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is too large or incomplete").into_response())
        }
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time").into_response()),
    }
}

fn respond(reply: Reply) -> Response {
    match reply {
        Reply::Processed(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Reply::NotFound => StatusCode::NOT_FOUND.into_response(),
        Reply::Malformed(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rules: R7
    #[test]
    fn the_budget_is_what_core_says_within_its_limits() {
        let of = |text: Option<&str>| budget(&Parameters { timeout: text.map(str::to_owned) });
        assert_eq!(of(Some("5s")), Duration::from_secs(5));
        assert_eq!(of(Some("1m0s")), LONGEST_BUDGET);
        for text in [None, Some("0s"), Some("soon"), Some("-1s")] {
            assert_eq!(of(text), DEFAULT_BUDGET, "{text:?}");
        }
    }
}
