//! The endpoints that the kubelet probes: whether the process answers, and whether it can do its work.

use std::{io, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;

use crate::readiness::Readiness;

/// Serves `/healthz` (the process answers) and `/readyz` (what is missing, by name) in plain text.
///
/// # Errors
/// If the listener fails.
pub async fn serve(listener: TcpListener, readiness: Arc<Readiness>) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(readiness);
    axum::serve(listener, router).await
}

async fn ready(State(readiness): State<Arc<Readiness>>) -> Response {
    match readiness.problem() {
        None => "ok".into_response(),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem).into_response(),
    }
}
