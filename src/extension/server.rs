//! The HTTPS server of the hooks: paths, bounds of size, time and concurrency. What a call means is in the extension.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use axum::{
    Router,
    body::Body,
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
    intake::{Budget, Intake, NotAccepted, Unread},
    server::{Bounds, serve_http},
    tls::TlsListener,
};

/// Requests that are processed at the same time: calls take milliseconds.
const PROCESSING: usize = 8;
const MIB: usize = 1024 * 1024;
/// What bodies may take of the memory of the pod, 512 MiB. A request for patches holds every template of a topology: one of
/// the largest size costs less than all of it when it is parsed.
pub(super) const BUDGET: Budget =
    Budget { largest: 4 * MIB, bodies: 32 * MIB, parsed: 128 * MIB, replies: 16 * MIB };
/// The largest body in bytes.
pub(super) const LARGEST: usize = BUDGET.largest;
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
    intake: Arc<Intake>,
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
            intake: Arc::new(Intake::new(BUDGET)),
            processing: Arc::new(Semaphore::new(PROCESSING)),
        })
}

async fn discover(State(served): State<Served>, body: Body) -> Response {
    let received = match served.intake.read(body, LARGEST_DISCOVERY, BRIEF, BRIEF).await {
        Ok(received) => received,
        Err(Unread::Busy) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Err(unread) => return refused(unread),
    };
    served.respond(served.extension.discover(&received.bytes), BRIEF).await
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
    let busy = || served.extension.busy(hook, started.elapsed());
    let received = match served.intake.read(body, LARGEST, left(), left()).await {
        Ok(received) => received,
        Err(Unread::Busy) => return served.respond(busy(), LEAST).await,
        Err(unread) => return refused(unread),
    };
    let body = &received.bytes;
    let cost = match served.intake.cost(body) {
        Ok(cost) => cost,
        Err(NotAccepted::NotJson) => {
            return (StatusCode::BAD_REQUEST, "the body is not a JSON object").into_response();
        }
        Err(NotAccepted::TooMany) => {
            return (StatusCode::PAYLOAD_TOO_LARGE, "the body has too many values").into_response();
        }
    };
    let Some(_room) = served.intake.room(cost, left()).await else {
        return served.respond(busy(), LEAST).await;
    };
    let processing = timeout(left(), served.processing.acquire()).await;
    let remaining = budget.saturating_sub(started.elapsed());
    let reply = match processing {
        Ok(Ok(_)) => served.extension.call(hook, body, remaining).await,
        // The block counts towards its deadline.
        _ if body.len() <= LARGEST_WHEN_BUSY => served.extension.call_busy(hook, body, remaining).await,
        _ => busy(),
    };
    served.respond(reply, left()).await
}

/// How long core waits (R7).
fn budget(parameters: &Parameters) -> Duration {
    let budget = parameters.timeout.as_deref().and_then(|text| parse_duration(text).ok());
    budget.filter(|budget| !budget.is_zero()).unwrap_or(DEFAULT_BUDGET).min(LONGEST_BUDGET)
}

fn refused(unread: Unread) -> Response {
    match unread {
        Unread::Late => (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time").into_response(),
        _ => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large or incomplete").into_response(),
    }
}

impl Served {
    /// The answer; 503 if too many large ones are not sent yet.
    async fn respond(&self, reply: Reply, within: Duration) -> Response {
        let bytes = match reply {
            Reply::Processed(bytes) => bytes,
            Reply::NotFound => return StatusCode::NOT_FOUND.into_response(),
            Reply::Malformed(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
        };
        let headers = [
            (header::CONTENT_TYPE, "application/json".to_owned()),
            (header::CONTENT_LENGTH, bytes.len().to_string()),
        ];
        match self.intake.reply(bytes, within).await {
            Some(body) => (headers, body).into_response(),
            None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
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
