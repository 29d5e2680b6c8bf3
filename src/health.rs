//! The endpoints that the kubelet probes: whether the process works, and whether it has what it needs.

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use capasg_cloud::Supervisor;
use tokio::net::TcpListener;

use crate::server::{Bounds, serve_http};

/// Open connections: the kubelet opens one for each probe.
const CONNECTIONS: usize = 64;

/// Serves `/healthz` (background tasks that stop repeatedly, by name) and `/readyz` (what is missing, by name) in plain
/// text.
pub async fn serve(
    listener: TcpListener,
    ready: impl Fn() -> Option<String> + Clone + Send + Sync + 'static,
    supervisor: Supervisor,
) {
    let healthz = get(|State(supervisor): State<Supervisor>| async move { response(supervisor.problem()) });
    let readyz = get(move || async move { response(ready()) });
    let router = Router::new().route("/healthz", healthz.with_state(supervisor)).route("/readyz", readyz);
    serve_http(listener, router, Bounds::default().with_connections(CONNECTIONS)).await;
}

fn response(problem: Option<String>) -> Response {
    match problem {
        None => "ok".into_response(),
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, problem).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_fails_the_probe_and_is_named() {
        assert_eq!(response(None).status(), StatusCode::OK);
        let failed = response(Some("background tasks stopped 5 times within 10 minutes: poll".to_owned()));
        assert_eq!(failed.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
