//! `/metrics`: over TLS to users whom the API server authorizes, or in plain text where a flag says so (rule N4).

mod access;

use std::sync::Arc;

use anyhow::Result;
use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::get,
};
use capasg_api::errors;
use capasg_cloud::Supervisor;
use tokio::net::TcpListener;
use tracing::warn;

pub use self::access::{Access, KubeReviews};
use self::access::{Reviews, Verdict};
use crate::{
    metrics::Exposed,
    server::{Bounds, serve_http},
    tls::{TlsListener, TlsParameters, own_certificate},
};

/// Media type of the text format that the registry writes.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Open connections.
const CONNECTIONS: usize = 32;

/// Serves `/metrics` over TLS to bearers of a token that may `get` the non-resource URL `/metrics`.
///
/// # Errors
/// If no certificate can be created.
pub async fn guarded<R: Reviews>(
    listener: TcpListener,
    metrics: Arc<dyn Exposed>,
    access: Arc<Access<R>>,
    tls: &TlsParameters,
    supervisor: &Supervisor,
) -> Result<()> {
    let router = router(metrics).layer(from_fn_with_state(access, guard));
    let listener = TlsListener::new(listener, own_certificate(tls)?, supervisor)?;
    serve_http(listener, router, bounds()).await;
    Ok(())
}

/// Serves `/metrics` without authentication.
pub async fn open(listener: TcpListener, metrics: Arc<dyn Exposed>) {
    serve_http(listener, router(metrics), bounds()).await;
}

/// Scrapers are few, and a client that does not read its answer keeps it in memory.
fn bounds() -> Bounds {
    Bounds::default().with_connections(CONNECTIONS)
}

fn router(metrics: Arc<dyn Exposed>) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(metrics)
}

async fn guard<R: Reviews>(State(access): State<Arc<Access<R>>>, request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        .map(str::to_owned);
    let Some(token) = token else { return StatusCode::UNAUTHORIZED.into_response() };
    match access.of(&token).await {
        Ok(Verdict::Allowed) => next.run(request).await,
        Ok(Verdict::Unknown) => StatusCode::UNAUTHORIZED.into_response(),
        Ok(Verdict::Refused) => StatusCode::FORBIDDEN.into_response(),
        Ok(Verdict::TooMany) => StatusCode::TOO_MANY_REQUESTS.into_response(),
        Err(error) => {
            warn!(error = errors::of_request(&error), "failed to review the token of a metrics request");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn scrape(State(metrics): State<Arc<dyn Exposed>>) -> Response {
    match metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
