//! The HTTP endpoints: health for the kubelet, metrics for whoever collects them.

use std::{io, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;

use crate::{metrics::Metrics, readiness::Readiness};

/// Media type of the text format that the registry writes.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves `/healthz` (the process answers) and `/readyz` (what is missing, by name), until the listener fails;
/// without a listener it waits forever.
///
/// # Errors
/// When the listener fails.
pub async fn health(listener: Option<TcpListener>, readiness: Arc<Readiness>) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(readiness);
    serve(listener, router).await
}

/// Serves `/metrics`, until the listener fails; without a listener it waits forever.
///
/// # Errors
/// When the listener fails.
pub async fn diagnostics(listener: Option<TcpListener>, metrics: Arc<Metrics>) -> io::Result<()> {
    let router = Router::new().route("/metrics", get(scrape)).with_state(metrics);
    serve(listener, router).await
}

async fn serve(listener: Option<TcpListener>, router: Router) -> io::Result<()> {
    match listener {
        Some(listener) => axum::serve(listener, router).await,
        None => std::future::pending().await,
    }
}

async fn ready(State(readiness): State<Arc<Readiness>>) -> Response {
    match readiness.problem() {
        None => "ok".into_response(),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem).into_response(),
    }
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.encode() {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
